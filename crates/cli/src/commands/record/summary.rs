//! [`Summary`]: the result of a recording as JSON.

use core::time::Duration;

use esatto_schema::TraceConfig;
use esatto_trace::escape;
use serde_json::{Value, json};

use super::watch::Saved;
use crate::console;
use crate::failure::Failure;
use crate::recording_session::Recorded;

/// Amounts of a recording, for scripts.
#[derive(Debug, Default)]
pub(in crate::commands) struct Summary {
    file: Option<String>,
    bytes: Option<u64>,
    duration: Option<Duration>,
    has_events: bool,
    losses: Option<Value>,
    snapshots: Vec<Value>,
    programs: Vec<String>,
    service: Option<String>,
    /// Failure of a recording whose command went on.
    pub(super) error: Option<String>,
    /// Status of the recorded command.
    pub(super) command_status: Option<u8>,
}

impl Summary {
    /// Notes what a session has recorded.
    pub(in crate::commands) fn note(
        &mut self,
        recorded: &Recorded,
        saved: &Saved,
        config: &TraceConfig,
        duration: Duration,
    ) {
        let by_service = || {
            let path = config.output_path.as_deref().filter(|_| saved.files.is_empty())?;
            Some(String::from_utf8_lossy(path).into_owned())
        };
        self.file = recorded.file.as_ref().map(|path| path.to_string_lossy().into_owned()).or_else(by_service);
        self.bytes = recorded.bytes;
        self.duration = Some(duration);
        self.has_events = recorded.has_events || saved.has_events;
        self.losses = Some(json!({
            "chunks_and_packets": recorded.losses,
            "gaps_of_programs": recorded.gaps,
            "unreadable_packets": recorded.unreadable.unreadable,
            "kernel_events": recorded.machine.ftrace.lost_events(),
            "limited_triggers": recorded.limited_triggers,
            "missed_snapshots": recorded.missed_snapshots,
            "is_end_missing": !recorded.flushed || recorded.completed_by_service == Some(false),
        }));
        self.snapshots = saved.files.iter().map(|(file, bytes)| json!({ "file": file, "bytes": bytes })).collect();
        let mut programs: Vec<String> = recorded.programs.programs.iter().map(|program| program.name.clone()).collect();
        programs.sort_unstable();
        programs.dedup();
        self.programs = programs;
        self.service = Some(recorded.programs.service_version.clone()).filter(|version| !version.is_empty());
    }

    /// Returns the names of the programs that were connected.
    pub(in crate::commands) fn programs(&self) -> &[String] {
        &self.programs
    }

    /// Prints the summary.
    pub(in crate::commands) fn print(&self, result: &Result<u8, Failure>) -> std::io::Result<()> {
        let (status, error) = match result {
            Ok(status) => (*status, self.error.clone()),
            Err(failure) => (1, Some(failure.to_string())),
        };
        let value = json!({
            "status": status,
            "error": error,
            "file": self.file,
            "bytes": self.bytes,
            "seconds": self.duration.map(|duration| duration.as_secs_f64()),
            "has_events": self.has_events,
            "losses": self.losses,
            "snapshots": self.snapshots,
            "programs": self.programs,
            "service": self.service,
            "command_status": self.command_status,
            "messages": console::remembered_lines(),
        });
        console::print(&escape::json(&format!("{value:#}\n")))
    }
}
