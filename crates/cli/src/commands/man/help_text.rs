//! [`Help`]: the help of a program, taken apart for its man page.

/// Options and variables are indented by at most this; their descriptions by more.
const ITEM_INDENT: usize = 6;

/// The help of a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Help {
    /// Lines of the usage.
    pub(super) synopsis: Vec<String>,
    /// Paragraphs before the options.
    pub(super) description: Vec<String>,
    /// Options, environment, and all else that has a heading.
    pub(super) sections: Vec<Section>,
    pub(super) exit_status: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// Empty if there is no heading.
    pub(super) heading: String,
    pub(super) blocks: Vec<Block>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block {
    Paragraph(String),
    /// An option, a variable or an argument.
    Item {
        term: String,
        text: String,
    },
}

impl Help {
    /// Takes apart a text in the form that all programs here have.
    ///
    /// Lines that begin at the margin are the usage, headings (which end in a colon), or
    /// paragraphs. Indented lines are items. A term and its description are two spaces or a line
    /// apart.
    pub(super) fn parse(text: &str) -> Self {
        let mut help = Self::default();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if line.is_empty() {
                continue;
            }
            if let Some(usage) = line.strip_prefix("Usage: ") {
                help.synopsis.push(usage.to_owned());
                while let Some(more) = lines.next_if(|line| line.starts_with(' ')) {
                    help.synopsis.push(more.trim().to_owned());
                }
            } else if line.starts_with(' ') {
                let item = item(line, || lines.next_if(|line| indent(line) > ITEM_INDENT));
                help.section().blocks.push(item);
            } else if let Some(heading) = heading(line, lines.peek()) {
                help.sections.push(Section { heading: heading.to_owned(), blocks: Vec::new() });
            } else {
                let mut paragraph = line.to_owned();
                while let Some(more) = lines.next_if(|line| !line.is_empty() && !line.starts_with(' ')) {
                    join(&mut paragraph, more);
                }
                help.add_paragraph(paragraph);
            }
        }
        help
    }

    fn add_paragraph(&mut self, paragraph: String) {
        if let Some(status) = paragraph.strip_prefix("Exit status: ") {
            self.exit_status = Some(status.to_owned());
        } else if self.sections.is_empty() {
            self.description.push(paragraph);
        } else {
            self.section().blocks.push(Block::Paragraph(paragraph));
        }
    }

    fn section(&mut self) -> &mut Section {
        if self.sections.is_empty() {
            self.sections.push(Section::default());
        }
        self.sections.last_mut().expect("there is one")
    }
}

/// Returns a line without its colon if items follow it. A colon also ends lines of paragraphs.
fn heading<'t>(line: &'t str, next: Option<&&str>) -> Option<&'t str> {
    line.strip_suffix(':').filter(|_| next.is_some_and(|next| next.starts_with(' ')))
}

/// Returns the item that begins with this line. `next` returns the next line of its description.
fn item<'t>(line: &'t str, mut next: impl FnMut() -> Option<&'t str>) -> Block {
    let line = line.trim();
    // A long term may be only one space away from its description.
    let (term, text) = line.split_once("  ").unwrap_or_else(|| line.split_at(term_length(line)));
    let mut text = text.trim().to_owned();
    while let Some(more) = next() {
        join(&mut text, more);
    }
    Block::Item { term: term.to_owned(), text }
}

/// Returns the length of the options at the beginning, with their values, which are in capitals.
fn term_length(line: &str) -> usize {
    let is_term = |word: &str| word.starts_with(['-', '[']) || !word.contains(|c: char| c.is_ascii_lowercase());
    let mut end = 0;
    for word in line.split_inclusive(' ') {
        if !is_term(word.trim_end()) {
            break;
        }
        end += word.len();
    }
    line[..end].trim_end().len()
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more.trim());
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Tells the time.

Usage: clock [OPTIONS]
       clock --set TIME

  -z, --zone ZONE   Zone of the
                    clock
      --set TIME
                    Set it
      --round
      --in-zone ZONE for one ZONE

Environment:
  TZ  The same

A zone is one of these:
a name or a number.

Exit status: 0 told, 1
failed.
";

    fn item(term: &str, text: &str) -> Block {
        Block::Item { term: term.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_help_is_taken_apart() {
        let help = Help::parse(HELP);
        assert_eq!(help.synopsis, ["clock [OPTIONS]", "clock --set TIME"]);
        assert_eq!(help.description, ["Tells the time."]);
        assert_eq!(help.exit_status.as_deref(), Some("0 told, 1 failed."));
        let options = vec![
            item("-z, --zone ZONE", "Zone of the clock"),
            item("--set TIME", "Set it"),
            item("--round", ""),
            item("--in-zone ZONE", "for one ZONE"),
        ];
        let environment =
            vec![item("TZ", "The same"), Block::Paragraph("A zone is one of these: a name or a number.".to_owned())];
        let section = |heading: &str, blocks| Section { heading: heading.to_owned(), blocks };
        assert_eq!(help.sections, [section("", options), section("Environment", environment)]);
    }
}
