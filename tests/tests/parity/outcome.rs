//! Outcome of a scenario, without the parts that may differ.

use esatto_tests::wire::{self, Proto, Value};
use std::collections::BTreeSet;
use std::io::Read as _;

/// Parts that are compared in addition to the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Buffers with V2: the packets of each sequence, the marks of losses, and all statistics that
    /// v56 has.
    V2,
    /// The same without the marks, where v58 has other rules for them than v56.
    V2WithoutMarks,
    /// Other buffers: the order of all packets, and the statistics that do not depend on how a
    /// buffer is organised.
    V1,
}

/// Packets, statistics and commands, as text.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The packets of each read.
    reads: Vec<Vec<Packet>>,
    stats: Vec<Vec<u8>>,
    commands: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet {
    sequence: u64,
    is_marked: bool,
    text: String,
}

/// Field of TracePacket: packets, deflated.
const COMPRESSED_PACKETS: u32 = 50;

/// Statistics of a buffer that do not depend on its implementation.
const COUNTERS: &[(u32, &str)] = &[(5, "patches_succeeded"), (6, "patches_failed")];

/// Statistics that V2 also counts.
const COUNTERS_V2: &[(u32, &str)] = &[
    (12, "buffer_size"),
    (1, "bytes_written"),
    (2, "chunks_written"),
    (13, "bytes_overwritten"),
    (14, "bytes_read"),
    (15, "padding_bytes_written"),
    (16, "padding_bytes_cleared"),
    (10, "chunks_rewritten"),
    (3, "chunks_overwritten"),
    (18, "chunks_discarded"),
    (17, "chunks_read"),
    (11, "chunks_committed_out_of_order"),
    (4, "write_wrap_count"),
    (9, "abi_violations"),
    (19, "trace_writer_packet_loss"),
];

/// Statistics of the whole service.
const SERVICE_COUNTERS: &[(u32, &str)] = &[
    (2, "producers_connected"),
    (3, "producers_seen"),
    (4, "data_sources_registered"),
    (5, "data_sources_seen"),
    (6, "tracing_sessions"),
    (7, "total_buffers"),
    (8, "chunks_discarded"),
    (9, "patches_discarded"),
    (10, "invalid_packets"),
    (12, "flushes_requested"),
    (13, "flushes_succeeded"),
    (14, "flushes_failed"),
    (15, "final_flush_outcome"),
];

impl Outcome {
    pub(crate) fn read(&mut self, packets: &[Vec<u8>]) {
        let mut normal: Vec<Packet> = Vec::new();
        for packet in packets.iter().flat_map(|packet| decompressed(packet)) {
            let next = Packet::new(&packet);
            let repeats_a_snapshot = next.text.starts_with("clock_snapshot") && normal.last() == Some(&next);
            if !repeats_a_snapshot {
                normal.push(next);
            }
        }
        self.reads.push(normal);
    }

    pub(crate) fn stats(&mut self, stats: &[u8]) {
        self.stats.push(stats.to_vec());
    }

    /// Notes a message to a consumer, in its place among the commands.
    pub(crate) fn told(&mut self, text: &str) {
        self.commands.push(format!("told {text}"));
    }

    /// Commands with a config (setup and start) without the session's id.
    pub(crate) fn command(&mut self, number: u32, body: &[u8]) {
        let describe = |(field, value): (u32, Value<'_>)| match value {
            Value::Bytes(config) if matches!((number, field), (1 | 6, 2)) => {
                format!("{field}={{{}}}", fields_but(4, config))
            }
            value => show(field, value),
        };
        self.commands.push(format!("command {number}: {}", list(wire::fields(body).into_iter().map(describe))));
    }

    pub(crate) fn assert_equal(&self, ours: &Self, rules: Rules) {
        compare_lines("commands", &self.commands, &ours.commands);
        assert_eq!(self.reads.len(), ours.reads.len());
        for (number, (theirs, ours)) in self.reads.iter().zip(&ours.reads).enumerate() {
            let (theirs, ours) = (lines(theirs, rules), without_additions(lines(ours, rules), theirs));
            compare_lines(&format!("packets of read {number}"), &theirs, &ours);
        }
        for (theirs, ours) in self.stats.iter().zip(&ours.stats) {
            compare_lines("statistics", &counters(theirs, rules), &counters(ours, rules));
        }
    }
}

