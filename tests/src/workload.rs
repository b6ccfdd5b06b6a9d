//! Events that the applications emit, and the check that a trace has all of them.
//!
//! `official-producer` (`xtask/peers/producer`, on Perfetto's SDK) and `esatto-producer`
//! (`tests/src/bin`, on ours) do the same: every thread emits rounds of
//!
//! ```text
//! frame ────────────────────────────────────────────  slice, six debug annotations
//!   draw ──────────────────────────                   slice, a flow starts here
//!     [details ────────────────────]                  slice of category "debug"
//!       tick |   queue depth = 100 × thread + i % 10  instant; counter of the process
//!                                     upload ───────  slice on track "gpu", the flow ends here
//! ```
//!
//! and at its end an instant `done`.

use crate::tp::{self, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// How much an application emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Threads, named `worker-0`, `worker-1`, …
    pub threads: u64,
    /// Rounds of each thread.
    pub rounds: u64,
    /// A sleep in each round, inside the slice `draw`.
    pub pause_us: u64,
}

/// A config that records all that the applications emit, also category "debug", into one buffer
/// that is large enough.
pub const CONFIG: &str = r#"
buffers { size_kb: 16384 fill_policy: DISCARD }
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" enabled_categories: "debug" }
} }
"#;

/// As [`CONFIG`], without category "debug".
pub const CONFIG_WITHOUT_DEBUG: &str = r#"
buffers { size_kb: 16384 fill_policy: DISCARD }
data_sources { config {
  name: "track_event"
  track_event_config { enabled_categories: "rendering" }
} }
"#;

/// Expected content of the trace of one application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its process id.
    pub pid: u32,
    /// Emitted workload.
    pub workload: Workload,
    /// True if category "debug" was recorded.
    pub details: bool,
}

/// A slice of a thread's track.
#[derive(Clone, Debug)]
struct Slice {
    id: i64,
    parent: Option<i64>,
    ts: i64,
    dur: i64,
    depth: i64,
    name: String,
    category: String,
}

impl Slice {
    fn of(row: &Row) -> Self {
        Self {
            id: row.int("id"),
            parent: (!row.is_null("parent_id")).then(|| row.int("parent_id")),
            ts: row.int("ts"),
            dur: row.int("dur"),
            depth: row.int("depth"),
            name: row.text("name").into(),
            category: row.text("category").into(),
        }
    }

    fn end(&self) -> i64 {
        self.ts + self.dur
    }
}

/// All that the checks need of a trace, fetched at once: starting the trace processor is slow.
#[derive(Debug)]
pub struct Trace {
    /// upid and name by pid.
    processes: BTreeMap<i64, (i64, String)>,
    /// By upid: the threads that have slices, by name.
    threads: BTreeMap<i64, BTreeMap<String, Vec<Slice>>>,
    /// By upid: the slices of tracks "gpu".
    uploads: BTreeMap<i64, Vec<Slice>>,
    /// From slice to slice.
    flows: Vec<(i64, i64)>,
    /// By slice: annotation, type and value as text.
    annotations: BTreeMap<i64, BTreeSet<String>>,
    /// By upid: values in the order of time.
    counters: BTreeMap<i64, Vec<f64>>,
    complaints: Vec<Row>,
}

impl Trace {
    /// Reads a trace with the trace processor.
    ///
    /// # Panics
    ///
    /// It cannot be read.
    #[must_use]
    pub fn load(trace: &Path) -> Self {
        let sql = format!(
            "select upid, pid, name from process where pid is not null;
            select s.id, s.parent_id, s.ts, s.dur, s.depth, s.name, s.category, t.upid, t.name as thread
              from slice s join thread_track k on s.track_id = k.id join thread t using (utid) order by s.id;
            select s.id, s.parent_id, s.ts, s.dur, s.depth, s.name, s.category, k.upid
              from slice s join process_track k on s.track_id = k.id where k.name = 'gpu' order by s.id;
            select slice_out, slice_in from flow;
            select s.id, a.flat_key || ' ' || a.value_type || ' ' || a.display_value as text
              from slice s join args a using (arg_set_id) where a.flat_key like 'debug.%';
            select c.value, k.upid from counter c join process_counter_track k on c.track_id = k.id
              where k.name = 'queue depth' order by c.id;
            {}",
            tp::COMPLAINTS
        );
        let Ok([processes, slices, uploads, flows, annotations, counters, complaints]) =
            <[Vec<Row>; 7]>::try_from(tp::query(trace, &sql))
        else {
            panic!("every statement has its rows");
        };
        let mut out = Self {
            processes: processes.iter().map(|r| (r.int("pid"), (r.int("upid"), r.text("name").into()))).collect(),
            threads: BTreeMap::new(),
            uploads: BTreeMap::new(),
            flows: flows.iter().map(|row| (row.int("slice_out"), row.int("slice_in"))).collect(),
            annotations: BTreeMap::new(),
            counters: BTreeMap::new(),
            complaints,
        };
        for row in &slices {
            let threads = out.threads.entry(row.int("upid")).or_default();
            threads.entry(row.text("thread").into()).or_default().push(Slice::of(row));
        }
        for row in &uploads {
            out.uploads.entry(row.int("upid")).or_default().push(Slice::of(row));
        }
        for row in &annotations {
            out.annotations.entry(row.int("id")).or_default().insert(row.text("text").into());
        }
        for row in &counters {
            out.counters.entry(row.int("upid")).or_default().push(row.real("value"));
        }
        out
    }

