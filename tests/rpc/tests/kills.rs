//! Either side of a call is killed, in every state of the call: the other side gets an error soon,
//! keeps no descriptor, and all its slices end (`docs/spec/ipc-tracing.md` §7).

#![allow(missing_docs, reason = "tests")]

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use esatto_ipc::{Address, Channel};
use esatto_rpc_tests::yard::{message, yard};
use esatto_tests::{Harness, Implementation, Peer, Program, Recording, Signal, Skip, skip, tp, wait_until};

const APP: &str = env!("CARGO_BIN_EXE_esatto-rpc-yard");

const CONFIG: &str = r#"
    buffers { size_kb: 65536 }
    data_sources {
      config {
        name: "track_event"
        track_event_config { disabled_categories: "*" enabled_categories: "yard" enabled_categories: "yard_programs" }
      }
    }"#;

/// States of a call, and if the server is stopped while the calls get there.
const STATES: [(&str, bool); 13] = [
    ("connected", true),
    ("bind", true),
    ("half-request", true),
    ("queued", true),
    ("handler", false),
    ("half-reply", false),
    ("stream", false),
    ("window", false),
    ("one-way", true),
    ("cancel", true),
    ("deadline", false),
    ("descriptor", true),
    // Again, with the server in its method.
    ("descriptor", false),
];

const STYLES: [&str; 3] = ["blocking", "callback", "future"];

/// Longest time in which a survivor must have noticed, whatever else the machine does.
const SOON: Duration = Duration::from_secs(20);

struct Yard {
    harness: Harness,
    recording: Recording,
    _service: Program,
    /// Processes that were not killed.
    survivors: Vec<u32>,
}

/// Programs of one state.
struct Group {
    socket: String,
    clients: Vec<Program>,
}

impl Yard {
    fn new() -> Result<Self, Skip> {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let service = harness.service(Implementation::Ours);
        let recording = harness.record(Implementation::Ours, "trace", CONFIG);
        Ok(Self { harness, recording, _service: service, survivors: Vec::new() })
    }

    fn server(&self, style: &str, socket: &str) -> Program {
        let mut server = self.harness.start("server", self.harness.command(APP).args(["server", style, socket]));
        server.wait_for_log("ready");
        server
    }

    /// Starts a client of each style, and brings them into a state. The server may be stopped then.
    fn bring_into(&self, (state, stops): (&str, bool), server: &Program, socket: &str) -> Group {
        let start = |style: &&str| {
            self.harness
                .start(&format!("{state}-{style}"), self.harness.command(APP).args(["client", state, style, socket]))
        };
        let mut clients: Vec<Program> = STYLES.iter().map(start).collect();
        clients.iter_mut().for_each(|client| client.wait_for_log("bound"));
        if stops {
            stop(server);
        }
        let held = count(&server.log(), "hold");
        self.harness.write(&format!("{socket}.go"), "");
        clients.iter_mut().for_each(|client| client.wait_for_log("in state"));
        if !stops && ["handler", "deadline", "descriptor"].contains(&state) {
            wait_until("the methods run", || (count(&server.log(), "hold") >= held + 3).then_some(()));
        }
        if state == "half-reply" {
            // The server writes until the sockets are full.
            clients.iter().for_each(stop);
            self.harness.write(&format!("{socket}.large"), "");
            std::thread::sleep(Duration::from_millis(500));
        }
        Group { socket: socket.to_owned(), clients }
    }

    /// Checks that slices without end are of killed processes. Returns the number of calls that a
    /// lost connection has ended.
    fn check_trace(mut self) -> i64 {
        let trace = self.harness.stop(&mut self.recording);
        let from = "from slice left join thread_track on slice.track_id = thread_track.id left join thread using (utid)
            left join process_track on slice.track_id = process_track.id
            left join process on process.upid = coalesce(thread.upid, process_track.upid)";
        let open = tp::rows(&trace, &format!("select process.pid as pid, slice.name as name {from} where dur < 0"));
        let of_survivors: Vec<_> =
            open.iter().filter(|row| row.is_null("pid") || self.survivors.contains(&(row.int("pid") as u32))).collect();
        assert!(of_survivors.is_empty(), "{of_survivors:#?} of {:?}", self.survivors);
        let pids: Vec<String> = self.survivors.iter().map(u32::to_string).collect();
        let pids = pids.join(", ");
        let seen = tp::rows(&trace, &format!("select count(distinct process.pid) as n {from} where pid in ({pids})"));
        assert_eq!(seen[0].int("n") as usize, self.survivors.len(), "all survivors are in the trace");
        let ended = "select count(*) as n from slice where extract_arg(arg_set_id, 'debug.status') = 'disconnected'";
        tp::rows(&trace, ended)[0].int("n")
    }
}

