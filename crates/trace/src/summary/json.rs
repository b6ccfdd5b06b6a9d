//! The summary as JSON, for programs.

use serde_json::{Map, Value, json};

use super::Summary;
use crate::service_report::SystemInfo;

impl Summary {
    /// Returns the summary as a JSON object.
    ///
    /// The keys are stable; new ones may be added. Times are nanoseconds of the trace clock. `null`
    /// stands for values that the trace does not contain.
    ///
    /// | key | value |
    /// |---|---|
    /// | `errors` | errors of the file: `[{kind, offset, message}]`; `kind` is `torn`, `foreign`, `garbage`, `inflate`, `malformed`, `empty`, `io`, `limit` or `codec` |
    /// | `more_errors` | how many errors are not in the list |
    /// | `unread_bytes` | bytes after the error at which reading ended, or `null` |
    /// | `packets`, `packet_bytes`, `compressed_packets`, `inflated_bytes`, `gzipped`, `skipped_packets` | numbers and a bool |
    /// | `packets_by_type` | `{TYPE: {packets, bytes}}`, types named as in the schema |
    /// | `machines` | `[{id, name, ahead_ns, system}]`, the host with id 0 first; `ahead_ns`: by how much its clocks are ahead of those of the host; `system` as below |
    /// | `sequences` | `[{id, machine_id, uid, pid, packets, bytes, begins, state_clears, skipped_packets, losses, loss_causes: {CAUSE: n}, apart_ns}]` |
    /// | `processes` | `[{machine_id, pid, name, cmdline: [], parent_pid, uid, connected_ns, enabled_ns, first_packet_ns, missing_ns, slices, threads: [{tid, name, slices}]}]` |
    /// | `process_count`, `thread_count`, `track_count`, `tracks_with_slices` | numbers |
    /// | `tracks` | `[{machine_id, type, uuid, name, pid, process_name, tid, thread_name, lanes, lanes_with_slices, slices, counter_values}]`, `uuid` as a decimal string |
    /// | `slices` | `{count, instants, unfinished, max_depth, by_name: [{name, track_type, count, instants, unfinished, total_ns, min_ns, max_ns}]}` |
    /// | `counters` | `[{machine_id, name, scope, pid, values, min, max, first, last}]` |
    /// | `counter_values`, `flows`, `states`, `annotations`, `arguments`, `distinct_arguments`, `ftrace_events`, `early_ftrace_events` | numbers |
    /// | `scheduling_gap_ns` | begin and end of the longest time without switches of threads in which one seems to run, or null |
    /// | `categories` | `{CATEGORY: slices}` |
    /// | `clocks` | `{trace_clock, snapshots, sequence_clocks, list: [{machine_id, id, name, snapshots, first, last}]}` |
    /// | `start_ns`, `end_ns`, `duration_ns`, `first_packet_ns`, `last_packet_ns` | numbers |
    /// | `losses` | `[{place, what, number, expected}]` |
    /// | `uuid`, `config_text` | strings |
    /// | `system` | `{sysname, release, version, machine, service_version, num_cpus, page_size, ram_bytes, timezone_off_mins}` |
    /// | `stats` | `{buffers: [{FIELD: n}], chunks_discarded, patches_discarded, invalid_packets, flushes_requested, flushes_succeeded, flushes_failed, final_flush_succeeded}` |
    /// | `service_events` | `[{name, ts_ns, machine_id, machine_names: [], data_sources: [{producer, name}]}]` |
    /// | `triggers` | `[{name, ts_ns}]` |
    /// | `data_source_problems` | `[{data_source, reason}]` |
    /// | `problems` | `{RULE: n}`: rules of the format that the trace breaks |
    /// | `interning_errors` | a number |
    /// | `parts` | `[{name, machine_id, packets, first_packet_ns, last_packet_ns, errors: [], uuid}]`: the traces, if several were read as one |
    pub fn to_json(&self) -> Value {
        let mut all = self.contents();
        for (key, value) in self.circumstances() {
            all.insert(key, value);
        }
        Value::Object(all)
    }