    /// Checks that the trace processor has nothing to complain of.
    ///
    /// # Panics
    ///
    /// It has.
    pub fn assert_clean(&self) {
        assert!(self.complaints.is_empty(), "the trace processor complains: {:#?}", self.complaints);
    }

    /// Checks that everything the application emitted is there, in order, and nothing else.
    ///
    /// # Panics
    ///
    /// Something is missing, wrong or too much.
    pub fn assert_whole(&self, expected: &Expected) {
        let upid = self.upid(expected.pid);
        let Workload { threads, rounds, .. } = expected.workload;
        let names: BTreeSet<String> = (0..threads).map(|thread| format!("worker-{thread}")).collect();
        let found: BTreeSet<String> = self.threads[&upid].keys().cloned().collect();
        assert_eq!(found, names, "threads of process {} that have slices", expected.pid);

        let uploads: BTreeMap<i64, &Slice> = self.uploads[&upid].iter().map(|slice| (slice.id, slice)).collect();
        assert_eq!(uploads.len() as u64, threads * rounds, "slices on the tracks \"gpu\"");
        let mut seen = BTreeSet::new();
        for (thread, name) in (0..threads).map(|thread| (thread, format!("worker-{thread}"))) {
            let slices = &self.threads[&upid][&name];
            let rest = self.assert_rounds(&name, slices, 0..rounds, expected.details, &uploads, &mut seen);
            let names: Vec<&str> = rest.iter().map(|slice| slice.name.as_str()).collect();
            assert_eq!(names, ["done"], "what {name} emits after its rounds");
            assert_eq!((rest[0].dur, rest[0].depth), (0, 0), "done is an instant outside all slices");
            let expected: Vec<u64> = (0..rounds).map(|i| i % 10).collect();
            assert_eq!(self.counter_values(upid, thread), expected, "counter values of {name}");
        }
        assert_eq!(self.counters[&upid].len() as u64, threads * rounds, "counter values in all");
    }

    /// Checks the events of an application that was cut off: they are the beginning of its events,
    /// without a gap. Returns the number of whole rounds.
    ///
    /// # Panics
    ///
    /// Something in the middle is missing or wrong.
    #[must_use]
    pub fn assert_beginning(&self, expected: &Expected) -> u64 {
        let upid = self.upid(expected.pid);
        let uploads: BTreeMap<i64, &Slice> =
            self.uploads.get(&upid).into_iter().flatten().map(|slice| (slice.id, slice)).collect();
        let mut seen = BTreeSet::new();
        let mut whole = 0;
        for (name, slices) in &self.threads[&upid] {
            let frames: Vec<&Slice> = slices.iter().filter(|slice| slice.name == "frame").collect();
            // The last one may have been cut off anywhere.
            let rounds = frames.len().saturating_sub(1) as u64;
            let _ = self.assert_rounds(name, slices, 0..rounds, expected.details, &uploads, &mut seen);
            whole += rounds;
        }
        whole
    }

    /// Checks the events of an application that was recorded from the middle on: they are the end
    /// of its events, without a gap. Returns the number of whole rounds.
    ///
    /// # Panics
    ///
    /// Something in the middle or at the end is missing or wrong.
    #[must_use]
    pub fn assert_end(&self, expected: &Expected) -> u64 {
        let upid = self.upid(expected.pid);
        let uploads: BTreeMap<i64, &Slice> =
            self.uploads.get(&upid).into_iter().flatten().map(|slice| (slice.id, slice)).collect();
        let mut seen = BTreeSet::new();
        let mut whole = 0;
        for (name, slices) in &self.threads[&upid] {
            // The recording may have begun inside a round: go to the first that is whole.
            let start = slices.iter().position(|slice| slice.name == "frame").unwrap_or(slices.len());
            let frames = slices[start..].iter().filter(|slice| slice.name == "frame").count() as u64;
            let range = expected.workload.rounds - frames..expected.workload.rounds;
            let rest = self.assert_rounds(name, &slices[start..], range, expected.details, &uploads, &mut seen);
            let names: Vec<&str> = rest.iter().map(|slice| slice.name.as_str()).collect();
            assert_eq!(names, ["done"], "what {name} emits after its rounds");
            whole += frames;
        }
        whole
    }

