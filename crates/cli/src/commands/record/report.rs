//! The last lines of a recording: what is in the file, what is missing, and what to do next.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use esatto_schema::TraceConfig;
use esatto_schema::data_source_config::BufferExhaustedPolicy;
use esatto_trace::escape::Line;

use crate::commands;
use crate::console::{inform, say};
use crate::missed_programs::missed_programs;
use crate::progress::Size;
use crate::recording_session::Recorded;
use crate::shell_word::ShellWord;
use crate::trace_config::discards;
use crate::trace_output::Output;

/// Advice for a config whose triggers come too often.
const LIMIT_TRIGGERS: &str = "`max_per_24_h` in the config limits a trigger.";

/// Names of programs in a line.
const SHOWN_NAMES: usize = 8;

/// Says that triggers came more often than the config allows.
pub(super) fn limited(triggers: u64) -> String {
    let s = if triggers == 1 { "" } else { "s" };
    format!(
        "{triggers} trigger{s} came in vain because of max_per_24_h, which counts the triggers of a name in the last 24 \
         hours, over all sessions of the service."
    )
}

/// Says what is in the file, and what is missing.
///
/// `is_command` says that a command was recorded.
pub(in crate::commands) fn report(recorded: &Recorded, config: &TraceConfig, snapshots: usize, is_command: bool) {
    if !recorded.flushed {
        let unknown = "Some programs did not deliver the last events in time. The end of the trace is incomplete.";
        say!("{}", recorded.silent.flush_in_words().as_deref().unwrap_or(unknown));
    }
    if let Some(line) = recorded.silent.stop_in_words() {
        say!("{line}");
    }
    for (source, reason) in &recorded.problems {
        say!("{} did not record everything: {}.", Line(source), Line(reason.trim_end_matches('.')));
    }
    for line in recorded.machine.ends(&recorded.programs) {
        say!("{}", Line(line));
    }
    if let Some(mode) = recorded.programs.lockdown {
        say!("{}", mode.in_words(&recorded.programs));
    }
    for (id, names) in recorded.relays.shared_ids() {
        let names = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" and ");
        say!(
            "The relays {} have one machine id, 0x{id:08x}: the trace shows their machines as one. If they are two, start \
             each relay with another ESATTO_MACHINE_ID_HINT.",
            Line(names)
        );
    }
    for (machine, after) in recorded.relays.ends() {
        let after = after.map_or_else(String::new, |after| format!(" after {:.1} s", after.as_secs_f64()));
        say!(
            "The connection to machine {} broke{after}: the last events of its programs may be missing.",
            Line(machine)
        );
    }
    if let Some(line) = recorded.starts.in_words() {
        say!("{}", Line(line));
    }
    if recorded.has_events {
        for line in missed_programs(config, &recorded.programs, is_command) {
            say!("{}", Line(line));
        }
    }
    let compressed = config.compression.is_some() && config.compression_type.is_none();
    if compressed && recorded.has_events && recorded.file.is_some() && !recorded.is_compressed {
        say!(
            "The service did not compress the trace: it does not know `compression`. Use \
             `compression_type: COMPRESSION_TYPE_DEFLATE`, which every service knows."
        );
    }
    if recorded.gaps > 0 {
        let sources = config.data_sources.iter().filter_map(|source| source.config.as_deref());
        let mut policies = sources.filter_map(|source| source.buffer_exhausted_policy);
        let rest = if policies.any(|policy| policy == BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP) {
            ". Its threads waited in vain, up to 30 s: each thread that has written keeps 4 KiB of it, so there may be \
             no room for all of them"
        } else {
            ", or let its threads wait (`buffer_exhausted_policy: BUFFER_EXHAUSTED_STALL_THEN_DROP` in the config of \
             the data source, `stall` in a `SessionConfig`)"
        };
        say!(
            "Events were lost in {} place{}, because a program found its shared memory full. Give it more \
             (`Builder::shared_memory`; in C `PerfettoProducerBackendInitArgsSetShmemSizeHintKb`){rest}: see \
             docs/concepts/losses.md.",
            recorded.gaps,
            if recorded.gaps == 1 { "" } else { "s" }
        );
    }
    for line in unused_wishes(recorded, config) {
        say!("{}", Line(line));
    }
    if let Some(line) = recorded.machine.kernel_losses() {
        say!("{line}");
    }
    if recorded.losses > 0 {
        let remedy = match config.buffers.iter().any(discards) {
            true => {
                "A buffer with the fill policy DISCARD keeps nothing after its size was written once: use `fill_policy: \
                 RING_BUFFER`, or a larger size_kb."
            }
            false => "Larger buffers may help.",
        };
        say!("{} chunks or packets were lost. {remedy}", recorded.losses);
    }
    if recorded.has_events {
        let is_ring = recorded.losses == 0 && recorded.overwritten > 0;
        if let Some(line) = recorded.unreadable.in_words(config, is_ring) {
            say!("{line}");
        }
    }
    if recorded.limited_triggers > 0 {
        say!("{}", limited(recorded.limited_triggers));
    }
    if recorded.missed_snapshots > 0 {
        say!(
            "{} triggers got no snapshot: they came too fast, or at the end. {LIMIT_TRIGGERS}",
            recorded.missed_snapshots
        );
    }
    let clears = config.incremental_state_config.as_ref().and_then(|clears| clears.clear_period_ms);
    // Esatto's service asks for the names again.
    if recorded.overwritten > 0 && clears.unwrap_or(0) == 0 && !recorded.programs.is_esattos {
        say!(
            "The ring was overwritten, and with it names that later events may need. Add \
             `incremental_state_config {{ clear_period_ms: 1000 }}` to the config: this service is not Esatto's, which \
             asks for the names again."
        );
    }
    if recorded.has_failed() {
        // The failure comes last, and tells what is in the file.
        return;
    }
    let written = match &recorded.file {
        Some(path) => Some((recorded.bytes, path.clone())),
        None if snapshots > 0 => return,
        None => of_service(config).map(|path| {
            // The service has its own current folder.
            let meta = std::fs::metadata(&path).ok().filter(|meta| path.is_absolute() && meta.is_file());
            (meta.map(|meta| meta.len()), path)
        }),
    };
    let Some((bytes, path)) = written else { return };
    let name = if Output::is_stdout(&path) { "stdout".into() } else { path.to_string_lossy() };
    let name = Line(name);
    let word = ShellWord::new(&path);
    match bytes {
        Some(bytes) if recorded.has_events => {
            let has_file = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file());
            let next = if has_file {
                format!(", or run `esatto report {word}` for a page that needs no network, or `esatto info {word}`")
            } else {
                String::new()
            };
            inform!("Wrote {bytes} bytes into {name} ({}). Open it in https://ui.perfetto.dev{next}.", Size(bytes));
        }
        Some(bytes) => inform!("Wrote {bytes} bytes into {name}."),
        None if path.is_relative() => inform!("The service wrote the trace into {name}, in the folder of the service."),
        None => inform!("The service wrote the trace into {name}."),
    }
}

