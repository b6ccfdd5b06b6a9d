//! A process that has no descriptors left serves its clients, and accepts others later.

#![allow(missing_docs, reason = "tests")]

use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::server::Server;
use esatto_ipc::{Address, Channel, Listener};
use esatto_rpc_tests::yard::{Place, message, yard};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::{Resource, Rlimit};

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(60);

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("is there").count()
}

fn connect(address: &Address) -> yard::Client {
    yard::Client::new(&Channel::connect(address, LONG).expect("connects"))
}

/// Serves while clients take all descriptors.
fn play(name: &str, serve: impl FnOnce(Server<yard::ServeAsync<Place>>, Listener) + Send + 'static) {
    let server = Server::new(yard::ServeAsync::new(Place));
    let name = format!("esatto-shortage-{name}-{}", std::process::id());
    let address = Address::Abstract(name.clone().into_bytes());
    let listener = Listener::bind(&address).expect("listens");
    let other = server.clone();
    let served = thread::spawn(move || serve(other, listener));
    let first = connect(&address);
    first.get(&message(1, 1)).timeout(LONG).wait().expect("is answered");

    let before = rustix::process::getrlimit(Resource::Nofile);
    // The clients have theirs already. The server needs one or two for each.
    let socket = || rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    let clients: Vec<_> = (0..12).map(|_| socket()).collect();
    let limit = Rlimit { current: Some(descriptors() as u64 + 8), ..before };
    rustix::process::setrlimit(Resource::Nofile, limit).expect("can be lowered");
    let peer = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
    clients.iter().for_each(|client| rustix::net::connect(client, &peer).expect("connects"));
    let begin = Instant::now();
    while server.counters().failed_accepts == 0 {
        assert!(begin.elapsed() < LONG, "{:?}", server.counters());
        first.get(&message(1, 1)).timeout(LONG).wait().expect("is answered");
    }
    first.get(&message(1, 1)).timeout(LONG).wait().expect("is answered");
    drop(clients);
    connect(&address).get(&message(1, 1)).timeout(LONG).wait().expect("is answered later");
    rustix::process::setrlimit(Resource::Nofile, before).expect("can be raised");
    server.stop();
    served.join().expect("ends");
}

/// One test, because the limit is that of the process.
#[test]
fn a_server_without_descriptors_goes_on() {
    play("threads", |server, listener| server.serve_blocking(&listener).expect("serves"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("starts");
    play("tokio", move |server, listener| runtime.block_on(server.serve(&listener)).expect("serves"));
}
