//! Tracks of the report with their spans, counters and arrows.

use serde_json::{Value, json};

use crate::arguments::ArgumentSet;
use crate::columns::Columns;
use crate::texts::Text;

/// Number of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TrackId(pub(crate) u32);

/// Number of a span, in the order of [`Timeline::add_span`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SpanId(u32);

/// Kind of a track, by its name in `page/model.js`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TrackKind {
    Group,
    Process,
    Thread,
    Slices,
    Cpu,
    State,
    /// States that a program names.
    States,
    Counter,
    /// Single events of the kernel.
    Events,
    /// Samples of call stacks.
    Samples,
    /// Dumps of a heap.
    Heap,
}

impl TrackKind {
    fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Slices => "slices",
            Self::Cpu => "cpu",
            Self::State => "state",
            Self::States => "states",
            Self::Counter => "counter",
            Self::Events => "events",
            Self::Samples => "samples",
            Self::Heap => "heap",
        }
    }
}

/// A row of the timeline.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) name: String,
    pub(crate) kind: TrackKind,
    /// A short remark, such as a pid.
    pub(crate) detail: String,
    /// Unit of a counter, or source of samples.
    pub(crate) unit: String,
    pub(crate) parent: Option<TrackId>,
    /// True if it comes before others of its kind, as the main thread does.
    pub(crate) is_first: bool,
}

/// A stretch of time on a track. Times count from the begin of the trace, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) track: TrackId,
    /// The lane of the track that it is on. A track that shows several ones as one has several.
    pub(crate) lane: u32,
    pub(crate) depth: u32,
    pub(crate) begin: i64,
    /// `None` if it did not end.
    pub(crate) duration: Option<i64>,
    pub(crate) name: Text,
    pub(crate) category: Text,
    pub(crate) arguments: ArgumentSet,
    /// The number of its thread + 1, if the track does not say it; else 0.
    pub(crate) thread: u32,
    /// Call stack of a sample; 0 for all other spans.
    pub(crate) stack: u32,
}

/// Spans of one depth of a lane.
struct Level {
    track: TrackId,
    lane: u32,
    depth: u32,
    spans: u32,
}

/// Deepest level of a lane. Spans that are nested deeper are left out, and counted.
pub(crate) const MAX_DEPTH: u32 = 1 << 10;

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) tracks: Vec<Track>,
    spans: Vec<Span>,
    points: Vec<(TrackId, i64, f64)>,
    flows: Vec<(SpanId, SpanId)>,
    /// Spans that were left out.
    pub(crate) too_deep: u64,
}

impl Timeline {
    pub(crate) fn add_track(&mut self, track: Track) -> TrackId {
        self.tracks.push(track);
        TrackId(number(self.tracks.len() - 1))
    }

    /// Adds a span; returns `None` if it is nested too deep to be shown.
    pub(crate) fn add_span(&mut self, span: Span) -> Option<SpanId> {
        if span.depth > MAX_DEPTH {
            self.too_deep += 1;
            return None;
        }
        self.spans.push(span);
        Some(SpanId(number(self.spans.len() - 1)))
    }

    pub(crate) fn add_point(&mut self, track: TrackId, time: i64, value: f64) {
        self.points.push((track, time, value));
    }

    pub(crate) fn add_flow(&mut self, from: SpanId, to: SpanId) {
        self.flows.push((from, to));
    }

    /// Adds all columns, and returns the description of the tracks.
    pub(crate) fn write(mut self, columns: &mut Columns) -> Value {
        self.write_spans(columns);
        self.write_points(columns);
        self.tracks
            .iter()
            .map(|track| {
                let mut object = json!({
                    "name": track.name,
                    "kind": track.kind.name(),
                    "parent": track.parent.map_or(-1, |parent| i64::from(parent.0)),
                });
                if track.is_first {
                    object["first"] = true.into();
                }
                if !track.detail.is_empty() {
                    object["detail"] = track.detail.clone().into();
                }
                if !track.unit.is_empty() {
                    object["unit"] = track.unit.clone().into();
                }
                object
            })
            .collect()
    }

