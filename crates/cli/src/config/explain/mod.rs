//! `esatto config explain`: a config with a comment before each line.
//!
//! The output is again a config in text format, so it can be kept and changed.

mod comment;
mod notes;

use std::collections::BTreeMap;
use std::process::ExitCode;

use esatto_text_format::{Place, Places};
use esatto_trace::escape::Line;
use prost_reflect::{FieldDescriptor, MessageDescriptor};

use self::comment::Comments;
use self::notes::Notes;
use super::document::{self, Document, Form};
use super::options;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::terminal::{Style, Terminal};
use crate::trace_config;

pub(crate) fn run(args: &options::Explain) -> Result<ExitCode, Failure> {
    let mut document = document::read_good(&args.file, None)?;
    if document.form != Form::Text {
        // Other forms have no lines to explain.
        let text = esatto_text_format::to_text(&trace_config::message()?, &document.encoded);
        document = Document::of(document.name, text.into_bytes(), Some(Form::Text))?
            .map_err(|mistakes| Failure::list("cannot explain the config", mistakes))?;
    }
    let text = explained(&document, Terminal::of_stdout())?;
    console::print(&text).attempt(|| "cannot show the config".to_owned())?;
    Ok(ExitCode::SUCCESS)
}

fn explained(document: &Document, terminal: Terminal) -> Result<String, Failure> {
    let message = trace_config::message()?;
    let notes = Notes::read();
    let Some(places) = document.places() else { return Ok(String::new()) };
    let fields = fields_of(places, &message);
    let source = Comments { notes: &notes, places, fields: &fields, content: &document.content };
    let comments = by_line(places, &source);
    let painted = |lead: &str, comment: &String| -> String {
        let wrapped = terminal.wrap_with(&format!("{lead}# "), comment);
        wrapped.lines().map(|line| terminal.paint(Style::Faint, line) + "\n").collect()
    };
    let mut text = String::new();
    for (index, line) in String::from_utf8_lossy(&document.content).lines().enumerate() {
        // Tabs are no columns.
        let line = Line(line.replace('\t', "  ")).to_string();
        let indent = line.len() - line.trim_start().len();
        let own = comments.get(&(index + 1));
        // The rest of a group of equal lines, such as counters, needs no comment of its own.
        if own.is_some() && own != comments.get(&index) {
            text.extend(own.into_iter().flatten().map(|comment| painted(&line[..indent], comment)));
        }
        text += &(line + "\n");
    }
    text.extend(source.defaults(None, &message).iter().map(|default| painted("", default)));
    Ok(text)
}

/// Returns the comments before each line.
fn by_line(places: &Places, source: &Comments<'_>) -> BTreeMap<usize, Vec<String>> {
    let strings = long_strings(places);
    let lines: Vec<usize> = places.iter().map(|place| comment_line(places, &strings, place)).collect();
    let mut comments: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, &line) in lines.iter().enumerate() {
        let is_other = |other: usize| places[other].name != places[index].name && lines[other] == line;
        let neighbours = index.checked_sub(1).into_iter().chain(Some(index + 1).filter(|&next| next < places.len()));
        let is_alone = !neighbours.into_iter().any(is_other);
        comments.entry(line).or_default().extend(source.of(index, is_alone));
    }
    comments
}

/// Returns the indexes of the values without fields that go over several lines.
fn long_strings(places: &Places) -> Vec<usize> {
    let mut has_fields = vec![false; places.len()];
    for parent in places.iter().filter_map(|place| place.parent) {
        has_fields[parent] = true;
    }
    let is_long = |place: &Place| places.line_of(place.value.start) != places.line_of(place.value.end);
    (0..places.len()).filter(|&index| !has_fields[index] && is_long(&places[index])).collect()
}

/// Returns the line before which a comment about a field stands.
fn comment_line(places: &Places, strings: &[usize], place: &Place) -> usize {
    let line = places.line_of(place.name.start);
    let Some(start) = places.start_of_line(line) else { return line };
    // The line may begin inside a string, in which there can be no comment.
    let before = strings.partition_point(|&index| places[index].name.start < start);
    let around = before.checked_sub(1).map(|last| &places[strings[last]]).filter(|string| start < string.value.end);
    around.map_or(line, |string| comment_line(places, strings, string))
}

/// Returns the descriptor of the field at each place; `None` for extensions.
fn fields_of(places: &Places, message: &MessageDescriptor) -> Vec<Option<FieldDescriptor>> {
    let mut fields: Vec<Option<FieldDescriptor>> = Vec::with_capacity(places.len());
    for place in places.iter() {
        let of_parent = |parent: usize| fields[parent].as_ref()?.kind().as_message().cloned();
        let message = place.parent.map_or_else(|| Some(message.clone()), of_parent);
        fields.push(message.and_then(|message| message.get_field(place.number)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Explains a text.
    fn of(text: &str) -> String {
        let document = Document::of("x".to_owned(), text.as_bytes().to_vec(), Some(Form::Text)).unwrap();
        let document = document.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        explained(&document, Terminal::plain(100)).unwrap()
    }

    #[test]
    fn all_fields_and_events_of_presets_have_notes() {
        let message = trace_config::message().unwrap();
        let notes = Notes::read();
        for preset in esatto_probes::presets::ALL {
            let parser = esatto_text_format::Parser::new(message.clone());
            let (_, places) = parser.parse_with_places(preset.text).unwrap();
            for (place, field) in places.iter().zip(fields_of(&places, &message)) {
                let field = field.unwrap();
                assert!(notes.of_field(&field).is_some(), "{}: no note about {}", preset.name, field.full_name());
                let name = preset.text[place.value.clone()].trim_matches('"');
                let section = match field.full_name() {
                    "perfetto.protos.FtraceConfig.ftrace_events" => "ftrace event",
                    "perfetto.protos.DataSourceConfig.name" => "data source",
                    _ => continue,
                };
                assert!(notes.of_name(section, name).is_some(), "{}: no note about {name}", preset.name);
            }
        }
    }

    #[test]
    fn an_explained_config_is_the_same_config() {
        let odd =
            "buffers{size_kb:64}\tbuffers:{\n\tsize_kb:[7]\n}data_sources{config{name:\"a\nb\" target_buffer:1}}# end";
        let odd = odd.replace("[7]", "7");
        let texts = esatto_probes::presets::ALL.iter().map(|preset| preset.text).chain([&odd[..]]);
        for text in texts {
            let parser = esatto_text_format::Parser::new(trace_config::message().unwrap());
            assert_eq!(parser.parse(of(text)).unwrap(), parser.parse(text).unwrap(), "{}", of(text));
        }
    }

    #[test]
    fn values_and_defaults_are_told() {
        let text = of("buffers { size_kb: 1024 }\nduration_ms: 60000\nflush_period_ms: 7\n");
        let expected = "\
# buffers: A buffer in the memory of the service. Data sources name it by its number, from 0. This
# is buffer 0.
# fill_policy is not set: RING_BUFFER: the newest data overwrite the oldest.
# size_kb: Its size: 1 MiB.
buffers { size_kb: 1024 }
# The recording ends after this time: 1 minute.
duration_ms: 60000
# Programs deliver their events at least this often: 7 ms.
flush_period_ms: 7
# write_into_file is not set: the trace stays in the buffers until the recording ends.
# flush_timeout_ms is not set: 5 s.
";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_switch_that_is_off_says_so() {
        let text = of("prefer_suspend_clock_for_duration: false\n");
        assert!(text.starts_with("# Switched off: The duration also counts"), "{text}");
    }
}
