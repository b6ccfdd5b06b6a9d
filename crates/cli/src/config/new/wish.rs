//! [`Wish`]: the wishes for a new config, and its text.

use core::fmt::Write as _;
use core::ops::Range;
use core::time::Duration;

use crate::category_patterns;
use crate::config::document::{Document, Form};
use crate::config::field_path::find;
use crate::config::rules;
use crate::failure::Failure;
use crate::presets::EVENTS;
use crate::ring_size::shares;

const EVENTS_TEXT: &str = include_str!("events.cfg");
/// Time between two writes into a file.
const WRITE_PERIOD_MS: u32 = 2500;
/// Time between two flushes of a recording into a file.
const FLUSH_PERIOD_MS: u32 = 5000;
/// Longest wait for a trigger, if the user says nothing else.
const TRIGGER_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Time after a trigger that is still recorded.
const STOP_DELAY_MS: u32 = 1000;

/// Comments of the presets and of [`EVENTS`] about the categories, and their replacement.
const ABOUT_TAGS: [&str; 2] = [
    "# Events of programs, except those that are tagged as slow or for debugging.",
    "# All events, except those that are tagged as slow or for debugging.",
];
const ABOUT_CATEGORIES: &str = "# Events of programs, of these categories only.";

/// Wishes for a new config.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    /// Name of a preset, or [`EVENTS`].
    pub(super) preset: String,
    /// Patterns; empty for those of the preset.
    pub(super) categories: Vec<String>,
    pub(super) time: Option<Duration>,
    /// Size of all buffers together.
    pub(super) ring_kb: Option<u32>,
    /// The service writes the file while it records.
    pub(super) streams: bool,
    pub(super) max_size_kb: Option<u32>,
    pub(super) trigger: Option<String>,
}

/// Returns the text of a preset, or that of the events of programs.
pub(super) fn base(name: &str) -> Result<&'static str, Failure> {
    if name == EVENTS {
        return Ok(EVENTS_TEXT);
    }
    let preset = esatto_probes::presets::find(name).ok_or_else(|| Failure::new("cannot use the preset", name))?;
    Ok(preset.text)
}

impl Wish {
    /// Returns the config.
    pub(super) fn text(&self) -> Result<String, Failure> {
        let base = parsed(base(&self.preset)?.to_owned())?;
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let place = |path: &str| {
            let places = base.places()?;
            Some(places[find(places, path)?].value.clone())
        };
        if let Some(ring_kb) = self.ring_kb {
            for (i, share) in shares(&base.config.buffers, ring_kb).into_iter().enumerate() {
                edits.extend(place(&format!("buffers[{i}].size_kb")).map(|at| (at, share.to_string())));
            }
        }
        if self.streams {
            edits.extend(place("flush_period_ms").map(|at| (at, FLUSH_PERIOD_MS.to_string())));
        }
        if let (Some(at), false) = (self.events_config(&base).and_then(|path| place(&path)), self.categories.is_empty())
        {
            let indent = indent_before(&base.content, at.start);
            edits.push((at, self.events(&indent)));
        }
        // From the end on, so that the places stay true.
        edits.sort_by_key(|(at, _)| core::cmp::Reverse(at.start));
        let mut text = String::from_utf8_lossy(&base.content).into_owned();
        for (at, value) in edits {
            text.replace_range(at, &value);
        }
        if !self.categories.is_empty() {
            text = text.replace(ABOUT_TAGS[0], ABOUT_CATEGORIES).replace(ABOUT_TAGS[1], ABOUT_CATEGORIES);
        }
        let text = self.head() + &text + &self.tail();
        let document = parsed(text.clone())?;
        match rules::findings(&document.config, &document.encoded).first() {
            // The answers are checked, so this is a mistake of a preset or of this module.
            Some(finding) => Err(Failure::new("cannot write the config", &finding.message)),
            None => Ok(text),
        }
    }

    /// Returns the path of the config of track events.
    fn events_config(&self, base: &Document) -> Option<String> {
        let is_it = |name: &[u8]| name == b"track_event";
        let index =
            base.config.data_sources.iter().position(|source| {
                source.config.as_ref().and_then(|config| config.name.as_deref()).is_some_and(is_it)
            })?;
        Some(format!("data_sources[{index}].config.track_event_config"))
    }

    /// Returns the config of track events of the wanted categories.
    fn events(&self, indent: &str) -> String {
        let mut events = category_patterns::track_events(&self.categories);
        if events.enabled_tags.is_empty() && events.disabled_categories.iter().any(|name| name.as_bytes() == b"*") {
            // Only what is named is recorded, and nothing has to be left out by its tag.
            events.disabled_tags.clear();
        }
        let lists = [
            ("disabled_categories", &events.disabled_categories),
            ("enabled_categories", &events.enabled_categories),
            ("disabled_tags", &events.disabled_tags),
            ("enabled_tags", &events.enabled_tags),
        ];
        let mut text = "{\n".to_owned();
        for (field, names) in lists {
            for name in names {
                // Writing to a string never fails.
                let _ = writeln!(text, "{indent}  {field}: {}", quoted(&String::from_utf8_lossy(name.as_bytes())));
            }
        }
        text + indent + "}"
    }

