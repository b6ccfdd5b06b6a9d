//! The events that an adapter for tracing sees, for each kind of call. One test, because the table
//! is installed once per process; the number of the connection tells calls of other tests apart.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use esatto_ipc::hooks::{self, Call, Hooks, Reply};
use esatto_ipc::server::{Incoming, ServerConnection, ServerLimits};
use esatto_ipc::{Channel, Status, Stream};

use crate::messages::sample::Text;
use crate::sample_store::{Sample, get, note, serve, watch};
use crate::store::{self, Handler, method};

/// Size of a request that only this test sends.
const SIZE_OF_SEED_CALL: usize = 1234;

static SEEDS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static SEEN: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

fn saw(event: &str, call: &Call, rest: &str) {
    let side = if call.is_server { "server" } else { "client" };
    let text = format!("{side} {event} {} {}{rest}", call.method.full_name, call.request_id);
    SEEN.lock().unwrap().push((call.seed, text));
}

fn about(reply: &Reply<'_>) -> String {
    let more = if reply.has_more { " more" } else { "" };
    let inside = if reply.is_in_method { " inside" } else { "" };
    let failure = reply.failure.map(|(code, text)| format!(" {code}: {text}")).unwrap_or_default();
    format!(" #{}{more}{inside}{failure}", reply.number)
}

fn table() -> Hooks {
    let mut table = Hooks::none();
    table.enabled = |site| site.category() == "store";
    table.request_begin = |call, request| {
        assert_eq!(request.len(), call.bytes);
        if call.bytes == SIZE_OF_SEED_CALL {
            SEEDS.lock().unwrap().push(call.seed);
        }
        saw("begin", call, if call.is_blocking { " blocking" } else { "" });
        7
    };
    table.request_sent = |call| {
        assert_eq!(call.token, 7);
        saw("sent", call, "");
    };
    table.reply_begin = |call, reply| saw("reply", call, &about(reply));
    table.reply_end = |call| saw("taken", call, "");
    table.ended = |call, end| saw("ended", call, &format!(" {end:?}"));
    table.invoke_begin = |call, _| {
        saw("begin", call, "");
        8
    };
    table.invoke_end = |call| {
        assert_eq!(call.token, 8);
        saw("end", call, "");
    };
    table.reply_sent = |call, reply| saw("reply", call, &about(reply));
    table
}

/// Returns the events since the last call, of one connection, by side.
fn seen(seed: u64) -> (Vec<String>, Vec<String>) {
    let mut all = SEEN.lock().unwrap();
    let ours: Vec<String> = all.iter().filter(|(s, _)| *s == seed).map(|(_, text)| text.clone()).collect();
    all.retain(|(s, _)| *s != seed);
    let of = |side: &str| ours.iter().filter_map(|text| text.strip_prefix(side)).map(str::to_owned).collect();
    (of("client "), of("server "))
}

/// Makes one call, so that the service is bound, and returns the seed of the connection.
fn seed_of(client: &store::Client) -> u64 {
    client.get(&get(&"x".repeat(SIZE_OF_SEED_CALL - 3))).wait().unwrap();
    SEEDS.lock().unwrap().pop().unwrap()
}

/// Answers later, on another thread, or never.
struct Late;