    /// Returns the JSON object as text: indented, ending with a newline, and with all characters
    /// escaped that [are unsafe](crate::escape::is_unsafe) to show.
    pub fn to_json_text(&self) -> String {
        crate::escape::json(&format!("{:#}\n", self.to_json()))
    }

    fn contents(&self) -> Map<String, Value> {
        let by_type: Map<String, Value> = self
            .packets_by_type
            .iter()
            .map(|(name, entry)| (name.clone(), json!({"packets": entry.packets, "bytes": entry.bytes})))
            .collect();
        let processes = self.processes.iter().map(|process| {
            let threads = process.threads.iter();
            let threads = threads.map(|t| json!({"tid": t.tid, "name": t.name, "slices": t.slices}));
            json!({
                "machine_id": process.machine_id,
                "pid": process.pid,
                "name": process.name,
                "cmdline": process.cmdline,
                "parent_pid": process.parent_pid,
                "uid": process.uid,
                "connected_ns": process.connected_ns,
                "enabled_ns": process.enabled_ns,
                "first_packet_ns": process.first_packet_ns,
                "missing_ns": process.missing_ns,
                "slices": process.slices,
                "threads": threads.collect::<Vec<_>>(),
            })
        });
        let tracks = self.tracks.iter().map(|track| {
            json!({
                "machine_id": track.machine_id,
                "type": track.track_type.name(),
                "uuid": track.uuid.to_string(),
                "name": track.name,
                "pid": track.pid,
                "process_name": track.process_name,
                "tid": track.tid,
                "thread_name": track.thread_name,
                "lanes": track.lanes,
                "lanes_with_slices": track.lanes_with_slices,
                "slices": track.slices,
                "counter_values": track.counter_values,
            })
        });
        let by_name = self.slices.by_name.iter().map(|entry| {
            json!({
                "name": entry.name,
                "track_type": entry.track_type.name(),
                "count": entry.count,
                "instants": entry.instants,
                "unfinished": entry.unfinished,
                "total_ns": entry.total_ns,
                "min_ns": entry.min_ns,
                "max_ns": entry.max_ns,
            })
        });
        let counters = self.counters.iter().map(|counter| {
            json!({
                "machine_id": counter.machine_id,
                "name": counter.name,
                "scope": counter.scope,
                "pid": counter.pid,
                "values": counter.values,
                "min": counter.min,
                "max": counter.max,
                "first": counter.first,
                "last": counter.last,
            })
        });
        let value = json!({
            "packets": self.packets,
            "packet_bytes": self.packet_bytes,
            "compressed_packets": self.compressed_packets,
            "inflated_bytes": self.inflated_bytes,
            "gzipped": self.gzipped,
            "skipped_packets": self.skipped_packets,
            "packets_by_type": by_type,
            "process_count": self.processes.len(),
            "thread_count": self.thread_count(),
            "processes": processes.collect::<Vec<_>>(),
            "track_count": self.track_count(),
            "tracks_with_slices": self.tracks_with_slices(),
            "tracks": tracks.collect::<Vec<_>>(),
            "slices": {
                "count": self.slices.count,
                "instants": self.slices.instants,
                "unfinished": self.slices.unfinished,
                "max_depth": self.slices.max_depth,
                "by_name": by_name.collect::<Vec<_>>(),
            },
            "counters": counters.collect::<Vec<_>>(),
            "counter_values": self.counter_values(),
            "flows": self.flows,
            "states": self.states,
            "annotations": self.annotations,
            "arguments": self.arguments,
            "distinct_arguments": self.distinct_arguments,
            "categories": self.categories,
            "ftrace_events": self.ftrace_events,
            "early_ftrace_events": self.early_ftrace_events,
            "scheduling_gap_ns": self.scheduling_gap_ns.map(|(from, to)| [from, to]),
        });
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    fn circumstances(&self) -> Map<String, Value> {
        let errors = self
            .errors
            .iter()
            .map(|error| json!({"kind": error.kind(), "offset": error.offset(), "message": error.to_string()}));
        let sequences = self.sequences.iter().map(|sequence| {
            json!({
                "id": sequence.id,
                "machine_id": sequence.machine_id,
                "uid": sequence.uid,
                "pid": sequence.pid,
                "packets": sequence.packets,
                "bytes": sequence.bytes,
                "begins": sequence.begins,
                "state_clears": sequence.state_clears,
                "skipped_packets": sequence.skipped_packets,
                "losses": sequence.losses,
                "loss_causes": sequence.loss_causes,
                "apart_ns": sequence.apart_ns,
            })
        });
        let clocks = self.clocks.iter().map(|clock| {
            json!({
                "machine_id": clock.machine_id,
                "id": clock.id,
                "name": clock.name,
                "snapshots": clock.snapshots,
                "first": clock.first,
                "last": clock.last,
            })
        });
        let losses = self.losses();
        let losses = losses.iter().map(
            |loss| json!({"place": loss.place, "what": loss.what, "number": loss.number, "expected": loss.expected}),
        );
        let machines = self.machines.iter().map(|machine| {
            json!({
                "id": machine.id,
                "name": machine.name(),
                "ahead_ns": machine.ahead_ns,
                "system": machine.system.as_ref().map(system_to_json),
            })
        });
        let system = self.system.as_ref().map(system_to_json);
        let stats = self.stats.as_ref().map(|stats| {
            json!({
                "buffers": stats.buffers,
                "chunks_discarded": stats.chunks_discarded,
                "patches_discarded": stats.patches_discarded,
                "invalid_packets": stats.invalid_packets,
                "flushes_requested": stats.flushes_requested,
                "flushes_succeeded": stats.flushes_succeeded,
                "flushes_failed": stats.flushes_failed,
                "final_flush_succeeded": stats.final_flush_succeeded,
            })
        });
        let service_events = self.service_events.iter().map(|event| {
            let sources = event.data_sources.iter();
            let sources = sources.map(|source| json!({"producer": source.producer, "name": source.name}));
            json!({
                "name": event.name,
                "ts_ns": event.ts_ns,
                "machine_id": event.machine_id,
                "machine_names": event.machine_names,
                "data_sources": sources.collect::<Vec<_>>(),
            })
        });
        let data_source_problems = self
            .data_source_problems
            .iter()
            .map(|problem| json!({"data_source": problem.data_source, "reason": problem.reason}));
        let missing_events = self.ftrace_report.missing_events();
        let missing_events = missing_events
            .map(|(event, reason)| json!({"data_source": "linux.ftrace", "reason": format!("{event}: {reason}")}));
        let triggers = self.triggers.iter().map(|event| json!({"name": event.name, "ts_ns": event.ts_ns}));
        let value = json!({
            "errors": errors.collect::<Vec<_>>(),
            "more_errors": self.more_errors,
            "unread_bytes": self.unread_bytes,
            "machines": machines.collect::<Vec<_>>(),
            "sequences": sequences.collect::<Vec<_>>(),
            "clocks": {
                "trace_clock": self.trace_clock,
                "snapshots": self.clock_snapshots,
                "sequence_clocks": self.sequence_clocks,
                "list": clocks.collect::<Vec<_>>(),
            },
            "start_ns": self.bounds_ns.map(|bounds| bounds.0),
            "end_ns": self.bounds_ns.map(|bounds| bounds.1),
            "duration_ns": self.duration_ns(),
            "first_packet_ns": self.packet_times_ns.map(|times| times.0),
            "last_packet_ns": self.packet_times_ns.map(|times| times.1),
            "losses": losses.collect::<Vec<_>>(),
            "uuid": self.uuid,
            "config_text": self.config_text,
            "system": system,
            "stats": stats,
            "service_events": service_events.collect::<Vec<_>>(),
            "triggers": triggers.collect::<Vec<_>>(),
            "data_source_problems": data_source_problems.chain(missing_events).collect::<Vec<_>>(),
            "problems": self.problems,
            "interning_errors": self.interning_errors,
            "parts": self.parts_json(),
        });
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

fn system_to_json(system: &SystemInfo) -> Value {
    json!({
        "sysname": system.sysname,
        "release": system.release,
        "version": system.version,
        "machine": system.machine,
        "service_version": system.service_version,
        "num_cpus": system.num_cpus,
        "page_size": system.page_size,
        "ram_bytes": system.ram_bytes,
        "timezone_off_mins": system.timezone_off_mins,
    })
}
