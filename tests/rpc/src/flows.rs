//! A recording of clients and servers of traced bindings, each a process of its own, as Perfetto's
//! trace processor reads it.

use core::fmt;
use std::collections::{HashMap, HashSet};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use esatto_tests::tp::{self, Row};
use esatto_tests::{Harness, Implementation, Peer, Program, Recording, Skip};
use esatto_trace::EventType;

use crate::wiretap::{Conversation, Mode, Wiretap};

/// Config that records these categories only.
#[must_use]
pub fn config(categories: &[&str]) -> String {
    let enabled: String = categories.iter().map(|name| format!("enabled_categories: \"{name}\" ")).collect();
    format!(
        "buffers {{ size_kb: 32768 }}
        data_sources {{ config {{
            name: \"track_event\"
            track_event_config {{ disabled_categories: \"*\" {enabled} }}
        }} }}"
    )
}

/// A service, and a folder in which programs meet.
#[derive(Debug)]
pub struct Stage {
    /// The folder.
    pub harness: Harness,
    app: &'static str,
    _service: Program,
    recording: Option<Recording>,
}

impl Stage {
    /// Starts a service.
    ///
    /// # Errors
    ///
    /// A program is missing that this needs.
    pub fn new(app: &'static str, service: Implementation) -> Result<Self, Skip> {
        Peer::TraceProcessor.require()?;
        if service == Implementation::Theirs {
            Peer::Official.require()?;
        }
        let harness = Harness::new();
        let _service = harness.service(service);
        Ok(Self { harness, app, _service, recording: None })
    }

    /// Starts recording these categories.
    #[must_use]
    pub fn recording(mut self, categories: &[&str]) -> Self {
        self.recording = Some(self.record("trace", categories));
        self
    }

    /// Starts recording these categories into a file.
    #[must_use]
    pub fn record(&self, file: &str, categories: &[&str]) -> Recording {
        self.harness.record(Implementation::Ours, file, &config(categories))
    }

    /// Starts the program under a name that the trace has. Variables of the environment are set by
    /// `change`.
    pub fn start_with(&self, name: &str, arguments: &[&str], change: impl FnOnce(&mut Command)) -> Program {
        let mut command = self.harness.command(self.app);
        command.arg0(name).args(arguments);
        change(&mut command);
        let mut program = self.harness.start(name, &mut command);
        if matches!(arguments[0], "server" | "relay" | "peer" | "consumer_port") {
            program.wait_for_log("ready");
        }
        program
    }

    /// Starts the program under a name that the trace has.
    pub fn start(&self, name: &str, arguments: &[&str]) -> Program {
        self.start_with(name, arguments, |_| ())
    }

    /// Plays a scenario with the client and the server in these environments.
    pub fn play_with(&self, name: &str, scenario: &str, way: Way, environment: [&[&str]; 2]) -> Vec<Conversation> {
        let sockets = [format!("{name}.sock"), format!("{name}-server.sock")];
        let [socket, direct] = &sockets;
        let path = |socket: &String| self.harness.path(socket);
        let set = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            move |command: &mut Command| {
                for name in names {
                    command.env(name, "1");
                }
            }
        };
        let mut server = self.start_with(&format!("{name}.server"), &["server", direct], set(environment[1]));
        let mut relay = None;
        let tap = match way {
            Way::Tap(mode) => Some(Wiretap::start(&path(socket), &path(direct), mode)),
            Way::Relay => {
                relay = Some(self.start(&format!("{name}.relay"), &["relay", socket, direct]));
                None
            }
            Way::Direct => None,
        };
        let socket = if way == Way::Direct { direct } else { socket };
        let arguments = ["client", scenario, socket, direct];
        let mut client = self.start_with(&format!("{name}.client"), &arguments, set(environment[0]));
        client.wait_ok();
        server.wait_ok();
        if let Some(mut relay) = relay {
            relay.kill();
        }
        tap.map(|tap| tap.conversations()).unwrap_or_default()
    }

    /// Plays a scenario with a client and a server of its own.
    pub fn play(&self, scenario: &str, way: Way) -> Vec<Conversation> {
        self.play_with(scenario, scenario, way, [&[], &[]])
    }

    /// Ends the recording, after all programs have ended.
    ///
    /// # Panics
    ///
    /// The trace processor reports an error.
    #[must_use]
    pub fn finish(mut self) -> Recorded {
        let mut recording = self.recording.take().expect("a recording");
        Recorded::read(&self.harness.stop(&mut recording))
    }
}

/// Way between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The client connects to the server.
    Direct,
    /// Through a relay in this process, which keeps the bytes.
    Tap(Mode),
    /// Through a relay that is a process of its own.
    Relay,
}