    /// Checks these rounds of one thread, with which `slices` begins; returns the slices after
    /// them.
    fn assert_rounds<'a>(
        &self,
        thread: &str,
        slices: &'a [Slice],
        rounds: Range<u64>,
        details: bool,
        uploads: &BTreeMap<i64, &Slice>,
        seen: &mut BTreeSet<i64>,
    ) -> &'a [Slice] {
        let names: &[&str] = if details { &["frame", "draw", "details", "tick"] } else { &["frame", "draw", "tick"] };
        let mut rest = slices;
        let mut before = i64::MIN;
        for i in rounds.clone() {
            assert!(rest.len() >= names.len(), "{thread} ends in round {i} of {rounds:?}");
            let (round, tail) = rest.split_at(names.len());
            rest = tail;
            let found: Vec<&str> = round.iter().map(|slice| slice.name.as_str()).collect();
            assert_eq!(found, names, "{thread}, round {i}");
            for (depth, slice) in round.iter().enumerate() {
                let place = format!("{thread}, round {i}, {slice:?}");
                assert_eq!(slice.depth, depth as i64, "nesting: {place}");
                assert_eq!(slice.parent, depth.checked_sub(1).map(|above| round[above].id), "parent: {place}");
                let category = if slice.name == "details" { "debug" } else { "rendering" };
                assert_eq!(slice.category, category, "category: {place}");
                assert!(slice.ts >= before, "order: {place}");
                before = slice.ts;
                if slice.name == "tick" {
                    assert_eq!(slice.dur, 0, "instant: {place}");
                } else {
                    assert!(slice.dur > 0, "duration: {place}");
                }
            }
            let (frame, draw) = (&round[0], &round[1]);
            let place = format!("{thread}, round {i}");
            assert_eq!(self.annotations.get(&frame.id), Some(&annotations(i)), "annotations: {place}");
            let targets: Vec<i64> = self.flows.iter().filter(|flow| flow.0 == draw.id).map(|flow| flow.1).collect();
            assert_eq!(targets.len(), 1, "flows that leave {place}");
            let upload = uploads.get(&targets[0]).unwrap_or_else(|| panic!("the flow of {place} ends elsewhere"));
            assert!(seen.insert(upload.id), "two flows end in the upload of {place}");
            assert_eq!((upload.name.as_str(), upload.category.as_str()), ("upload", "rendering"), "{place}");
            assert!(upload.dur > 0, "duration of the upload of {place}: {upload:?}");
            assert!(upload.ts >= draw.end() && upload.end() <= frame.end(), "the upload of {place}: {upload:?}");
        }
        rest
    }

    /// The counter values that carry a thread's mark, without it.
    fn counter_values(&self, upid: i64, thread: u64) -> Vec<u64> {
        let low = (thread * 100) as f64;
        let own = self.counters[&upid].iter().filter(|value| (low..low + 100.0).contains(value));
        own.map(|value| (value - low) as u64).collect()
    }

    fn upid(&self, pid: u32) -> i64 {
        let (upid, name) = self
            .processes
            .get(&i64::from(pid))
            .unwrap_or_else(|| panic!("process {pid} is not among {:?}", self.processes));
        // Probes that scan the processes may meet it before it has become another program.
        let starter = std::env::current_exe().is_ok_and(|path| name.contains(&*path.to_string_lossy()));
        assert!(starter || name.ends_with("-producer"), "name of process {pid}: '{name}'");
        *upid
    }
}

/// The debug annotations of `frame` in round `i`: key, type and value as the trace processor prints
/// them.
fn annotations(i: u64) -> BTreeSet<String> {
    let ratio = i as f64 / 4.0;
    [
        format!("debug.round uint {i}"),
        format!("debug.offset int -{i}").replace(" -0", " 0"),
        format!("debug.ratio real {ratio:?}"),
        format!("debug.even bool {}", i % 2 == 0),
        "debug.label string grün".into(),
        "debug.address pointer 0xdeadbeef".into(),
    ]
    .into()
}

/// Reads a trace and checks that it holds all of these applications, that nothing was lost and that
/// the trace processor has nothing to complain of.
///
/// # Panics
///
/// It is not so.
pub fn assert_whole(trace: &Path, applications: &[Expected]) {
    let loaded = Trace::load(trace);
    for expected in applications {
        loaded.assert_whole(expected);
    }
    loaded.assert_clean();
}
