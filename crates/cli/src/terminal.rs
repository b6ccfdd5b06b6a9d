//! [`Terminal`]: width and colours of the texts for people.

use std::io::IsTerminal as _;

use rustix::fd::AsFd;

/// Columns of a text that goes to no terminal.
const COLUMNS: usize = 100;
/// Least columns for which lines are broken.
const MIN_COLUMNS: usize = 20;

/// The output of a command as its reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    columns: usize,
    has_colours: bool,
}

/// Appearance of a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
}

impl Style {
    /// Parameter of the escape sequence.
    fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
        }
    }
}

impl Terminal {
    pub(crate) fn of_stdout() -> Self {
        Self::of(std::io::stdout(), std::io::stdout().is_terminal())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::of(std::io::stderr(), std::io::stderr().is_terminal())
    }

    /// Returns the columns of the terminal at standard error, however few they are.
    pub(crate) fn columns_of_stderr() -> usize {
        match rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col)) {
            0 => COLUMNS,
            columns => columns,
        }
    }

    fn of(stream: impl AsFd, is_terminal: bool) -> Self {
        if !is_terminal {
            return Self { columns: COLUMNS, has_colours: false };
        }
        let size = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let columns = if size == 0 { COLUMNS } else { size.clamp(MIN_COLUMNS, COLUMNS) };
        Self { columns, has_colours: !is_dumb && !is_set("NO_COLOR") }
    }

    /// Makes one without colours for tests.
    #[cfg(test)]
    pub(crate) fn plain(columns: usize) -> Self {
        Self { columns, has_colours: false }
    }

    /// Returns whether a line has no room for two columns.
    pub(crate) fn is_narrow(self) -> bool {
        self.columns < 2 * MIN_COLUMNS
    }

    /// Paints a text.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.has_colours { format!("\u{1b}[{}m{text}\u{1b}[0m", style.code()) } else { text.to_owned() }
    }

    /// Breaks a text between words. All lines but the first are indented. If too little room is
    /// left, they are indented by 2.
    pub(crate) fn wrap(self, text: &str, indent: usize) -> String {
        let indent = if indent + MIN_COLUMNS > self.columns { 2 } else { indent };
        wrapped(text, self.columns, &" ".repeat(indent))
    }

    /// Breaks a text between words, and begins each line with `lead`.
    pub(crate) fn wrap_with(self, lead: &str, text: &str) -> String {
        wrapped(&format!("{lead}{text}"), self.columns, lead)
    }
}

/// Returns whether the locale of the user has characters beyond ASCII.
pub(crate) fn has_unicode() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    // In the order of setlocale(3).
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_some_and(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Breaks a text between words. A word that is too long has a line of its own.
fn wrapped(text: &str, columns: usize, lead: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        let length = line.chars().count() + word.trim_end().chars().count();
        if length > columns && !line.trim().is_empty() && line.trim() != lead.trim() {
            out += line.trim_end();
            out.push('\n');
            lead.clone_into(&mut line);
        }
        line += word;
    }
    out + line.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let narrow = Terminal::plain(20);
        assert_eq!(narrow.wrap("io    Disks and file systems, waits", 6), "io    Disks and file\n  systems, waits");
        assert_eq!(narrow.wrap("a-word-that-is-longer-than-the-line b", 4), "a-word-that-is-longer-than-the-line\n  b");
        let wide = Terminal::plain(40);
        let text = "io    Disks and file systems: waits and more of them";
        assert_eq!(wide.wrap(text, 6), "io    Disks and file systems: waits and\n      more of them");
        assert_eq!(wide.wrap_with("  # ", &text[6..]), "  # Disks and file systems: waits and\n  # more of them");
    }

    #[test]
    fn colours_are_only_for_terminals() {
        let plain = Terminal::plain(80);
        assert_eq!(plain.paint(Style::Bad, "x"), "x");
        assert_eq!(Terminal { has_colours: true, ..plain }.paint(Style::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
