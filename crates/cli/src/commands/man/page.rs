//! A man page in roff.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::help_text::{Block, Help};

/// A program, as its page describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// The name in the synopsis of its help.
    pub(super) name: &'static str,
    /// One line, which `apropos` prints.
    pub(super) about: &'static str,
    pub(super) help: &'static str,
    /// Files that it reads and writes, each with its purpose.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Signals, each with its effect.
    pub(super) signals: &'static [(&'static str, &'static str)],
    /// Variables that the help leaves out.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// Used if the help does not name it.
    pub(super) exit_status: &'static str,
    /// Commands, each with its purpose.
    pub(super) examples: &'static [(&'static str, &'static str)],
    pub(super) see_also: &'static [&'static str],
}

/// Returns the page of a program that users start by this command.
pub(super) fn page(program: &Program, command: &str) -> String {
    let help = Help::parse(program.help);
    let name = command.replace(' ', "-");
    let mut page = Roff::new();
    // The caller completes it.
    page.control("TH", [name.as_str()]);
    page.control("SH", ["NAME"]).text([roman(format!("{name} - {}", program.about))]);

    page.control("SH", ["SYNOPSIS"]);
    for (at, line) in help.synopsis.iter().enumerate() {
        if at > 0 {
            page.control("br", []);
        }
        let (before, after) = line.split_once(program.name).unwrap_or(("", line));
        page.text([italic(before), bold(command), roman(after)]);
    }
    page.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut page, &help.description);

    let (environment, options): (Vec<_>, Vec<_>) =
        help.sections.iter().partition(|section| section.heading == "Environment");
    if options.iter().any(|section| !section.blocks.is_empty()) {
        page.control("SH", ["OPTIONS"]);
    }
    for section in options {
        if !section.heading.is_empty() {
            page.control("SS", [section.heading.as_str()]);
        }
        section.blocks.iter().for_each(|block| add_block(&mut page, block));
    }
    if !environment.is_empty() || !program.environment.is_empty() {
        page.control("SH", ["ENVIRONMENT"]);
        environment.iter().flat_map(|section| &section.blocks).for_each(|block| add_block(&mut page, block));
        list(&mut page, program.environment);
    }
    for (heading, entries) in [("FILES", program.files), ("SIGNALS", program.signals)] {
        if !entries.is_empty() {
            page.control("SH", [heading]);
            list(&mut page, entries);
        }
    }
    page.control("SH", ["EXIT STATUS"]);
    page.text([roman(help.exit_status.as_deref().unwrap_or(program.exit_status))]);
    if !program.examples.is_empty() {
        page.control("SH", ["EXAMPLES"]);
    }
    for (line, purpose) in program.examples {
        page.control("PP", []).text([roman(*purpose)]);
        page.control("PP", []).control("RS", ["4"]).text([bold(*line)]).control("RE", []);
    }
    page.control("SH", ["SEE ALSO"]);
    let others = program.see_also.iter().filter(|other| ***other != *name);
    let others: Vec<Inline> = others
        .enumerate()
        .flat_map(|(at, other)| [roman(if at > 0 { ", " } else { "" }), bold(*other), roman("(1)")])
        .collect();
    page.text(others);
    page.render()
}

fn paragraphs(page: &mut Roff, texts: &[String]) {
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            page.control("PP", []);
        }
        page.text([roman(text.as_str())]);
    }
}

fn add_block(page: &mut Roff, block: &Block) {
    match block {
        Block::Paragraph(text) => {
            page.control("PP", []).text([roman(text.as_str())]);
        }
        Block::Item { term, text } => {
            page.control("TP", []).text(styled(term));
            page.text([roman(text.as_str())]);
        }
    }
}

fn list(page: &mut Roff, entries: &[(&str, &str)]) {
    for (term, text) in entries {
        page.control("TP", []).text([bold(*term)]);
        page.text([roman(*text)]);
    }
}

/// Returns options in bold and their values in italics. A term without options is bold.
fn styled(term: &str) -> Vec<Inline> {
    let has_option = term.starts_with(['-', '[']);
    let style = |word: &str| {
        if !has_option || word.trim_start_matches('[').starts_with('-') { bold(word) } else { italic(word) }
    };
    term.split_inclusive(' ').map(style).collect()
}
