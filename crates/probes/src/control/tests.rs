//! The control thread and workers with made-up data sources, before a real service.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use esatto::producer::TraceWriter;
use esatto_daemon::{Daemon, DaemonHandle, Options};
use esatto_ipc::{BlockingClient, RequestId};
use esatto_ports::consumer_port::method::{DisableTracing, EnableTracing, Flush, ReadBuffers};
use esatto_protozero::Fields;
use esatto_schema::trace_config::{BufferConfig, DataSource as Wanted};
use esatto_schema::{
    DATA_SOURCE_PROBLEM_FIELD, DataSourceConfig, DataSourceDescriptor, DisableTracingRequest, EnableTracingRequest,
    FlushRequest, ReadBuffersRequest, ReadBuffersResponseReader, TraceConfig, TracePacketReader, TracePacketWriter,
    data_source_problem,
};

use super::{Control, Observer};
use crate::data_source::{
    DataSource, Instance, InstanceId, Monotonic, Observations, Observed, SetupError, TracingSession,
};
use crate::worker::SourceGroup;

const DEADLINE: Duration = Duration::from_secs(20);

/// A data source that writes what happens to it.
struct Fake {
    name: &'static str,
    sessions: BTreeMap<InstanceId, TracingSession>,
    writers: BTreeMap<InstanceId, TraceWriter>,
    /// Passed when the data source gets its turn.
    gate: Option<Receiver<()>>,
    happened: Sender<String>,
    ticks_at: Option<Monotonic>,
    /// Packets that it writes at its start.
    packets: usize,
}

impl Fake {
    fn new(name: &'static str, happened: &Sender<String>) -> Self {
        let (sessions, writers, happened) = (BTreeMap::new(), BTreeMap::new(), happened.clone());
        Self { name, sessions, writers, gate: None, happened, ticks_at: None, packets: 1 }
    }

    fn write(&mut self, id: InstanceId, text: &str) {
        let mut packet = self.writers.get_mut(&id).expect("started").new_packet();
        packet.typed::<TracePacketWriter<'_>>().for_testing().str(text);
    }

    fn tell(&self, what: &str) {
        let _ = self.happened.send(format!("{} {what}", self.name));
    }
}

impl DataSource for Fake {
    fn descriptor(&self) -> DataSourceDescriptor {
        DataSourceDescriptor { name: Some(self.name.into()), ..Default::default() }
    }

    fn set_up(&mut self, instance: Instance) -> Result<(), SetupError> {
        self.tell("is set up");
        if self.name == "test.refuses" || self.name == "linux.ftrace" {
            return Err(SetupError("there is no such thing: buy one".into()));
        }
        self.sessions.insert(instance.id, instance.session);
        Ok(())
    }

    fn start(&mut self, id: InstanceId, writer: TraceWriter) {
        self.writers.insert(id, writer);
        for number in 0..self.packets {
            self.write(id, &format!("start {number}"));
        }
        self.tell("starts");
    }

    fn flush(&mut self, id: InstanceId, observations: &mut Observations) {
        if let Some(gate) = &self.gate {
            let _ = gate.recv();
        }
        self.write(id, "flush");
        self.writers.get_mut(&id).expect("started").flush();
        let observed = Observed { tids: vec![42], inodes: vec![(1, 2)], ..Observed::default() };
        observations.push((self.sessions[&id], observed));
    }

    fn stop(&mut self, id: InstanceId) {
        self.tell("stops");
        self.sessions.remove(&id);
        if self.writers.contains_key(&id) {
            self.write(id, "stop");
            self.writers.remove(&id);
        }
    }

    fn clear_incremental_state(&mut self, id: InstanceId) {
        self.write(id, "clear");
    }

    fn observe(&mut self, session: TracingSession, observed: &Observed) {
        let of_session = self.sessions.iter().filter(|(_, its)| **its == session).map(|(&id, _)| id);
        let ids: Vec<_> = of_session.filter(|id| self.writers.contains_key(id)).collect();
        for id in ids {
            self.write(id, &format!("observed {:?}", observed.tids));
            self.writers.get_mut(&id).expect("started").flush();
        }
        self.tell("observes");
    }

    fn deadline(&self) -> Option<Monotonic> {
        self.ticks_at
    }

    fn tick(&mut self, now: Monotonic, _: &mut Observations) {
        self.tell("ticks");
        self.ticks_at = self.ticks_at.map(|_| now + Duration::from_millis(20));
    }
}

/// A folder with a service and probes.
struct World {
    folder: PathBuf,
    service: Option<DaemonHandle>,
    stop: UnixStream,
    probes: Option<JoinHandle<std::io::Result<()>>>,
    happened: Receiver<String>,
    registered: Arc<AtomicU32>,
}

struct Counting(Arc<AtomicU32>);