/// Slice or instant, in a table of the trace processor.
#[derive(Clone)]
pub struct Event {
    id: i64,
    /// Its name.
    pub name: String,
    /// Its time.
    pub ts: i64,
    /// Its duration; -1 without an end.
    pub dur: i64,
    /// Slices around it on its track.
    pub depth: i64,
    /// Its category.
    pub category: String,
    /// Name of its track, unless it is that of a thread.
    pub track: String,
    /// Name of its process.
    pub process: String,
    /// Id of its process.
    pub pid: String,
    /// Name of its thread.
    pub thread: String,
    args: Row,
}

/// Arrow of the trace processor.
#[derive(Clone, Debug)]
pub struct Arrow<'a> {
    /// Its begin.
    pub from: &'a Event,
    /// Its end.
    pub to: &'a Event,
    /// The id of the flow.
    pub flow: u64,
}

/// Annotations that calls may have.
const ARGUMENTS: [&str; 9] =
    ["role", "request_id", "bytes", "status", "code", "fds", "peer_pid", "service", "method_id"];

impl Event {
    /// Returns an annotation, as text; empty without one.
    #[must_use]
    pub fn arg(&self, name: &str) -> &str {
        assert!(ARGUMENTS.contains(&name), "{name} is queried");
        self.args.text(name)
    }

    /// Returns the part of the process in its scenario, and the name.
    #[must_use]
    pub fn title(&self) -> String {
        let part = self.process.rsplit('.').next().unwrap_or_default();
        let track = if self.track.is_empty() { String::new() } else { format!(" ({})", self.track) };
        format!("{part} {}{track}", self.name)
    }

    /// Returns the time of its end.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.ts + self.dur
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} +{} {:?} depth {} thread {:?}", self.ts, self.dur, self.title(), self.depth, self.thread)?;
        let args = ARGUMENTS.iter().map(|name| (name, self.arg(name))).filter(|(_, value)| !value.is_empty());
        args.into_iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl Arrow<'_> {
    /// Returns the titles of both ends.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} → {}", self.from.title(), self.to.title())
    }
}

/// A trace, read by the trace processor.
#[derive(Debug)]
pub struct Recorded {
    events: Vec<Event>,
    arrows: Vec<(usize, usize, u64)>,
    /// How many events have a flow, and how many end it. The trace processor does not tell.
    flows: HashMap<u64, (usize, usize)>,
    begins: usize,
    ends: usize,
}

impl Recorded {
    /// Reads a trace.
    ///
    /// # Panics
    ///
    /// The trace processor reports an error.
    #[must_use]
    pub fn read(trace: &Path) -> Self {
        let arguments: Vec<String> = ARGUMENTS
            .iter()
            .map(|name| format!("cast(extract_arg(slice.arg_set_id, 'debug.{name}') as text) as {name}"))
            .collect();
        let events = format!(
            "select slice.id as id, slice.name as name, slice.ts as ts, dur, depth, category,
                iif(thread_track.id is null, coalesce(track.name, ''), '') as track,
                coalesce(one.name, other.name) as process, cast(coalesce(one.pid, other.pid) as text) as pid, thread.name as thread, {}
            from slice join track on slice.track_id = track.id
                left join thread_track on thread_track.id = track.id left join thread using (utid)
                left join process as one on one.upid = thread.upid
                left join process_track on process_track.id = track.id
                left join process as other on other.upid = process_track.upid
            order by slice.ts, slice.id;",
            arguments.join(", ")
        );
        let arrows = "select slice_out, slice_in, trace_id from flow";
        let all = tp::query(trace, &[tp::COMPLAINTS, ";", &events, arrows].concat());
        let [complaints, events, arrows] = &all[..] else { panic!("three answers") };
        assert!(complaints.is_empty(), "{complaints:#?}");
        let events: Vec<Event> = events.iter().map(event).collect();
        let index: HashMap<i64, usize> = events.iter().enumerate().map(|(index, event)| (event.id, index)).collect();
        let mut arrows: Vec<_> = arrows
            .iter()
            .map(|row| {
                let end = |column| index[&row.int(column)];
                (end("slice_out"), end("slice_in"), u64::from_ne_bytes(row.int("trace_id").to_ne_bytes()))
            })
            .collect();
        arrows.sort_unstable();
        let mut flows: HashMap<u64, (usize, usize)> = HashMap::new();
        let (mut begins, mut ends) = (0, 0);
        let bytes = std::fs::read(trace).expect("the trace is there");
        for event in esatto_trace::Trace::read(&bytes[..]).events {
            begins += usize::from(event.event_type == EventType::SliceBegin);
            ends += usize::from(event.event_type == EventType::SliceEnd);
            event.flows.iter().for_each(|&id| flows.entry(id).or_default().0 += 1);
            event.terminating_flows.iter().for_each(|&id| flows.entry(id).or_default().1 += 1);
        }
        Self { events, arrows, flows, begins, ends }
    }

    /// Returns the numbers of begins and ends of slices. The trace processor passes over ends
    /// without a begin.
    #[must_use]
    pub fn begins_and_ends(&self) -> (usize, usize) {
        (self.begins, self.ends)
    }

