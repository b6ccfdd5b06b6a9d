//! [`Questions`]: the questions of `esatto config new`, and their answers.

use std::io::BufRead;
use std::path::PathBuf;

use super::free_name;
use super::wish::{Wish, base};
use crate::category_patterns;
use crate::console::say;
use crate::failure::{Attempt as _, Failure};
use crate::presets::{ABOUT_EVENTS, EVENTS};
use crate::quantities::{parse_size_kb, parse_time};
use crate::terminal::{Style, Terminal};

/// Longest answer.
const LONGEST_ANSWER: u64 = 64 << 10;

pub(super) struct Questions<R> {
    answers: R,
    terminal: Terminal,
}

impl<R: BufRead> Questions<R> {
    pub(super) fn new(answers: R, terminal: Terminal) -> Self {
        Self { answers, terminal }
    }

    /// Asks for everything but the file.
    pub(super) fn wish(&mut self) -> Result<Wish, Failure> {
        let preset = self.preset()?;
        let mut wish = Wish { preset, ..Wish::default() };
        let all = "Which categories of events of programs? Names with commas between, such as net,db.*";
        wish.categories = self.ask(all, "all", names)?;
        let files =
            ["in memory, where the newest data overwrite the oldest", "into the file at once, for long recordings"];
        let first = if wish.preset == "long" { 2 } else { 1 };
        wish.streams = self.choose("Where do the data go while the recording runs?", &files, first)? == 2;
        if wish.streams {
            let limit = self.ask("How large may the file become, such as 500M?", "any size", |answer| {
                optional(answer, parse_size_kb)
            })?;
            wish.max_size_kb = limit;
        } else {
            let size = size_of(&wish.preset)?;
            wish.ring_kb = self.ask("How much memory?", &size, |answer| optional(answer, parse_size_kb))?;
        }
        if !wish.streams {
            let ends = "Which trigger ends the recording? A name, as in `esatto trigger NAME`";
            wish.trigger = self.ask(ends, "none", |answer| Ok(answer.map(str::to_owned)))?;
        }
        let (question, default) = match wish.trigger {
            Some(_) => ("How long may it wait for the trigger, such as 8h?", "24h"),
            None => ("How long does it record, such as 10s or 5m?", "until Ctrl-C"),
        };
        wish.time = self.ask(question, default, |answer| optional(answer, parse_time))?;
        Ok(wish)
    }

    /// Asks for the file.
    pub(super) fn file(&mut self) -> Result<PathBuf, Failure> {
        let free = free_name();
        let question = "Which file gets the config? - shows it here";
        self.ask(question, &free.display().to_string(), |answer| match answer {
            None => Ok(free.clone()),
            Some("-") => Ok("-".into()),
            Some(name) if PathBuf::from(name).exists() => Err(format!("{name} exists; name another file")),
            Some(name) => Ok(name.into()),
        })
    }

    fn preset(&mut self) -> Result<String, Failure> {
        let presets = esatto_probes::presets::ALL.iter().map(|preset| (preset.name, preset.about));
        let all: Vec<(&str, &str)> = presets.chain([(EVENTS, ABOUT_EVENTS)]).collect();
        let lines: Vec<String> = all.iter().map(|(name, about)| format!("{name}: {about}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let chosen = self.choose("What do you want to record?", &lines, 1)?;
        Ok(all[chosen - 1].0.to_owned())
    }

    /// Asks for one of several answers. Returns its number, from 1.
    fn choose(&mut self, question: &str, answers: &[&str], default: usize) -> Result<usize, Failure> {
        say!("{}", self.terminal.paint(Style::Strong, &self.terminal.wrap(question, 2)));
        for (index, answer) in answers.iter().enumerate() {
            say!("{}", self.terminal.wrap(&format!("  {} {answer}", index + 1), 4));
        }
        let count = answers.len();
        let by_name = |answer: &str| answers.iter().position(|known| known.split(':').next() == Some(answer));
        self.ask("A number", &default.to_string(), |answer| match answer {
            None => Ok(default),
            Some(answer) => match answer.parse() {
                Ok(number @ 1..) if number <= count => Ok(number),
                _ => by_name(answer).map(|index| index + 1).ok_or_else(|| format!("it is no number from 1 to {count}")),
            },
        })
    }

    /// Asks until the answer is right. An empty answer is `None`.
    fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        parse: impl Fn(Option<&str>) -> Result<T, String>,
    ) -> Result<T, Failure> {
        loop {
            say!("{}", self.terminal.wrap(&format!("{question} [{default}]:"), 2));
            let answer = self.answer()?;
            match parse(Some(answer.trim()).filter(|answer| !answer.is_empty())) {
                Ok(value) => return Ok(value),
                Err(why) => say!("{}", self.terminal.wrap(&format!("  {why}"), 2)),
            }
        }
    }

    fn answer(&mut self) -> Result<String, Failure> {
        let mut line = Vec::new();
        std::io::Read::take(&mut self.answers, LONGEST_ANSWER)
            .read_until(b'\n', &mut line)
            .attempt(|| "cannot read the answer".to_owned())?;
        if !line.ends_with(b"\n") {
            let failure = Failure::new("no config was written", "the answers have ended");
            return Err(failure.hint("give them as options: `esatto config new --help`"));
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

/// Returns the size of all buffers of a preset.
fn size_of(preset: &str) -> Result<String, Failure> {
    let parser = esatto_text_format::Parser::new(crate::trace_config::message()?);
    let what = || "cannot read the preset".to_owned();
    let encoded = parser.parse(base(preset)?).attempt(what)?;
    let config = <esatto_schema::TraceConfig as esatto_protozero::Owned>::decode(&encoded).attempt(what)?;
    let total: u64 = config.buffers.iter().map(|buffer| u64::from(buffer.size_kb.unwrap_or(0))).sum();
    Ok(format!("{}M", total >> 10))
}

fn names(answer: Option<&str>) -> Result<Vec<String>, String> {
    let parts = answer.filter(|answer| *answer != "all").unwrap_or_default().split([',', ' ']);
    let names = parts.filter(|name| !name.is_empty()).map(category_patterns::parse).collect::<Result<Vec<_>, _>>()?;
    category_patterns::without_effect(&names).map_or(Ok(names), Err)
}

fn optional<T>(answer: Option<&str>, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    answer.map(parse).transpose()
}
