//! [`Scope`]: the processes whose mappings a config wants.

use esatto_protozero::ProtoString;
use esatto_schema::ProcessSmapsConfig;

use super::glob::{Wildcards, matches};
use crate::data_source::SetupError;

/// Patterns of command lines, and ranges of users. If a config has both, a process has to match one
/// of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    cmdlines: Vec<ProtoString>,
    users: Vec<Users>,
}

#[derive(Clone, Copy, Debug)]
struct Users {
    first: u32,
    last: u32,
    /// Ignore the profile, which is the number of hundreds of thousands on Android.
    in_all_profiles: bool,
}

const PROFILE_SIZE: u32 = 100_000;

impl Scope {
    /// # Errors
    ///
    /// Why the config wants no process.
    pub(crate) fn new(config: &ProcessSmapsConfig) -> Result<Self, SetupError> {
        let scope = config.scope.clone().unwrap_or_default();
        if scope.target_cmdline.is_empty() && scope.target_uid.is_empty() {
            let text = "the config names no process; set scope.target_cmdline or scope.target_uid";
            return Err(SetupError(text.into()));
        }
        let mut users = Vec::new();
        for range in &scope.target_uid {
            let (Some(first), Some(last)) = (range.min_uid, range.max_uid) else {
                return Err(SetupError("scope.target_uid needs both min_uid and max_uid".into()));
            };
            if first > last {
                return Err(SetupError(format!("scope.target_uid: min_uid {first} is larger than max_uid {last}")));
            }
            users.push(Users { first, last, in_all_profiles: range.android_match_across_profiles == Some(true) });
        }
        Ok(Self { cmdlines: scope.target_cmdline, users })
    }

    pub(crate) fn wants_users(&self) -> bool {
        !self.users.is_empty()
    }

    pub(crate) fn wants_cmdlines(&self) -> bool {
        !self.cmdlines.is_empty()
    }

    /// Returns true if processes of the user are wanted.
    pub(crate) fn has_user(&self, user: u32) -> bool {
        self.users.iter().any(|users| {
            let user = if users.in_all_profiles { user % PROFILE_SIZE } else { user };
            (users.first..=users.last).contains(&user)
        })
    }

    /// Returns true if a process with this command line is wanted. A pattern that begins with a
    /// slash is for the whole path of the program, another one for its name.
    pub(crate) fn has_cmdline(&self, cmdline: &[u8]) -> bool {
        let path = cmdline.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..]);
        self.cmdlines.iter().any(|pattern| {
            let text = if pattern.starts_with(b"/") { path } else { name };
            matches(pattern, text, Wildcards::Anywhere)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_schema::process_smaps_config as schema;
    use esatto_schema::process_smaps_config::scope::UidRange;

    fn scope(target_cmdline: &[&str], target_uid: &[(Option<u32>, Option<u32>, bool)]) -> Result<Scope, SetupError> {
        let target_uid = target_uid.iter().map(|&(min_uid, max_uid, all)| UidRange {
            min_uid,
            max_uid,
            android_match_across_profiles: Some(all),
            ..Default::default()
        });
        let target_cmdline = target_cmdline.iter().map(|&text| text.into()).collect();
        let scope = schema::Scope { target_cmdline, target_uid: target_uid.collect(), ..Default::default() };
        Scope::new(&ProcessSmapsConfig { scope: Some(scope), ..Default::default() })
    }

    #[test]
    fn a_scope_of_nothing_is_refused() {
        assert!(scope(&[], &[]).is_err());
        assert!(scope(&[], &[(Some(1), None, false)]).is_err());
        assert!(scope(&[], &[(Some(2), Some(1), false)]).is_err());
    }

    #[test]
    fn patterns_are_for_names_or_paths_of_programs() {
        let scope = scope(&["top", "/bin/e*"], &[]).expect("a scope");
        let wanted = ["/usr/bin/top\0-b\0", "top", "/bin/echo\0a\0", "echo\0", "/usr/bin/stop\0", "", "\0top\0"];
        assert_eq!(
            wanted.map(|cmdline| scope.has_cmdline(cmdline.as_bytes())),
            [true, true, true, false, false, false, false]
        );
    }

    #[test]
    fn users_are_in_a_range_or_in_it_in_any_profile() {
        let users = scope(&[], &[(Some(10), Some(12), false), (Some(20), Some(20), true)]).expect("a scope");
        let wanted = [9, 10, 12, 13, 20, 100_010, 300_020].map(|user| users.has_user(user));
        assert_eq!(wanted, [false, true, true, false, true, false, true]);
    }
}
