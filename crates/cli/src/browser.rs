//! The user's browser.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::console::say;

/// Why no browser is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBrowser {
    /// Browsers refuse to run as root, or show the user's files to root's.
    IsRoot,
    /// There is no display.
    NoDisplay,
    /// There is no `xdg-open`.
    NoXdgOpen,
}

impl NoBrowser {
    /// Tells the user why.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::IsRoot => "root opens no browser",
            Self::NoDisplay => "there is no display here",
            Self::NoXdgOpen => "xdg-open is not installed, and BROWSER is not set",
        }
    }
}

/// A browser to open pages with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Browser {
    program: OsString,
    /// `%s` stands for the address, which else comes last.
    args: Vec<String>,
}

impl Browser {
    /// Finds the browser of this session.
    pub(crate) fn of_this_session() -> Result<Self, NoBrowser> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(browser) = set("BROWSER").and_then(|value| Self::named(&value)) {
            return Ok(browser);
        }
        if rustix::process::geteuid().is_root() {
            return Err(NoBrowser::IsRoot);
        }
        if set("DISPLAY").or_else(|| set("WAYLAND_DISPLAY")).is_none() {
            return Err(NoBrowser::NoDisplay);
        }
        let path = set("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join("xdg-open").is_file()) {
            return Err(NoBrowser::NoXdgOpen);
        }
        Ok(Self { program: "xdg-open".into(), args: Vec::new() })
    }

    /// The first of the commands that the variable BROWSER lists, or `None` if it lists none.
    fn named(value: &OsStr) -> Option<Self> {
        // The name of one program may have spaces.
        if Path::new(value).is_file() {
            return Some(Self { program: value.into(), args: Vec::new() });
        }
        let first = value.to_str()?.split(':').next()?;
        let mut words = first.split_ascii_whitespace().map(str::to_owned);
        Some(Self { program: words.next()?.into(), args: words.collect() })
    }

    /// Opens a page. The browser goes on after this process, and says nothing on its terminal.
    pub(crate) fn open(&self, url: &str) {
        let mut command = Command::new(&self.program);
        let mut is_named = false;
        for arg in &self.args {
            is_named |= arg.contains("%s");
            command.arg(arg.replace("%s", url));
        }
        if !is_named {
            command.arg(url);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C is for this process only.
        command.process_group(0);
        let program = Path::new(&self.program).display().to_string();
        match command.spawn() {
            Ok(mut child) => {
                thread::spawn(move || {
                    if child.wait().is_ok_and(|status| !status.success()) {
                        say!("{program} has failed: open the address yourself");
                    }
                });
            }
            Err(error) => say!("Cannot start {program}: {error}. Open the address yourself"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_a_program_with_arguments() {
        let named = |value: &str| Browser::named(value.as_ref()).map(|browser| (browser.program, browser.args));
        let with = |program: &str, args: &[&str]| Some((program.into(), args.iter().map(|&arg| arg.into()).collect()));
        assert_eq!(named("firefox"), with("firefox", &[]));
        assert_eq!(named("chromium --app=%s:firefox"), with("chromium", &["--app=%s"]));
        assert_eq!(named("/bin/sh"), with("/bin/sh", &[]));
        assert_eq!(named(" "), None);
    }
}
