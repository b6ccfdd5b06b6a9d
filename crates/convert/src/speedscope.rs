//! The file format of speedscope: one profile for each track or thread.

use std::collections::HashMap;
use std::io::{self, Write};

use esatto_trace::tables::{Row, Table as _, Tables};
use serde_json::json;

use crate::nesting::{Edge, Nesting};
use crate::stacks::{Frame, Origin, StackKind, Stacks, end_of_slices, origin_of_thread, origin_of_track};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes a file with profiles of these kinds of content: one in the order of time for each track
/// with slices and each thread with samples, one for each heap. Returns the number of profiles.
///
/// # Errors
///
/// Those of the output.
pub fn write_speedscope(tables: &Tables, kinds: &[StackKind], name: &str, out: &mut impl Write) -> io::Result<usize> {
    write!(
        out,
        "{{\"$schema\":{},\"exporter\":\"esatto {}\",\"name\":{},\"activeProfileIndex\":0,\"profiles\":[",
        json!(SCHEMA),
        env!("CARGO_PKG_VERSION"),
        json!(name)
    )?;
    // The frames of all kinds have common numbers.
    let mut stacks = match kinds.contains(&StackKind::Heap) {
        true => Stacks::of(StackKind::Heap, tables),
        false => Stacks::empty(StackKind::Heap),
    };
    let mut profiles = 0;
    let mut separate = |out: &mut dyn Write| {
        profiles += 1;
        out.write_all(if profiles == 1 { b"\n" } else { b",\n" })
    };
    if kinds.contains(&StackKind::Slices) {
        for (track, edges) in Nesting::by_track(tables) {
            separate(out)?;
            write_slices(tables, &mut stacks, track, &edges, out)?;
        }
    }
    if kinds.contains(&StackKind::Samples) {
        let nodes = stacks.callsites(tables);
        for (thread, callsites) in samples_by_thread(tables) {
            separate(out)?;
            let name = title(&origin_of_thread(tables, thread));
            let samples = callsites.into_iter().map(|callsite| (nodes[callsite.index()], 1));
            write_sampled(&stacks, &name, "none", samples, out)?;
        }
    }
    if kinds.contains(&StackKind::Heap) {
        let mut heaps: Vec<(usize, Vec<(usize, i64)>)> = Vec::new();
        for (origin, node, values) in stacks.samples() {
            match heaps.last_mut() {
                Some((last, samples)) if *last == origin => samples.push((node, values[0])),
                _ => heaps.push((origin, vec![(node, values[0])])),
            }
        }
        for (origin, samples) in heaps {
            separate(out)?;
            let name = format!("{}, in use", title(&stacks.origins[origin]));
            write_sampled(&stacks, &name, "bytes", samples.into_iter().filter(|(_, bytes)| *bytes > 0), out)?;
        }
    }
    out.write_all(b"],\n\"shared\":{\"frames\":[")?;
    for (index, frame) in stacks.frames.iter().enumerate() {
        let separator = if index == 0 { "\n" } else { ",\n" };
        let name = if frame.name.is_empty() { "(no name)" } else { &frame.name };
        let value =
            if frame.file.is_empty() { json!({ "name": name }) } else { json!({ "name": name, "file": frame.file }) };
        write!(out, "{separator}{value}")?;
    }
    out.write_all(b"]}}\n")?;
    Ok(profiles)
}

fn title(origin: &Origin) -> String {
    origin.frames().join(", ")
}

/// Writes the slices of a track. Times are those of the trace clock.
fn write_slices(
    tables: &Tables,
    stacks: &mut Stacks,
    track: Row,
    edges: &[Edge],
    out: &mut impl Write,
) -> io::Result<()> {
    let slice = &tables.slice;
    let end_of_trace = end_of_slices(tables);
    let end = |row: usize| match slice.dur.get(row) {
        dur if dur >= 0 => slice.ts.get(row).saturating_add(dur),
        _ => end_of_trace,
    };
    let first = edges.iter().find_map(|edge| if let Edge::Begin(row) = edge { Some(slice.ts.get(*row)) } else { None });
    let begin = first.unwrap_or(0);
    let name = title(&origin_of_track(tables, track));
    write!(
        out,
        "{{\"type\":\"evented\",\"name\":{},\"unit\":\"nanoseconds\",\"startValue\":0,\"events\":[",
        json!(name)
    )?;
    let mut last = begin;
    let mut numbers = HashMap::new();
    for (index, edge) in edges.iter().enumerate() {
        let (kind, row, at) = match *edge {
            Edge::Begin(row) => ('O', row, slice.ts.get(row)),
            Edge::End(row) => ('C', row, end(row)),
        };
        // A slice that is open at the end of the trace may contain a later one.
        last = last.max(at);
        let frame = *numbers.entry(slice.name[row]).or_insert_with(|| {
            let name = slice.name[row].map_or("", |name| tables.strings.get(name)).to_owned();
            stacks.frame(Frame { name, ..Frame::default() })
        });
        let separator = if index == 0 { "" } else { "," };
        let at = last.saturating_sub(begin);
        write!(out, "{separator}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}")?;
    }
    write!(out, "],\"endValue\":{}}}", last.saturating_sub(begin))
}

/// Returns the call sites of the samples of each thread, in the order of time.
fn samples_by_thread(tables: &Tables) -> Vec<(Row, Vec<Row>)> {
    let mut samples: Vec<(Row, i64, Row)> = Vec::new();
    let perf = &tables.perf_sample;
    for row in 0..perf.rows() {
        samples.extend(perf.callsite_id[row].map(|callsite| (perf.utid[row], perf.ts[row], callsite)));
    }
    let own = &tables.cpu_profile_stack_sample;
    samples.extend((0..own.rows()).map(|row| (own.utid[row], own.ts[row], own.callsite_id[row])));
    samples.sort_by_key(|(thread, ts, _)| (*thread, *ts));
    let same = |a: &(Row, i64, Row), b: &(Row, i64, Row)| a.0 == b.0;
    samples.chunk_by(same).map(|samples| (samples[0].0, samples.iter().map(|sample| sample.2).collect())).collect()
}

fn write_sampled(
    stacks: &Stacks,
    name: &str,
    unit: &str,
    samples: impl Iterator<Item = (usize, i64)>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{unit}\",\"startValue\":0,\"samples\":[", json!(name))?;
    let mut weights = Vec::new();
    for (node, weight) in samples {
        let separator = if weights.is_empty() { "" } else { "," };
        write!(out, "{separator}{}", json!(stacks.path(node)))?;
        weights.push(weight);
    }
    let sum = weights.iter().fold(0_i64, |sum, weight| sum.saturating_add(*weight));
    write!(out, "],\"weights\":{},\"endValue\":{sum}}}", json!(weights))
}