/// Stops all threads of a program.
fn stop(program: &Program) {
    program.signal(Signal::STOP);
    let is_stopped = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    let threads = || std::fs::read_dir(format!("/proc/{}/task", program.pid())).expect("it runs");
    wait_until("all threads are stopped", || threads().flatten().all(is_stopped).then_some(()));
}

fn count(text: &str, line: &str) -> usize {
    text.lines().filter(|other| *other == line).count()
}

/// A pipe with a name, whose reader sees when all others have closed it.
fn fifo(harness: &Harness) -> std::fs::File {
    let path = harness.path("fifo");
    if !path.exists() {
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    }
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).expect("opens").into()
}

/// Waits until nobody else has the pipe.
fn wait_for_end(mut fifo: std::fs::File) {
    wait_until("the descriptors in flight are closed", || (fifo.read(&mut [0]).ok() == Some(0)).then_some(()));
}

fn connect(path: &Path) -> yard::Client {
    yard::Client::new(&Channel::connect(&Address::Path(path.into()), SOON).expect("connects"))
}

#[test]
fn a_killed_server_fails_every_call_of_its_clients() {
    skip(|| {
        let mut yard = Yard::new()?;
        for (number, state) in STATES.into_iter().enumerate() {
            let socket = format!("s{number}");
            let mut server = yard.server(if number % 2 == 0 { "threads" } else { "tokio" }, &socket);
            let pipe = fifo(&yard.harness);
            let mut group = yard.bring_into(state, &server, &socket);
            server.kill();
            let killed = Instant::now();
            yard.harness.write(&format!("{}.killed", group.socket), "");
            for client in &mut group.clients {
                client.signal(Signal::CONT);
                client.wait_for_log("survived");
                assert!(killed.elapsed() < SOON, "{state:?}");
                client.wait_ok();
                yard.survivors.push(client.pid());
            }
            wait_for_end(pipe);
        }
        // In two states, no call is open. In others, a client has eight.
        let clients = yard.survivors.len();
        assert!(yard.check_trace() >= clients as i64);
        Ok(())
    });
}

fn kill_clients_of(style: &str) {
    skip(|| {
        let mut yard = Yard::new()?;
        let mut server = yard.server(style, "s");
        let control = connect(&yard.harness.path("s"));
        control.get(&message(1, 1)).wait().expect("is answered");
        let (descriptors, memory) = (server.descriptors(), server.own_memory_kb());
        for (number, state) in STATES.into_iter().enumerate() {
            // Another name of the same socket, for the files of this state.
            let socket = format!("s{number}");
            std::os::unix::fs::symlink("s", yard.harness.path(&socket)).expect("a link");
            let pipe = fifo(&yard.harness);
            let mut group = yard.bring_into(state, &server, &socket);
            group.clients.iter_mut().for_each(Program::kill);
            server.signal(Signal::CONT);
            // Others are served, old and new ones.
            let reply = control.get(&message(7, 1)).timeout(SOON).wait().expect("is answered");
            assert_eq!(reply.duration_ms, Some(7), "{state:?}");
            connect(&yard.harness.path("s")).get(&message(1, 1)).timeout(SOON).wait().expect("is answered");
            server.wait_for_descriptors(descriptors);
            wait_for_end(pipe);
        }
        let held = server.own_memory_kb().saturating_sub(memory);
        assert!(held < 30_000, "{held} KiB more than before");
        drop(control);
        yard.harness.write("end", "");
        server.wait_ok();
        yard.survivors.push(server.pid());
        yard.check_trace();
        Ok(())
    });
}

#[test]
fn a_server_on_threads_survives_killed_clients() {
    kill_clients_of("threads");
}

#[test]
fn a_server_on_tokio_survives_killed_clients() {
    kill_clients_of("tokio");
}
