//! A thousand connections with a thousand calls each: both sides give each call the same number of
//! its flow, and no two calls have the same (`docs/spec/ipc-tracing.md` §5).

#![allow(missing_docs, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use esatto_ipc::hooks::{self, Call, Hooks};
use esatto_ipc::server::{Server, ServerConnection};
use esatto_ipc::{Channel, Stream};
use esatto_rpc_tests::yard::{Place, message, yard};
use rustix::process::{Resource, Rlimit};

const CONNECTIONS: usize = 1000;
const CALLS: usize = 1000;
/// Calls of one connection at once.
const BATCH: usize = 250;
const THREADS: usize = 2;

static CLIENT: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static SERVER: Mutex<Vec<u64>> = Mutex::new(Vec::new());

fn note(ids: &Mutex<Vec<u64>>, call: &Call) {
    ids.lock().unwrap_or_else(PoisonError::into_inner).push(call.flow_id());
}

/// Both ends of a connection.
struct Ends {
    client: yard::Client,
    server: ServerConnection<yard::ServeAsync<Place>>,
}

fn play(connections: &mut [Ends]) {
    let answered = Arc::new(AtomicUsize::new(0));
    for _ in 0..CALLS / BATCH {
        // All connections have their calls open at the same time.
        for Ends { client, .. } in &*connections {
            for _ in 0..BATCH {
                let answered = Arc::clone(&answered);
                let callback = move |result: Result<_, _>| {
                    result.expect("is answered");
                    answered.fetch_add(1, Ordering::Relaxed);
                };
                client.get(&message(1, 0)).then(callback).expect("is sent");
            }
        }
        let before = answered.swap(0, Ordering::Relaxed);
        let mut left = connections.len() * BATCH - before;
        while left > 0 {
            for Ends { client, server } in &mut *connections {
                server.pump().expect("goes on");
                client.channel().pump().expect("goes on");
            }
            left -= answered.swap(0, Ordering::Relaxed);
        }
    }
}

#[test]
fn no_two_calls_of_a_thousand_connections_have_the_same_flow() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let wanted = 2 * CONNECTIONS as u64 + 500;
    let enough = limit.current.is_none_or(|current| current >= wanted);
    if !enough {
        let raised = Rlimit { current: Some(wanted), ..limit };
        rustix::process::setrlimit(Resource::Nofile, raised).expect("the limit of descriptors can be raised");
    }
    let mut hooks = Hooks::none();
    hooks.enabled = |site| site.category() == esatto_rpc_tests::yard::CATEGORY;
    hooks.request_begin = |call, _| {
        note(&CLIENT, call);
        1
    };
    hooks.invoke_begin = |call, _| {
        note(&SERVER, call);
        1
    };
    hooks::install(hooks).expect("is the first");

    let server = Server::new(yard::ServeAsync::new(Place));
    let connect = |_| {
        let (ours, theirs) = Stream::pair().expect("there are descriptors");
        Ends { client: yard::Client::new(&Channel::new(ours)), server: server.connection(theirs) }
    };
    let mut connections: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    thread::scope(|scope| {
        for part in connections.chunks_mut(CONNECTIONS / THREADS) {
            scope.spawn(|| play(part));
        }
    });
    assert!(connections.iter().all(|ends| ends.client.channel().unexpected() == 0));
    assert_eq!(server.counters().refused, 0);

    let sorted = |ids: &Mutex<Vec<u64>>| {
        let mut ids = std::mem::take(&mut *ids.lock().expect("no panic"));
        ids.sort_unstable();
        ids
    };
    let (client, server) = (sorted(&CLIENT), sorted(&SERVER));
    assert_eq!(client.len(), CONNECTIONS * CALLS);
    assert!(client == server, "both sides have the same ids");
    assert!(client.windows(2).all(|pair| pair[0] != pair[1]), "no two calls have the same id");
    assert_ne!(client[0], 0);
}