/// Our packets without those that only our service writes (`docs/spec/service.md` §15, §16): the
/// event that names the data sources that did not acknowledge their stop, and the statistics of the
/// end, if theirs ends without statistics.
fn without_additions(mut ours: Vec<String>, theirs: &[Packet]) -> Vec<String> {
    ours.retain(|line| !line.contains(r#"69="\x92\xfa\x01"#));
    let is_stats = |line: &str| line.contains("trace_stats");
    if ours.last().is_some_and(|line| is_stats(line)) && !theirs.last().is_some_and(|last| is_stats(&last.text)) {
        ours.pop();
    }
    ours
}

/// The packets in a compressed one, or it.
fn decompressed(packet: &[u8]) -> Vec<Vec<u8>> {
    let Some(compressed) = wire::last(packet, COMPRESSED_PACKETS) else { return vec![packet.to_vec()] };
    let mut trace = Vec::new();
    flate2::read::ZlibDecoder::new(compressed).read_to_end(&mut trace).expect("zlib");
    wire::all(&trace, 1).into_iter().map(<[u8]>::to_vec).collect()
}

fn lines(packets: &[Packet], rules: Rules) -> Vec<String> {
    let mut packets = packets.to_vec();
    if rules != Rules::V1 {
        // V2 has the order of commits. Stable: each sequence stays in order. The service's own
        // packets are sequence 1, at the begin and at the end.
        let data = |packet: &&Packet| packet.sequence != 1;
        let first = packets.iter().position(|packet| data(&packet)).unwrap_or(packets.len());
        let last = packets.iter().rposition(|packet| data(&packet)).map_or(first, |last| last + 1);
        packets[first..last].sort_by_key(|packet| packet.sequence);
    }
    let mut seen = BTreeSet::new();
    let line = |packet: Packet| {
        // The trace does not say if a packet was before it.
        let is_known = !seen.insert(packet.sequence) || packet.text.contains(" 87=1 ");
        match rules {
            Rules::V2 if packet.is_marked && is_known => format!("{} (behind a loss)", packet.text),
            _ => packet.text,
        }
    };
    packets.into_iter().map(line).collect()
}

fn counters(stats: &[u8], rules: Rules) -> Vec<String> {
    let line =
        |place: &str, stats: &[u8], (field, name): &(u32, &str)| format!("{place}{name} {}", wire::int(stats, *field));
    let mut out: Vec<String> = SERVICE_COUNTERS.iter().map(|counter| line("", stats, counter)).collect();
    for (number, buffer) in wire::all(stats, 1).into_iter().enumerate() {
        let place = format!("buffer {number}: ");
        out.extend(COUNTERS.iter().map(|counter| line(&place, buffer, counter)));
        if rules != Rules::V1 {
            out.extend(COUNTERS_V2.iter().map(|counter| line(&place, buffer, counter)));
        }
    }
    out
}

impl Packet {
    fn new(packet: &[u8]) -> Self {
        let mut fields = wire::fields(packet);
        // The service may append its fields in any order.
        fields.sort_by_key(|(field, _)| *field);
        let sequence = wire::int(packet, 10);
        let is_of_service = sequence <= 1;
        let mut parts = Vec::new();
        for (field, value) in fields {
            parts.push(match (field, value) {
                (42, _) => continue,
                (8 | 58, _) if is_of_service => continue,
                (6, Value::Bytes(snapshot)) if is_of_service => {
                    let clocks = wire::all(snapshot, 1).into_iter().map(|clock| wire::int(clock, 1));
                    let clocks = clocks.map(|clock| clock.to_string());
                    format!("clock_snapshot primary={} {}", wire::int(snapshot, 2), list(clocks))
                }
                (89, _) => "trace_uuid".to_owned(),
                (124, _) => "trace_provenance".to_owned(),
                (45, Value::Bytes(info)) => {
                    // utsname is a message of its own.
                    let utsname = fields_but(0, wire::last(info, 1).unwrap_or_default());
                    let rest = Proto::of(wire::fields(info).into_iter().filter(|(field, _)| *field != 1));
                    format!("system_info {utsname} {}", fields_but(4, &rest.0))
                }
                (33, Value::Bytes(config)) => format!("trace_config {}", fields_but(0, config)),
                // Compared apart.
                (35, _) => "trace_stats".to_owned(),
                (field, value) => show(field, value),
            });
        }
        // The kind first.
        parts.sort_by_key(|part| !part.starts_with(char::is_alphabetic));
        Self { sequence, is_marked: wire::int(packet, 42) != 0, text: parts.join(" ") }
    }
}

/// The fields of a message without one, by number: their order means nothing.
fn fields_but(left_out: u32, message: &[u8]) -> String {
    let mut fields = wire::fields(message);
    fields.sort_by_key(|(field, _)| *field);
    list(fields.into_iter().filter(|(field, _)| *field != left_out).map(|(field, value)| show(field, value)))
}

fn show(field: u32, value: Value<'_>) -> String {
    match value {
        Value::Int(value) => format!("{field}={value}"),
        Value::Bytes(bytes) => {
            let text: String =
                bytes.iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
            format!("{field}=\"{text}\"")
        }
    }
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}

/// Fails with the first differences, if there are some.
fn compare_lines(what: &str, theirs: &[String], ours: &[String]) {
    if theirs == ours {
        return;
    }
    let short = |lines: &[String], at: usize| {
        let shown = lines.iter().enumerate().skip(at.saturating_sub(2)).take(8);
        list(shown.map(|(i, line)| format!("\n  {i}: {}", line.chars().take(300).collect::<String>())))
    };
    let at = theirs
        .iter()
        .zip(ours)
        .position(|(theirs, ours)| theirs != ours)
        .unwrap_or_else(|| theirs.len().min(ours.len()));
    panic!(
        "{what} differ at {at}\ntheirs ({}):{}\nours ({}):{}",
        theirs.len(),
        short(theirs, at),
        ours.len(),
        short(ours, at)
    );
}