    /// Returns all events, by time.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the arrows, by the time of their begin.
    pub fn arrows(&self) -> impl Iterator<Item = Arrow<'_>> {
        self.arrows.iter().map(|&(from, to, flow)| Arrow { from: &self.events[from], to: &self.events[to], flow })
    }

    /// Returns the number of events that have the flow, and of those that end it.
    #[must_use]
    pub fn ends_of(&self, flow: u64) -> (usize, usize) {
        self.flows.get(&flow).copied().unwrap_or_default()
    }

    /// Returns the part of the recording that belongs to a scenario.
    ///
    /// # Panics
    ///
    /// It has no events, or its parts do not hold together.
    #[must_use]
    pub fn scenario(&self, name: &str) -> Scenario<'_> {
        let scenario = self.unchecked(name);
        scenario.assert_sane();
        scenario
    }

    /// As [`scenario`](Self::scenario), without checks.
    #[must_use]
    pub fn unchecked(&self, name: &str) -> Scenario<'_> {
        let is_in = |event: &Event| event.process.split('.').next() == Some(name);
        let events = self.events.iter().filter(|event| is_in(event)).collect();
        let arrows = self.arrows().filter(|arrow| is_in(arrow.from) || is_in(arrow.to)).collect();
        Scenario { events, arrows }
    }
}

fn event(row: &Row) -> Event {
    let text = |column| row.text(column).to_owned();
    Event {
        id: row.int("id"),
        name: text("name"),
        ts: row.int("ts"),
        dur: row.int("dur"),
        depth: row.int("depth"),
        category: text("category"),
        track: text("track"),
        process: text("process"),
        pid: text("pid"),
        thread: text("thread"),
        args: row.clone(),
    }
}

/// Events of the processes of one scenario.
pub struct Scenario<'a> {
    /// Its events, by time.
    pub events: Vec<&'a Event>,
    /// Its arrows, by the time of their begin.
    pub arrows: Vec<Arrow<'a>>,
}

impl fmt::Debug for Scenario<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events.iter().try_for_each(|event| write!(f, "\n{event:?}"))?;
        self.arrows.iter().try_for_each(|arrow| write!(f, "\n{:016x} {}", arrow.flow, arrow.title()))
    }
}

impl<'a> Scenario<'a> {
    /// Checks what holds for each call, however it ends.
    fn assert_sane(&self) {
        for event in &self.events {
            assert!(event.dur >= 0, "without end: {event:?}");
        }
        let mut seen = HashSet::new();
        for Arrow { from, to, flow } in &self.arrows {
            assert_eq!(from.process.split('.').next(), to.process.split('.').next(), "{flow:x} leads elsewhere");
            assert!(from.ts <= to.ts, "{flow:x} points backwards");
            assert!(seen.insert((from.id, to.id)), "{flow:x} is there twice");
            assert!(from.category == to.category || from.category == "app" || to.category == "app");
        }
    }

    /// Returns the titles of the arrows, by time.
    #[must_use]
    pub fn arrow_titles(&self) -> Vec<String> {
        self.arrows.iter().map(Arrow::title).collect()
    }

    /// Checks that these arrows are there, each once, and no others.
    ///
    /// # Panics
    ///
    /// They are not.
    pub fn assert_arrows(&self, expected: &[&str]) {
        let mut titles = self.arrow_titles();
        let mut expected: Vec<&str> = expected.to_vec();
        titles.sort();
        expected.sort_unstable();
        assert_eq!(titles, expected, "{self:?}");
    }

    /// Checks the titles of all events, by time, except for those of connections.
    ///
    /// # Panics
    ///
    /// They are others.
    pub fn assert_events(&self, expected: &[&str]) {
        let titles: Vec<String> =
            self.events.iter().filter(|event| event.name != "rpc connect").map(|event| event.title()).collect();
        assert_eq!(titles, expected, "{self:?}");
    }

    /// Returns the events with this title, by time.
    #[must_use]
    pub fn all(&self, title: &str) -> Vec<&'a Event> {
        self.events.iter().copied().filter(|event| event.title() == title).collect()
    }

    /// Returns the only event with this title.
    ///
    /// # Panics
    ///
    /// There is none, or there are several.
    #[must_use]
    pub fn only(&self, title: &str) -> &'a Event {
        let [only] = self.all(title)[..] else { panic!("{title} is not there once: {self:?}") };
        only
    }
}

/// Returns the id of flow `k` of a seed: the formula of `docs/spec/ipc-tracing.md` §5, apart from
/// that of the library.
#[must_use]
pub fn mix(seed: u64, k: u64) -> u64 {
    let step = |z: u64, shift: u32, factor: u64| (z ^ (z >> shift)).wrapping_mul(factor);
    let z = seed.wrapping_add(k.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = step(step(z, 30, 0xbf58_476d_1ce4_e5b9), 27, 0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).max(1)
}