/// Tells which sizes of shared memory in the config are for programs that were not there.
fn unused_wishes(recorded: &Recorded, config: &TraceConfig) -> Vec<String> {
    let programs = &recorded.programs;
    if !programs.is_known || programs.omitted > 0 {
        return Vec::new();
    }
    let names: BTreeSet<&str> = programs.programs.iter().map(|program| program.name.as_str()).collect();
    let wanted = config.producers.iter().filter_map(|wish| wish.producer_name.as_ref());
    let wanted = wanted.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
    let unused = wanted.filter(|name| !names.contains(name.as_str()));
    let shown = names.iter().take(SHOWN_NAMES).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let line = |name| {
        format!(
            "`producers {{ producer_name: {name:?} }}` had no effect: no program has this name. The names are: {shown}."
        )
    };
    if names.is_empty() { Vec::new() } else { unused.map(line).collect() }
}

/// Returns the file that the service writes by itself.
fn of_service(config: &TraceConfig) -> Option<PathBuf> {
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(config.output_path.as_ref()?.as_bytes())))
}

/// Writes the HTML page of the trace beside it.
pub(super) fn write_page(recorded: &Recorded, config: &TraceConfig) {
    let Some(trace) = recorded.file.clone().or_else(|| of_service(config)) else { return };
    if !std::fs::metadata(&trace).is_ok_and(|meta| meta.is_file()) {
        say!("There is no report: {} is no file that can be read again.", Line(trace.display()));
        return;
    }
    match commands::report::write_beside(&trace) {
        Ok(page) => inform!("Wrote the report {}. Open it in a browser.", Line(page.display())),
        Err(failure) => say!("There is no report: {failure}"),
    }
}
