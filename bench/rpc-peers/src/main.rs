//! Calls over a UNIX socket: one client process for all libraries, and one server process for each.
//!
//! `bench-rpc-peers BATCHES` starts the servers, measures all libraries in turn, a batch each, and
//! prints a line `{"case": …, "threads": …, "wall": […], "cpu": […]}` for each case: ns per call of
//! each batch, where `threads` is the number of connections.

mod bare;
mod capnp_rpc_peer;
mod contender;
mod esatto_peer;
mod tarpc_peer;
mod tonic_peer;
mod ttrpc_peer;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use contender::{Contender, Work};

/// A library in one style.
struct Library {
    name: &'static str,
    serve: fn(&Path),
    connect: fn(&Path, usize) -> Box<dyn Contender>,
}

const LIBRARIES: &[Library] = &[
    Library { name: "bare", serve: bare::serve, connect: bare::connect },
    Library { name: "bare, tokio", serve: bare::serve_tokio, connect: bare::connect_tokio },
    Library { name: "Handler", serve: esatto_peer::serve_handler, connect: esatto_peer::connect },
    Library { name: "async fn", serve: esatto_peer::serve_async_fn, connect: esatto_peer::connect },
    Library { name: "async fn, tokio", serve: esatto_peer::serve_tokio, connect: esatto_peer::connect_tokio },
    Library { name: "ttrpc", serve: ttrpc_peer::serve, connect: ttrpc_peer::connect },
    Library { name: "ttrpc, async", serve: ttrpc_peer::serve_async, connect: ttrpc_peer::connect_async },
    Library { name: "tarpc", serve: tarpc_peer::serve, connect: tarpc_peer::connect },
    Library { name: "capnp-rpc", serve: capnp_rpc_peer::serve, connect: capnp_rpc_peer::connect },
    Library { name: "tonic", serve: tonic_peer::serve, connect: tonic_peer::connect },
];

/// Cases, and the calls of each connection in a batch.
const CASES: &[(&str, Work)] = &[
    ("round trip, 16 B", Work { connections: 1, calls: 200, size: 16, is_one_way: false }),
    ("round trip, 1 KiB", Work { connections: 1, calls: 200, size: 1024, is_one_way: false }),
    ("round trip, 64 KiB", Work { connections: 1, calls: 50, size: 65536, is_one_way: false }),
    ("round trip, 16 B", Work { connections: MANY, calls: 8, size: 16, is_one_way: false }),
    ("round trip, 1 KiB", Work { connections: MANY, calls: 8, size: 1024, is_one_way: false }),
    ("round trip, 64 KiB", Work { connections: MANY, calls: 2, size: 65536, is_one_way: false }),
    ("one-way, 16 B", Work { connections: 1, calls: 1000, size: 16, is_one_way: true }),
    ("one-way, 1 KiB", Work { connections: 1, calls: 1000, size: 1024, is_one_way: true }),
    ("one-way, 64 KiB", Work { connections: 1, calls: 50, size: 65536, is_one_way: true }),
    ("one-way, 16 B", Work { connections: MANY, calls: 50, size: 16, is_one_way: true }),
];

const MANY: usize = 64;

/// Batches of a case before the timed ones.
const WARM_UP: usize = 2;

/// Until a server listens.
const DEADLINE: Duration = Duration::from_secs(30);

/// A server process that ends with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", name, socket] => {
            let library = LIBRARIES.iter().find(|library| library.name == *name).expect("a library of that name");
            (library.serve)(Path::new(socket));
        }
        [batches] => measure(batches.parse().expect("a number"), &|_| true),
        // For profiles: one library, or one case.
        [batches, part] => measure(batches.parse().expect("a number"), &|name| name.contains(part)),
        _ => {
            eprintln!("bench-rpc-peers BATCHES [PART]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(batches: usize, wants: &dyn Fn(&str) -> bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let libraries = || LIBRARIES.iter().enumerate().filter(|(_, library)| wants(library.name));
    let socket = |index: usize| folder.path().join(index.to_string());
    let _servers: Vec<Server> = libraries().map(|(index, library)| start(library, &socket(index))).collect();
    for connections in [1, MANY] {
        let mut contenders: Vec<(&Library, Box<dyn Contender>)> =
            libraries().map(|(index, library)| (library, (library.connect)(&socket(index), connections))).collect();
        for (case, work) in CASES.iter().filter(|(_, work)| work.connections == connections) {
            let mut samples = vec![Vec::new(); contenders.len()];
            for batch in 0..batches + WARM_UP {
                for ((_, contender), samples) in contenders.iter_mut().zip(&mut samples) {
                    let time = contender.run(work);
                    if batch >= WARM_UP {
                        samples.push(time.as_nanos() as f64 / (work.connections * work.calls) as f64);
                    }
                }
            }
            for ((library, _), samples) in contenders.iter().zip(&samples) {
                let wall = samples.iter().map(|ns| format!("{ns:.1}")).collect::<Vec<_>>().join(",");
                let name = library.name;
                println!(
                    "{{\"case\": \"{name}: {case}\", \"threads\": {connections}, \"wall\": [{wall}], \"cpu\": []}}"
                );
            }
        }
    }
}

/// Starts a server, and waits until it listens.
fn start(library: &Library, socket: &Path) -> Server {
    let this: PathBuf = std::env::current_exe().expect("the own path");
    let server = Command::new(this).args(["serve", library.name]).arg(socket).spawn().expect("the server starts");
    let server = Server(server);
    let start = Instant::now();
    while std::os::unix::net::UnixStream::connect(socket).is_err() {
        assert!(start.elapsed() < DEADLINE, "{} does not listen", library.name);
        std::thread::sleep(Duration::from_millis(5));
    }
    server
}