    fn head(&self) -> String {
        let preset = &self.preset;
        format!("# Made by `esatto config new` from {preset}. Record with it: `esatto record -c FILE`.\n")
    }

    fn tail(&self) -> String {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut lines = Vec::new();
        match (&self.trigger, self.time) {
            (Some(trigger), time) => {
                lines.push("\n# The recording ends at this trigger. Without it, nothing is written.".to_owned());
                lines.push("trigger_config {".to_owned());
                lines.push("  trigger_mode: STOP_TRACING".to_owned());
                lines.push(format!("  triggers {{ name: {} stop_delay_ms: {STOP_DELAY_MS} }}", quoted(trigger)));
                lines.push(format!("  trigger_timeout_ms: {}", ms(time.unwrap_or(TRIGGER_TIMEOUT))));
                lines.push("}".to_owned());
            }
            (None, Some(time)) => {
                lines.push("\n# The recording ends after this time.".to_owned());
                lines.push(format!("duration_ms: {}", ms(time)));
            }
            (None, None) => {}
        }
        if self.streams {
            lines.push("\n# The file grows while the recording runs.".to_owned());
            lines.push("write_into_file: true".to_owned());
            lines.push(format!("file_write_period_ms: {WRITE_PERIOD_MS}"));
        }
        if let Some(size_kb) = self.max_size_kb {
            lines.push(format!("max_file_size_bytes: {}", u64::from(size_kb) << 10));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn parsed(text: String) -> Result<Document, Failure> {
    Document::of("the new config".to_owned(), text.into_bytes(), Some(Form::Text))?
        .map_err(|mistakes| Failure::list("cannot write the config", mistakes))
}

/// Returns the white space before the line with this byte.
fn indent_before(content: &[u8], at: usize) -> String {
    let start = content[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    content[start..at].iter().take_while(|&&byte| byte == b' ').map(|_| ' ').collect()
}

/// Returns a string of the text format.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            // Writing to a string never fails.
            byte => _ = write!(quoted, "\\{byte:03o}"),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_config;

    fn config(wish: &Wish) -> esatto_schema::TraceConfig {
        parsed(wish.text().unwrap()).unwrap_or_else(|failure| panic!("{failure}")).config
    }

    #[test]
    fn the_base_of_events_is_the_default_of_record() {
        let base = parsed(EVENTS_TEXT.to_owned()).unwrap();
        assert_eq!(base.config, trace_config::track_events(false));
    }

    #[test]
    fn each_preset_takes_each_wish() {
        let names = esatto_probes::presets::ALL.iter().map(|preset| preset.name).chain([EVENTS]);
        for preset in names {
            let plain = Wish { preset: preset.to_owned(), ..Wish::default() };
            config(&plain);
            let ring = config(&Wish { ring_kb: Some(3 << 10), time: Some(Duration::from_secs(7)), ..plain.clone() });
            let total: u32 = ring.buffers.iter().filter_map(|buffer| buffer.size_kb).sum();
            assert!((3064..=3072).contains(&total) && ring.duration_ms == Some(7000), "{preset}: {total}");
            let long = config(&Wish { streams: true, max_size_kb: Some(1024), ..plain.clone() });
            assert_eq!((long.write_into_file, long.max_file_size_bytes), (Some(true), Some(1 << 20)), "{preset}");
            let trigger = config(&Wish { trigger: Some("a\"b\n\u{e9}".to_owned()), ..plain.clone() });
            let trigger = &trigger.trigger_config.unwrap().triggers[0];
            assert_eq!(trigger.name.as_deref(), Some("a\"b\n\u{e9}".as_bytes()), "{preset}");
        }
    }

    #[test]
    fn comments_stay_true() {
        let names = esatto_probes::presets::ALL.iter().map(|preset| preset.name).chain([EVENTS]);
        for preset in names {
            let wish = Wish { preset: preset.to_owned(), categories: vec!["net".to_owned()], ..Wish::default() };
            let text = wish.text().unwrap();
            assert!(text.contains(ABOUT_CATEGORIES) && !text.contains("except those"), "{preset}:\n{text}");
        }
    }

    #[test]
    fn only_the_wanted_categories_are_recorded() {
        let categories = vec!["net".to_owned(), "db.*".to_owned()];
        let wish = Wish { preset: "default".to_owned(), categories, ..Wish::default() };
        let config = config(&wish);
        let events =
            config.data_sources.iter().filter_map(|source| source.config.as_ref()?.track_event_config.as_ref());
        let events: Vec<_> = events.collect();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].enabled_categories, ["net", "db.*"]);
        assert_eq!(events[0].disabled_categories, ["*"]);
        assert!(events[0].disabled_tags.is_empty());
    }
}
