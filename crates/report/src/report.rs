//! The report of a trace: what the page shows.

use std::io::{self, Read, Write};

use esatto_trace::{Engine, Summary};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::columns::Columns;
use crate::notices::{self, notices};
use crate::stacks::{Heap, StackTree, write_heaps};
use crate::texts::Texts;
use crate::timeline::Timeline;
use crate::trace_import::LeftOut;
use crate::{page, trace_import};

/// Importance of a [`Notice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoticeLevel {
    /// The file could not be read in parts.
    Error,
    /// The machine could not read the whole file, which may be sound.
    Unread,
    /// Recorded data is missing.
    Loss,
    /// Something in the trace is not as it should be.
    Warning,
    /// Worth knowing, and normal.
    Note,
}

impl NoticeLevel {
    fn rank(self) -> u8 {
        match self {
            Self::Error => 0,
            Self::Unread => 1,
            Self::Loss => 2,
            Self::Warning => 3,
            Self::Note => 4,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Error | Self::Unread => "error",
            Self::Loss => "loss",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A remark above the timeline: a loss, an error of the file, or something else worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// Its importance.
    pub level: NoticeLevel,
    /// The remark in one sentence.
    pub title: String,
    /// More about it; may be empty.
    pub text: String,
    /// Remedy, such as a line for the config; may be empty. Text between backquotes is code.
    pub remedy: String,
}

impl Notice {
    /// Creates a remark of one sentence.
    pub fn new(level: NoticeLevel, title: impl Into<String>) -> Self {
        Self { level, title: title.into(), text: String::new(), remedy: String::new() }
    }
}

/// A thread in the tables of the page.
#[derive(Debug)]
pub(crate) struct ThreadRow {
    pub(crate) name: String,
    pub(crate) tid: i64,
    pub(crate) process: Option<usize>,
    /// Its track, if it has one.
    pub(crate) track: Option<u32>,
    /// Time on processors, in nanoseconds.
    pub(crate) cpu_time: i64,
}

/// A process in the tables of the page.
#[derive(Debug)]
pub(crate) struct ProcessRow {
    pub(crate) name: String,
    pub(crate) pid: i64,
    pub(crate) cmdline: String,
}

/// A message in the log of the page.
#[derive(Debug)]
pub(crate) struct LogRow {
    pub(crate) time: i64,
    /// Level of Android's log: 2 (verbose) to 7 (fatal).
    pub(crate) level: u32,
    /// The number of its thread + 1, or 0.
    pub(crate) thread: u32,
    pub(crate) tag: crate::texts::Text,
    pub(crate) text: crate::texts::Text,
}

/// Report of a trace.
#[derive(Debug, Default)]
pub struct Report {
    pub(crate) title: String,
    pub(crate) summary: String,
    pub(crate) duration: i64,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) texts: Texts,
    pub(crate) arguments: Arguments,
    pub(crate) timeline: Timeline,
    pub(crate) slices: usize,
    pub(crate) processes: Vec<ProcessRow>,
    pub(crate) threads: Vec<ThreadRow>,
    pub(crate) logs: Vec<LogRow>,
    pub(crate) stacks: StackTree,
    pub(crate) heaps: Vec<Heap>,
    /// Kernel events that are not shown one by one.
    pub(crate) left_out_events: Vec<LeftOut>,
    /// The remark on them; empty if all are shown.
    pub(crate) left_out_title: String,
}

impl Report {
    /// Reads a trace, and makes its report. `title` is shown above it, usually the file's name.
    ///
    /// Errors of the trace are part of the report; everything readable is shown.
    pub fn read(trace: impl Read, title: &str) -> Self {
        let (engine, summary) = Summary::read_with_engine(trace);
        Self::new(&engine, &summary, title)
    }

    /// Makes the report of a trace that has been read.
    pub fn new(engine: &Engine, summary: &Summary, title: &str) -> Self {
        let mut report = Self { title: title.to_owned(), notices: notices(summary), ..Self::default() };
        trace_import::add(&mut report, engine, summary);
        notices::add_of_report(&mut report);
        report
    }

    /// Adds a remark above the timeline, before those that are less grave.
    pub fn add_notice(&mut self, level: NoticeLevel, title: String) {
        let place = self.notices.partition_point(|notice| notice.level.rank() <= level.rank());
        self.notices.insert(place, Notice::new(level, title));
    }

    /// Returns the remarks above the timeline, the gravest first.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Returns true if the trace had nothing that the page shows.
    pub fn is_empty(&self) -> bool {
        // Each trace has the process of the idle threads.
        self.timeline.tracks.is_empty() && self.processes.iter().all(|process| process.pid == 0)
    }

    /// Returns the number of slices and instants of the trace.
    pub fn slices(&self) -> usize {
        self.slices
    }

    /// Writes the page.
    ///
    /// # Errors
    ///
    /// Fails if `out` fails.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let mut columns = Columns::default();
        let tracks = self.timeline.write(&mut columns);
        self.arguments.write(&mut columns);
        self.stacks.write(&mut columns);
        write_heaps(&self.heaps, &mut columns);
        columns.deltas("log.time", self.logs.iter().map(|log| log.time));
        columns.unsigned("log.level", self.logs.iter().map(|log| log.level));
        columns.unsigned("log.thread", self.logs.iter().map(|log| log.thread));
        columns.unsigned("log.tag", self.logs.iter().map(|log| log.tag.0));
        columns.unsigned("log.text", self.logs.iter().map(|log| log.text.0));
        columns.texts("strings", self.texts.iter());
        let (columns, blocks) = columns.finish();
        let notice = |notice: &Notice| {
            json!({
                "level": notice.level.name(),
                "title": notice.title,
                "text": notice.text,
                "remedy": notice.remedy,
            })
        };
        let process =
            |process: &ProcessRow| json!({ "name": process.name, "pid": process.pid, "cmdline": process.cmdline });
        let thread = |thread: &ThreadRow| {
            json!({
                "name": thread.name,
                "tid": thread.tid,
                "process": thread.process.map_or(-1, |process| i64::try_from(process).unwrap_or(-1)),
                "cpuTime": thread.cpu_time,
                "track": thread.track.map_or(-1, i64::from),
            })
        };
        let heap = |heap: &Heap| {
            json!({
                "process": heap.process,
                "name": heap.name,
                "track": heap.track,
                "dumps": heap.dumps.len(),
            })
        };
        let description = json!({
            "title": self.title,
            "summary": self.summary,
            "duration": self.duration,
            "facts": self.facts.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect::<Value>(),
            "notices": self.notices.iter().map(notice).collect::<Value>(),
            "processes": self.processes.iter().map(process).collect::<Value>(),
            "threads": self.threads.iter().map(thread).collect::<Value>(),
            "heaps": self.heaps.iter().map(heap).collect::<Value>(),
            "leftOutEvents": self.left_out_title,
            "tracks": tracks,
            "columns": columns,
        });
        page::write(out, &description, &blocks)
    }
}
