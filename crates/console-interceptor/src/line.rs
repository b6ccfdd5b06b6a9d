//! Formats one event as one line.

use std::borrow::Cow;

use esatto::schema::DebugAnnotationReader;

use crate::colors::{self, Color};
use crate::sequence_state::{Event, Kind, Sequence};

/// Columns of the track's title.
const TITLE_WIDTH: usize = 16;
const CATEGORY_WIDTH: usize = 5;
/// The duration of slices at least this long is shown.
const LONG_NS: u64 = 10_000_000;
/// Values nested deeper are shown as empty.
const MAX_DEPTH: u32 = 16;

const DIM: &str = "\x1b[90m";
const DEFAULT: &str = "\x1b[39m";
const RESET: &str = "\x1b[0m";

pub(crate) struct Line<'l> {
    pub(crate) out: &'l mut Vec<u8>,
    pub(crate) colors: bool,
}

impl Line<'_> {
    /// Appends the line of an event.
    pub(crate) fn event(&mut self, event: &Event<'_>, sequence: &Sequence, start_ns: u64) {
        self.style(DIM);
        // An event may carry a time from before the start.
        let seconds = (i128::from(event.time_ns) - i128::from(start_ns)) as f64 / 1e9;
        self.text(&format!("[{seconds:7.3}] "));
        let title = printable(event.title.as_bytes());
        if self.colors {
            let [r, g, b] = event.track_color;
            self.text(&format!("\x1b[48;2;{r};{g};{b}m {RESET}{DIM} {title:TITLE_WIDTH$}"));
        } else {
            self.text(&format!("{title:width$}", width = TITLE_WIDTH + 2));
        }
        self.padded(&event.category, CATEGORY_WIDTH);
        self.text(" ");
        for _ in 0..event.depth {
            self.text("-  ");
        }

        let color = colors::of_name(&event.name);
        let light = colors::lighter(color);
        if event.kind == Kind::End {
            self.style(DEFAULT);
            self.text("} ");
        }
        self.color(light);
        self.bytes(&event.name);
        self.style(RESET);
        if event.kind == Kind::Begin {
            self.style(DEFAULT);
            self.text(" {");
        }
        self.annotations(event, sequence, color, light);
        if event.duration_ns >= LONG_NS {
            self.style(DIM);
            self.text(&format!(" +{}ms", event.duration_ns / 1_000_000));
        }
        self.style(RESET);
        self.text("\n");
    }

    fn annotations(&mut self, event: &Event<'_>, sequence: &Sequence, color: Color, light: Color) {
        let mut annotations = event.fields.debug_annotations().peekable();
        if annotations.peek().is_none() {
            return;
        }
        self.color(color);
        self.text("(");
        for (number, annotation) in annotations.enumerate() {
            self.color(color);
            self.separator(number);
            self.name(&annotation, sequence);
            self.text(":");
            self.color(light);
            self.value(&annotation, sequence, MAX_DEPTH);
        }
        self.color(color);
        self.text(")");
    }

    fn name(&mut self, annotation: &DebugAnnotationReader<'_>, sequence: &Sequence) {
        match annotation.name_iid() {
            Some(iid) if iid != 0 => self.bytes(sequence.annotation_name(iid)),
            _ => self.bytes(annotation.name().unwrap_or_default()),
        }
    }

    fn value(&mut self, annotation: &DebugAnnotationReader<'_>, sequence: &Sequence, depth: u32) {
        let mut entries = annotation.dict_entries().peekable();
        let mut items = annotation.array_values().peekable();
        if let Some(value) = annotation.bool_value() {
            self.text(if value { "true" } else { "false" });
        } else if let Some(value) = annotation.uint_value() {
            self.text(&value.to_string());
        } else if let Some(value) = annotation.int_value() {
            self.text(&value.to_string());
        } else if let Some(value) = annotation.double_value() {
            self.text(&format!("{value:.6}"));
        } else if let Some(value) = annotation.string_value() {
            self.bytes(value);
        } else if let Some(iid) = annotation.string_value_iid() {
            self.bytes(sequence.string(iid));
        } else if let Some(value) = annotation.pointer_value() {
            self.text(&format!("{value:#x}"));
        } else if let Some(value) = annotation.legacy_json_value() {
            self.bytes(value);
        } else if depth > 0 && entries.peek().is_some() {
            self.text("{");
            for (number, entry) in entries.enumerate() {
                self.separator(number);
                self.name(&entry, sequence);
                self.text(":");
                self.value(&entry, sequence, depth - 1);
            }
            self.text("}");
        } else if depth > 0 && items.peek().is_some() {
            self.text("[");
            for (number, item) in items.enumerate() {
                self.separator(number);
                self.value(&item, sequence, depth - 1);
            }
            self.text("]");
        } else {
            self.text("{}");
        }
    }

    fn separator(&mut self, number: usize) {
        if number > 0 {
            self.text(", ");
        }
    }

    /// Appends exactly `width` bytes.
    fn padded(&mut self, text: &[u8], width: usize) {
        self.bytes(&text[..text.len().min(width)]);
        for _ in text.len()..width {
            self.text(" ");
        }
    }

    fn style(&mut self, style: &str) {
        if self.colors {
            self.text(style);
        }
    }

    fn color(&mut self, [r, g, b]: Color) {
        if self.colors {
            self.text(&format!("\x1b[38;2;{r};{g};{b}m"));
        }
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Appends a text of the program.
    fn bytes(&mut self, bytes: &[u8]) {
        self.text(&printable(bytes));
    }
}

/// Returns a text that neither ends the line nor controls the terminal.
fn printable(text: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(text);
    if !text.contains(char::is_control) {
        return text;
    }
    let escaped = |c: char| c.is_control().then(|| c.escape_default());
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match escaped(c) {
            Some(escape) => out.extend(escape),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}
