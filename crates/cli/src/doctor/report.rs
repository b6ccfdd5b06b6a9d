//! [`Report`]: all checks, for people and for scripts.

use esatto_trace::escape::Line;
use serde_json::json;

use super::check::{Check, State};
use crate::terminal::{Style, Terminal};
use esatto_trace::escape;

/// Columns of the states, with the space around them.
const STATE_COLUMNS: usize = 10;

#[derive(Debug)]
pub(super) struct Report {
    pub(super) sections: Vec<(&'static str, Vec<Check>)>,
}

impl Report {
    pub(super) fn has(&self, state: State) -> bool {
        self.checks().any(|check| check.state == state)
    }

    fn checks(&self) -> impl Iterator<Item = &Check> {
        self.sections.iter().flat_map(|(_, checks)| checks)
    }

    pub(super) fn to_text(&self, terminal: Terminal) -> String {
        let mut text = format!("{}\n", terminal.wrap(&system(), 2));
        for (title, checks) in &self.sections {
            text += &format!("\n{}\n", terminal.paint(Style::Strong, title));
            for check in checks {
                text += &lines(check, terminal);
            }
        }
        let count = self.checks().filter(|check| check.state == State::Missing).count();
        let (style, verdict) = match count {
            0 => (Style::Good, "This machine is ready.".to_owned()),
            1 => (Style::Bad, "One thing is missing.".to_owned()),
            _ => (Style::Bad, format!("{count} things are missing.")),
        };
        text + &format!("\n{}\n", terminal.paint(style, &verdict))
    }

    pub(super) fn to_json_text(&self) -> String {
        let checks: Vec<_> = self
            .sections
            .iter()
            .flat_map(|(section, checks)| checks.iter().map(move |check| (section, check)))
            .map(|(section, Check { id, state, text, remedy })| {
                json!({ "id": id, "section": section, "state": state.name(), "text": text, "remedy": remedy })
            })
            .collect();
        let ready = !self.has(State::Missing);
        let report = json!({ "ready": ready, "system": system(), "checks": checks });
        escape::json(&format!("{report:#}\n"))
    }
}

/// Returns the lines of a check, with its state in front.
fn lines(check: &Check, terminal: Terminal) -> String {
    let style = match check.state {
        State::Ready => Style::Good,
        State::Note => Style::Faint,
        State::Missing => Style::Bad,
    };
    let name = check.state.name();
    let indent = if terminal.is_narrow() { 2 } else { STATE_COLUMNS };
    let width = indent.max(name.len() + 3) - 2;
    let wrapped = terminal.wrap(&format!("  {name:<width$}{}", Line(&check.text)), indent);
    // Colours have no columns, so they come after the lines were broken.
    let mut text = wrapped.replacen(name, &terminal.paint(style, name), 1) + "\n";
    if let Some(remedy) = &check.remedy {
        let remedy = format!("{:indent$}remedy: {}", "", Line(remedy));
        text += &(terminal.wrap(&remedy, indent + 2) + "\n");
    }
    text
}

/// Returns the versions of this command and of the kernel.
fn system() -> String {
    let uname = rustix::system::uname();
    let part = |part: &std::ffi::CStr| Line(part.to_string_lossy()).to_string();
    format!(
        "esatto {} on {} {} ({})",
        env!("CARGO_PKG_VERSION"),
        part(uname.sysname()),
        part(uname.release()),
        part(uname.machine())
    )
}