impl Handler for Late {
    fn get(&mut self, call: Incoming<'_, method::Get>) {
        let request = call.request().unwrap();
        let reply = call.into_reply();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            match request.key.as_ref().and_then(|key| key.to_str()) {
                Some("never") => thread::sleep(Duration::from_millis(200)),
                Some("bad") => reply.fail(&Status::new(esatto_ipc::Code::Aborted, "bad")),
                _ => reply.send(&Default::default()),
            }
        });
    }

    fn watch(&mut self, _: Incoming<'_, method::Watch>) {}

    fn note(&mut self, _: Incoming<'_, method::Note>) {}
}

#[test]
fn of_every_kind() {
    hooks::install(table()).unwrap();
    assert!(hooks::install(Hooks::none()).is_err(), "once per process");

    let (channel, server) = serve(store::Serve(Sample::default()));
    let client = store::Client::new(&channel);
    let seed = seed_of(&client);
    assert_ne!(seed, 0);
    let wait_for_end = "so that the server's events are complete";
    let unary = |id: u64| {
        let client =
            ["begin Store.Get ID blocking", "sent Store.Get ID", "reply Store.Get ID #1", "taken Store.Get ID"];
        let server = ["begin Store.Get ID", "reply Store.Get ID #1 inside", "end Store.Get ID"];
        let with_id = |events: &[&str]| events.iter().map(|e| e.replace("ID", &id.to_string())).collect::<Vec<_>>();
        (with_id(&client), with_id(&server))
    };
    client.get(&get("missing")).wait().unwrap_err();
    client.note(&note("x")).send().unwrap();
    client.get(&get("b")).wait().unwrap();
    client.get(&get(wait_for_end)).wait().unwrap();
    let (ours, theirs) = seen(seed);
    // The bind has number 1.
    assert_eq!(ours[..4], unary(2).0[..]);
    assert_eq!(theirs[..3], unary(2).1[..]);
    assert_eq!(
        ours[4..8],
        [
            "begin Store.Get 3 blocking",
            "sent Store.Get 3",
            "reply Store.Get 3 #1 NOT_FOUND: no such key",
            "taken Store.Get 3"
        ]
    );
    assert_eq!(
        theirs[3..6],
        ["begin Store.Get 3", "reply Store.Get 3 #1 inside NOT_FOUND: no such key", "end Store.Get 3"]
    );
    assert_eq!(ours[8..10], ["begin Store.Note 4", "sent Store.Note 4"]);
    assert_eq!(theirs[6..8], ["begin Store.Note 4", "end Store.Note 4"]);
    assert_eq!(ours[10..14], unary(5).0[..]);

    // A stream, whose replies come from another thread. Its end is no message.
    assert_eq!(client.watch(&watch(2, 0)).map(Result::unwrap).count(), 2);
    client.get(&get(wait_for_end)).wait().unwrap();
    let (ours, theirs) = seen(seed);
    assert_eq!(
        ours[..7],
        [
            "begin Store.Watch 7",
            "sent Store.Watch 7",
            "reply Store.Watch 7 #1 more",
            "taken Store.Watch 7",
            "reply Store.Watch 7 #2 more",
            "taken Store.Watch 7",
            "ended Store.Watch 7 Finished"
        ]
    );
    let replies: Vec<_> = theirs.iter().filter(|e| e.starts_with("reply Store.Watch")).collect();
    assert_eq!(replies, ["reply Store.Watch 7 #1 more", "reply Store.Watch 7 #2 more", "reply Store.Watch 7 #3"]);

    // A stream that the program drops.
    let mut events = client.watch(&watch(1_000_000, 1000));
    events.next_reply().unwrap().unwrap();
    drop(events);
    let (ours, _) = seen(seed);
    assert_eq!(ours.last().unwrap(), "ended Store.Watch 9 Cancelled");
    drop((client, channel));
    server.join().unwrap();

    // Replies that come later; no reply at all.
    let (channel, server) = serve(store::Serve(Late));
    let client = store::Client::new(&channel);
    let seed = seed_of(&client);
    client.get(&get("bad")).wait().unwrap_err();
    client.get(&get("never")).timeout(Duration::from_millis(30)).wait().unwrap_err();
    let (ours, theirs) = seen(seed);
    assert_eq!(theirs[..3], ["begin Store.Get 2", "end Store.Get 2", "reply Store.Get 2 #1"]);
    assert!(theirs.contains(&"reply Store.Get 3 #1 ABORTED: bad".to_owned()), "{theirs:?}");
    assert_eq!(ours[8..], ["begin Store.Get 4 blocking", "sent Store.Get 4", "ended Store.Get 4 Timeout"]);
    thread::scope(|scope| {
        scope.spawn(|| client.get(&get("never")).wait().unwrap_err());
        let is_sent = || SEEN.lock().unwrap().contains(&(seed, "client sent Store.Get 5".to_owned()));
        while !is_sent() {
            thread::yield_now();
        }
        channel.close();
    });
    let (ours, _) = seen(seed);
    assert_eq!(ours.last().unwrap(), "ended Store.Get 5 Disconnected");
    server.join().unwrap();
}

#[test]
fn methods_without_a_category_have_none() {
    // The services of the tracing protocol must never trace themselves.
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let server = thread::spawn(move || {
        ServerConnection::new(theirs, untraced::Services, ServerLimits::default()).block();
    });
    esatto_ipc::Call::<untraced::Touch>::new(&channel, &Text::default()).wait().unwrap();
    drop(channel);
    server.join().unwrap();
    assert!(!SEEN.lock().unwrap().iter().any(|(_, text)| text.contains("Quiet")));
}

mod untraced {
    use esatto_ipc::server::{Dispatch, Incoming, Invocation};
    use esatto_ipc::service::{Kind, Method, Rpc, Service};

    use crate::messages::sample::{Empty, Text};

    static SERVICE: Service = Service {
        name: "Quiet",
        methods: &[Method { name: "Touch", full_name: "Quiet.Touch", kind: Kind::Unary, trace: None }],
    };

    pub(super) struct Touch;

    impl Rpc for Touch {
        const SERVICE: &'static Service = &SERVICE;
        const METHOD: u32 = 1;
        type Request = Text;
        type Reply = Empty;
    }

    pub(super) struct Services;

    impl Dispatch for Services {
        fn service(&self, index: usize) -> Option<&'static Service> {
            (index == 0).then_some(&SERVICE)
        }

        fn dispatch(&mut self, call: Invocation<'_>) {
            Incoming::<Touch>::new(call).answer(|_| Ok(Empty::default()));
        }
    }
}