    fn write_spans(&mut self, columns: &mut Columns) {
        self.separate();
        let spans = &self.spans;
        let mut order: Vec<u32> = (0..number(spans.len())).collect();
        order.sort_by_key(|&index| {
            let span = &spans[index as usize];
            (span.track, span.lane, span.depth, span.begin)
        });
        // Levels of a lane follow each other, also if a depth in between has no span.
        let mut levels: Vec<Level> = Vec::new();
        for &index in &order {
            let span = &spans[index as usize];
            let new = |depth, spans| Level { track: span.track, lane: span.lane, depth, spans };
            match levels.last_mut() {
                Some(last) if (last.track, last.lane, last.depth) == (span.track, span.lane, span.depth) => {
                    last.spans += 1;
                }
                last => {
                    let next = match last {
                        Some(last) if (last.track, last.lane) == (span.track, span.lane) => last.depth + 1,
                        _ => 0,
                    };
                    levels.extend((next..span.depth).map(|depth| new(depth, 0)));
                    levels.push(new(span.depth, 1));
                }
            }
        }
        columns.unsigned("lane.track", levels.iter().map(|level| level.track.0));
        columns.unsigned("lane.spans", levels.iter().map(|level| level.spans));
        columns.unsigned("lane.depth", levels.iter().map(|level| level.depth));
        let sorted = || order.iter().map(|&index| &spans[index as usize]);
        columns.deltas("span.begin", sorted().map(|span| span.begin));
        columns.integers("span.duration", sorted().map(|span| span.duration.unwrap_or(-1)));
        columns.unsigned("span.name", sorted().map(|span| span.name.0));
        columns.unsigned("span.category", sorted().map(|span| span.category.0));
        columns.unsigned("span.args", sorted().map(|span| span.arguments.0));
        columns.unsigned("span.thread", sorted().map(|span| span.thread));
        // One for each sample: the kind of its track tells which spans are samples.
        let is_sample = |span: &&Span| self.tracks[span.track.0 as usize].kind == TrackKind::Samples;
        let stacks: Vec<u32> = sorted().filter(is_sample).map(|span| span.stack).collect();
        columns.unsigned("sample.stack", stacks.into_iter());
        let mut place = vec![0_u32; spans.len()];
        for (at, &index) in order.iter().enumerate() {
            place[index as usize] = number(at);
        }
        columns.unsigned("flow.from", self.flows.iter().map(|flow| place[flow.0.0 as usize]));
        columns.unsigned("flow.to", self.flows.iter().map(|flow| place[flow.1.0 as usize]));
    }

    /// Moves spans that overlap others of their level to a deeper one, so that levels hold spans
    /// one after the other.
    fn separate(&mut self) {
        let mut order: Vec<u32> = (0..number(self.spans.len())).collect();
        order.sort_by_key(|&index| {
            let span = &self.spans[index as usize];
            (span.track, span.lane, span.begin, span.depth)
        });
        let mut ends: Vec<i64> = Vec::new();
        let mut lane = None;
        for index in order {
            let span = &mut self.spans[index as usize];
            if lane != Some((span.track, span.lane)) {
                lane = Some((span.track, span.lane));
                ends.clear();
            }
            let end = span.duration.map_or(i64::MAX, |duration| span.begin.saturating_add(duration.max(0)));
            let mut depth = span.depth as usize;
            while ends.get(depth).is_some_and(|&taken| taken > span.begin) && depth < MAX_DEPTH as usize {
                depth += 1;
            }
            if ends.len() <= depth {
                ends.resize(depth + 1, i64::MIN);
            }
            ends[depth] = end;
            span.depth = number(depth);
        }
    }

    fn write_points(&mut self, columns: &mut Columns) {
        self.points.sort_by_key(|&(track, time, _)| (track, time));
        let mut runs: Vec<(TrackId, u32)> = Vec::new();
        for &(track, _, _) in &self.points {
            match runs.last_mut() {
                Some((last, count)) if *last == track => *count += 1,
                _ => runs.push((track, 1)),
            }
        }
        columns.unsigned("counter.track", runs.iter().map(|run| run.0.0));
        columns.unsigned("counter.points", runs.iter().map(|run| run.1));
        columns.deltas("point.time", self.points.iter().map(|point| point.1));
        columns.doubles("point.value", self.points.iter().map(|point| point.2));
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a report has less than 2^32 rows")
}