impl Observer for Counting {
    fn registered(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl World {
    fn new(groups: impl FnOnce(&Sender<String>) -> Vec<Vec<Fake>>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("esatto-probes-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let (sender, happened) = channel();
        let boxed = |sources: Vec<Fake>| SourceGroup {
            thread: "fake",
            sources: sources.into_iter().map(|source| Box::new(source) as _).collect(),
        };
        let groups = groups(&sender).into_iter().map(boxed).collect();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let stopped = OwnedFd::from(stopped);
        let socket = folder.join("p").display().to_string();
        let registered = Arc::new(AtomicU32::new(0));
        let control = Control::new(groups, Some(socket), Counting(registered.clone())).unwrap();
        let probes = Some(std::thread::spawn(move || control.run(&stopped)));
        let mut world = Self { folder, service: None, stop, probes, happened, registered };
        world.start_service(1);
        world
    }

    /// Starts the service, and waits until the probes have registered for the nth time.
    fn start_service(&mut self, nth: u32) {
        let address = |name: &str| self.folder.join(name).display().to_string().parse().unwrap();
        let options = Options::new(address("p"), address("c"));
        self.service = Some(Daemon::bind(options).unwrap().spawn_thread().unwrap());
        wait_until(|| self.registered.load(Ordering::Relaxed) >= nth);
    }

    fn record(&self, names: &[&str]) -> Recording {
        self.record_with_patience(names, Duration::from_millis(400))
    }

    /// `patience` is how long the service waits for data sources to stop.
    fn record_with_patience(&self, names: &[&str], patience: Duration) -> Recording {
        let address = self.folder.join("c").display().to_string().parse().unwrap();
        let mut consumer = BlockingClient::connect(&address, "ConsumerPort", DEADLINE).unwrap();
        let wanted = |name: &&str| {
            let config = DataSourceConfig { name: Some((*name).into()), ..Default::default() };
            Wanted { config: Some(config.into()), ..Default::default() }
        };
        let config = TraceConfig {
            buffers: vec![BufferConfig { size_kb: Some(64 << 10), ..Default::default() }],
            data_sources: names.iter().map(wanted).collect(),
            data_source_stop_timeout_ms: Some(patience.as_millis() as u32),
            ..Default::default()
        };
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..Default::default() };
        let end = consumer.send_message::<EnableTracing>(&request, None).unwrap();
        Recording { consumer, end }
    }

    /// Waits until this happens to a data source.
    fn wait_for(&self, what: &str) {
        while self.happened.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("not: {what}")) != what {}
    }

    fn end_probes(&mut self) {
        self.stop.write_all(b"1").unwrap();
        self.probes.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.probes.is_some() && !std::thread::panicking() {
            self.end_probes();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Recording {
    consumer: BlockingClient,
    end: RequestId,
}

impl Recording {
    fn flush(&mut self) -> bool {
        // Only an acknowledgement comes before the deadline.
        let timeout_ms = Some((4 * DEADLINE).as_millis() as u32);
        let request = FlushRequest { timeout_ms, ..Default::default() };
        self.consumer.call_message::<Flush>(&request, Some(DEADLINE)).is_ok()
    }

    /// Ends the session. Returns texts of the packets, and problems of data sources.
    fn finish(mut self) -> (Vec<String>, Vec<(String, String)>) {
        self.consumer.call_message::<DisableTracing>(&DisableTracingRequest::default(), Some(DEADLINE)).unwrap();
        self.consumer.wait_reply(self.end, Some(DEADLINE)).unwrap();
        self.read()
    }

    fn read(mut self) -> (Vec<String>, Vec<(String, String)>) {
        let (mut texts, mut problems, mut packet) = (Vec::new(), Vec::new(), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let take = |packet: &[u8]| {
            if let Some(test) = TracePacketReader::new(packet).for_testing() {
                texts.push(text(test.str().unwrap_or_default()));
            }
            for field in Fields::new(packet).filter(|field| field.id == DATA_SOURCE_PROBLEM_FIELD) {
                let part =
                    |id| Fields::new(field.as_bytes()).find(|part| part.id == id).map(|part| text(part.as_bytes()));
                let parts = (part(data_source_problem::DATA_SOURCE_NAME), part(data_source_problem::REASON));
                problems.push((parts.0.unwrap(), parts.1.unwrap()));
            }
        };
        let take = Mutex::new(take);
        let request = ReadBuffersRequest::default();
        let read = self.consumer.call_stream::<ReadBuffers, esatto_ipc::Error>(&request, Some(DEADLINE), |body| {
            for slice in ReadBuffersResponseReader::new(body).slices() {
                packet.extend_from_slice(slice.data().unwrap_or_default());
                if slice.last_slice_for_packet() == Some(true) {
                    take.lock().unwrap()(&packet);
                    packet.clear();
                }
            }
            Ok(())
        });
        read.unwrap();
        (texts, problems)
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(begin.elapsed() < DEADLINE, "in vain");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn count(texts: &[String], text: &str) -> usize {
    texts.iter().filter(|its| *its == text).count()
}

#[test]
fn an_instance_is_set_up_started_flushed_and_stopped() {
    let world = World::new(|happened| vec![vec![Fake::new("test.good", happened)]]);
    let mut recording = world.record(&["test.good"]);
    world.wait_for("test.good starts");
    assert!(recording.flush());
    let (texts, problems) = recording.finish();
    assert_eq!(texts[0], "start 0");
    assert_eq!((count(&texts, "stop"), problems), (1, vec![]), "{texts:?}");
    assert!(count(&texts, "flush") >= 1, "{texts:?}");
}

#[test]
fn an_instance_that_cannot_be_set_up_is_stopped_at_once_and_its_reason_is_in_the_trace() {
    let world =
        World::new(|happened| vec![vec![Fake::new("test.refuses", happened), Fake::new("linux.ftrace", happened)]]);
    // If the service waited for an answer, it would wait longer than this test does.
    let recording = world.record_with_patience(&["test.refuses", "linux.ftrace"], 4 * DEADLINE);
    world.wait_for("linux.ftrace is set up");
    let (_, mut problems) = recording.finish();
    let why = "there is no such thing: buy one".to_owned();
    // The session may end before the start of an instance has come.
    problems.retain(|(_, reason)| !reason.starts_with("the session ended before"));
    problems.sort();
    assert_eq!(problems, [("linux.ftrace".into(), why.clone()), ("test.refuses".into(), why)]);
}

#[test]
fn a_data_source_that_hangs_holds_up_only_itself() {
    let (_open, gate) = channel();
    let world = World::new(|happened| {
        let hangs = Fake { gate: Some(gate), ..Fake::new("test.hangs", happened) };
        vec![vec![Fake::new("test.good", happened)], vec![hangs]]
    });
    let mut recording = world.record(&["test.hangs", "test.good"]);
    world.wait_for("test.hangs starts");
    assert!(recording.flush(), "acknowledged nevertheless");
    let (texts, problems) = recording.finish();
    assert!(count(&texts, "flush") >= 1 && count(&texts, "stop") == 1, "{texts:?}");
    assert_eq!(problems.len(), 1, "{problems:?}");
    let why = "within 300ms, because the config has `data_source_stop_timeout_ms: 400`";
    assert!(problems[0].0 == "test.hangs" && problems[0].1.contains(why), "{problems:?}");
    drop(_open);
}

#[test]
fn a_full_shared_memory_makes_the_data_source_wait() {
    const PACKETS: usize = 300_000;
    let world = World::new(|happened| vec![vec![Fake { packets: PACKETS, ..Fake::new("test.good", happened) }]]);
    let recording = world.record(&["test.good"]);
    world.wait_for("test.good starts");
    let (texts, _) = recording.finish();
    let starts = texts.iter().filter(|text| text.starts_with("start")).count();
    assert_eq!(starts, PACKETS);
}

#[test]
fn what_is_observed_reaches_the_other_data_sources_of_the_session_only() {
    let world = World::new(|happened| {
        let fakes = ["test.sees", "test.same_thread"].map(|name| Fake::new(name, happened));
        vec![fakes.into(), vec![Fake::new("test.other_thread", happened)]]
    });
    let mut one = world.record(&["test.sees", "test.same_thread", "test.other_thread"]);
    world.wait_for("test.sees starts");
    let other = world.record(&["test.same_thread"]);
    world.wait_for("test.same_thread starts");
    one.flush();
    world.wait_for("test.other_thread observes");
    let (texts, _) = one.finish();
    assert!(count(&texts, "observed [42]") >= 2, "{texts:?}");
    // The last flush of the other session observes for itself.
    let (texts, _) = other.finish();
    assert_eq!(count(&texts, "observed [42]"), 0, "{texts:?}");
}

#[test]
fn a_data_source_gets_its_turn_when_it_asks_for_it() {
    let world =
        World::new(|happened| vec![vec![Fake { ticks_at: Some(Duration::ZERO), ..Fake::new("test.good", happened) }]]);
    let recording = world.record(&["test.good"]);
    world.wait_for("test.good ticks");
    world.wait_for("test.good ticks");
    drop(recording);
}

#[test]
fn a_lost_connection_ends_all_instances_and_the_probes_connect_again() {
    let mut world = World::new(|happened| vec![vec![Fake::new("test.good", happened)]]);
    let _recording = world.record(&["test.good"]);
    world.wait_for("test.good starts");
    world.service = None;
    world.wait_for("test.good stops");
    world.start_service(2);
    let recording = world.record(&["test.good"]);
    world.wait_for("test.good starts");
    let (texts, _) = recording.finish();
    assert_eq!(count(&texts, "start 0"), 1, "{texts:?}");
}

#[test]
fn the_end_of_the_program_keeps_what_was_recorded() {
    let mut world = World::new(|happened| vec![vec![Fake::new("test.good", happened)]]);
    let recording = world.record(&["test.good"]);
    world.wait_for("test.good starts");
    world.end_probes();
    let (texts, _) = recording.finish();
    assert_eq!(texts, ["start 0", "flush", "stop"]);
}
