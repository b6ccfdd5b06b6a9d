//! [`Lockdown`]: the mode in which the service serves only producers of the user that it runs as.

use esatto_map::Set;
use esatto_schema::lockdown;

use crate::client_text::quoted;
use crate::context::Context;
use crate::encode::put;

/// Users whose first refusal is logged. The end of the mode logs how many producers were refused.
const MAX_LOGGED_USERS: usize = 16;

/// Lockdown mode. The config of a session switches it on and off.
#[derive(Debug, Default)]
pub(crate) struct Lockdown {
    /// The user whose session switched it on.
    set_by: Option<i32>,
    /// Connections of producers that were refused since then.
    refused: u64,
    /// As `refused`, since the start of the service.
    pub(crate) refused_in_all: u64,
    /// Users whose first refusal since then is logged.
    logged: Set<i32>,
}

impl Lockdown {
    pub(crate) const fn is_on(&self) -> bool {
        self.set_by.is_some()
    }

    /// Returns true if the mode keeps the producers of a user out of a service that runs as
    /// `own_uid`.
    pub(crate) const fn locks_out(&self, uid: i32, own_uid: i32) -> bool {
        self.is_on() && uid != own_uid
    }

    /// Switches the mode on, for a session of `uid`.
    pub(crate) fn set(&mut self, session: &str, uid: i32, own_uid: i32, cx: &mut Context<'_>) {
        if self.set_by.replace(uid).is_none() {
            cx.warn(format!("{session} of uid {uid} sets lockdown mode: only producers of uid {own_uid} are served"));
        }
    }

    /// Switches the mode off, for a session of `uid`.
    pub(crate) fn lift(&mut self, session: &str, uid: i32, cx: &mut Context<'_>) {
        if self.set_by.take().is_some() {
            let refused = core::mem::take(&mut self.refused);
            self.logged.clear();
            cx.warn(format!(
                "{session} of uid {uid} lifts lockdown mode: {refused} connections of producers were refused"
            ));
        }
    }

    /// Notes that the mode keeps out a producer that connects.
    pub(crate) fn refuse(&mut self, name: &[u8], uid: i32, own_uid: i32, cx: &mut Context<'_>) {
        self.refused += 1;
        self.refused_in_all += 1;
        let Some(set_by) = self.set_by else { return };
        // A refused program tries again and again.
        if self.logged.len() < MAX_LOGGED_USERS && self.logged.insert(uid) {
            cx.warn(format!(
                "producer {} of uid {uid} is refused: lockdown mode, set by uid {set_by}, serves only uid {own_uid}; \
                 further producers of this user are refused without a line",
                quoted(name)
            ));
        }
    }

    /// Encodes the mode for QueryServiceState, if it is on.
    pub(crate) fn told(&self, own_uid: i32) -> Option<Vec<u8>> {
        let set_by = self.set_by?;
        #[expect(clippy::cast_sign_loss, reason = "an int32 is encoded with its sign extended")]
        let encoded = |uid: i32| i64::from(uid) as u64;
        let mut told = Vec::new();
        put(&mut told, lockdown::UID, encoded(own_uid));
        put(&mut told, lockdown::SET_BY_UID, encoded(set_by));
        put(&mut told, lockdown::REFUSED, self.refused);
        Some(told)
    }
}
