//! Data of the machine that a recording lacks: events that the kernel lost or does not have, and
//! programs that ended while they recorded the machine.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use esatto_probes::closest_ftrace_event;
use esatto_protozero::Fields;
use esatto_schema::tracing_service_event::DataSourcesReader;
use esatto_schema::tracing_service_event::field::TRACING_STARTED;
use esatto_schema::{ENDED_DATA_SOURCES_FIELD, TracePacketReader};
use esatto_trace::FtraceReport;

use crate::service_state::Programs;

/// Names of events in a line.
const MAX_EVENTS: usize = 20;
/// Characters of each of them.
const MAX_EVENT_CHARS: usize = 100;
/// Ends of programs that are kept.
const MAX_ENDS: usize = 100;

/// Data of the machine that a recording lacks.
#[derive(Debug, Default)]
pub(crate) struct MachineLosses {
    pub(crate) ftrace: FtraceReport,
    started_ns: Option<u64>,
    ends: Vec<End>,
}

/// A program that ended while it recorded the machine.
#[derive(Debug)]
struct End {
    at_ns: u64,
    program: String,
    sources: BTreeSet<String>,
}

impl MachineLosses {
    /// Looks at a packet with an event of the service.
    pub(crate) fn service_packet(&mut self, packet: &[u8]) {
        let reader = TracePacketReader::new(packet);
        let at_ns = reader.timestamp().unwrap_or(0);
        let Some(event) = reader.service_event() else { return };
        for found in Fields::new(event.as_bytes()) {
            match found.id {
                TRACING_STARTED => self.started_ns = Some(at_ns),
                ENDED_DATA_SOURCES_FIELD if self.ends.len() < MAX_ENDS => self.end(at_ns, found.as_bytes()),
                _ => {}
            }
        }
    }

    fn end(&mut self, at_ns: u64, sources: &[u8]) {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let mut ended: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for source in DataSourcesReader::new(sources).data_source() {
            ended.entry(text(source.producer_name())).or_default().insert(text(source.data_source_name()));
        }
        self.ends.extend(ended.into_iter().map(|(program, sources)| End { at_ns, program, sources }));
    }

    /// Returns a line for each program that ended.
    pub(crate) fn ends<'a>(&'a self, programs: &'a Programs) -> impl Iterator<Item = String> + use<'a> {
        self.ends.iter().map(|end| {
            let after = self.started_ns.map(|started| Duration::from_nanos(end.at_ns.saturating_sub(started)));
            let after = after.map_or_else(String::new, |after| format!(" after {:.1} s", after.as_secs_f64()));
            let is_back = programs.connected().any(|program| program.name == end.program);
            let lack = if is_back { "their data until it was back is missing" } else { "their later data is missing" };
            let sources = end.sources.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{} ended{after}, while it recorded {sources}: {lack}.", end.program)
        })
    }

    /// Returns a line about the events that the kernel lost.
    pub(crate) fn kernel_losses(&self) -> Option<String> {
        let lost = self.ftrace.lost_events();
        (lost > 0).then(|| {
            format!(
                "The kernel lost {lost} event{}, because its buffer for linux.ftrace was full. In the ftrace_config, a \
                 larger buffer_size_kb or a shorter drain_period_ms helps: see docs/concepts/losses.md.",
                if lost == 1 { "" } else { "s" }
            )
        })
    }

    /// Returns which events of the config were not recorded, and why.
    pub(crate) fn missing_events(&self) -> Option<String> {
        let unknown = listed(self.ftrace.unknown_events().iter(), |event| {
            let close = closest_ftrace_event(event).filter(|close| close != event);
            close.map_or_else(String::new, |close| format!(" (did you mean {close:?}?)"))
        });
        // Beside names of events, the list has remarks of this group.
        let failed = self.ftrace.failed_events().iter().filter(|event| !event.starts_with("perfetto/"));
        let failed = listed(failed, |_| String::new());
        let unknown = unknown.map(|events| format!("the kernel has no ftrace event {events}"));
        let failed = failed.map(|events| format!("the kernel did not switch on {events}"));
        let told: Vec<String> = unknown.into_iter().chain(failed).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// Lists names in quotes, each with a remark.
fn listed<'a>(names: impl Iterator<Item = &'a String>, remark: impl Fn(&str) -> String) -> Option<String> {
    let mut names = names.map(|name| format!("\"{name:.MAX_EVENT_CHARS$}\"{}", remark(name)));
    let told: Vec<String> = names.by_ref().take(MAX_EVENTS).collect();
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!told.is_empty()).then(|| told.join(", ") + &more)
}
