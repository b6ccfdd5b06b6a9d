//! Services that say what makes no sense, played by hand. The program and its other sessions
//! continue.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use esatto::{DataSource, Setup, Source, Tracing};
use esatto_tests::fake::{self, FakeProducerPort, PRODUCER_METHODS};
use esatto_tests::wire::{self, Proto};
use esatto_tests::{Harness, wait_until};

struct Quiet;

static SETUPS: AtomicU32 = AtomicU32::new(0);

impl DataSource for Quiet {
    type Config = esatto::Field<esatto::schema::TestConfig, 1001>;
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, Self::Config>) -> Self {
        SETUPS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

static QUIET: Source<Quiet> = Source::new("com.example.quiet").on_flush(|_, flush| drop(flush));

/// Commands to producers.
const START: u32 = 1;
const STOP: u32 = 2;
const SETUP_TRACING: u32 = 3;
const FLUSH: u32 = 5;
const SETUP: u32 = 6;
const CLEAR: u32 = 7;

struct Played {
    /// Dropped before the port: a connection that waits to be accepted delays nothing.
    _tracing: Tracing,
    listener: UnixListener,
    harness: Harness,
}

impl Played {
    fn begin() -> (Self, FakeProducerPort) {
        QUIET.register().expect("registers");
        let harness = Harness::new();
        let listener = UnixListener::bind(harness.producer_socket()).expect("a socket");
        let socket = harness.producer_socket().display().to_string();
        let tracing = Tracing::builder().socket(socket).start().expect("the control thread starts");
        let played = Self { _tracing: tracing, listener, harness };
        let port = played.accept();
        (played, port)
    }

    /// The next connection, until it has registered a data source.
    fn accept(&self) -> FakeProducerPort {
        let methods = fake::first(12, &PRODUCER_METHODS);
        let mut port = FakeProducerPort::accept(&self.listener, &methods, Proto::new());
        port.serve_until("RegisterDataSource", 1);
        port
    }
}

fn config(name: &[u8], buffer: u64) -> Proto {
    Proto::new().bytes(1, name).int(2, buffer)
}

fn set_up(port: &mut FakeProducerPort, command: u32, id: u64, config: &Proto) {
    port.command(command, &Proto::new().int(1, id).message(2, config));
}

/// Serves until the program reports that this instance has ended. Returns how many started
/// instances it reported.
fn until_stopped(port: &mut FakeProducerPort, id: u64) -> usize {
    port.command(STOP, &Proto::new().int(1, id));
    let before = count(port, "NotifyDataSourceStopped");
    port.serve_until("NotifyDataSourceStopped", before + 1);
    count(port, "NotifyDataSourceStarted")
}

fn count(port: &FakeProducerPort, method: &str) -> usize {
    port.service.calls.iter().filter(|called| **called == method).count()
}

#[test]
fn instances_that_cannot_be_are_answered() {
    let (_played, mut port) = Played::begin();
    port.setup_tracing();
    let quiet = b"com.example.quiet";
    let setups = SETUPS.load(Ordering::SeqCst);
    let odd: [Proto; 7] = [
        config(quiet, 0),
        config(quiet, 65536),
        config(quiet, u64::MAX),
        config(b"com.example.unheard", 1),
        config(b"\xff\0\xfe", 1),
        Proto::new(),
        // A message in it that ends too early.
        config(quiet, 1).bytes(1001, b"\x08"),
    ];
    for (id, config) in (1..).zip(&odd) {
        set_up(&mut port, SETUP, id, config);
        set_up(&mut port, START, id, config);
        assert_eq!(until_stopped(&mut port, id), id as usize, "{config:?}");
    }
    assert_eq!(SETUPS.load(Ordering::SeqCst), setups, "none of them came to be");
    // The same again, and unknown ids.
    port.command(CLEAR, &Proto::new().int(1, 77).int(1, 1));
    port.command(FLUSH, &Proto::new().int(1, 78).int(2, 5));
    until_stopped(&mut port, 79);
    port.command(99, &Proto::new().int(1, 1));
    port.command(SETUP, &Proto::new());
    // And one that is right.
    set_up(&mut port, SETUP, 100, &config(quiet, 1));
    set_up(&mut port, SETUP, 100, &config(quiet, 1));
    set_up(&mut port, START, 100, &config(quiet, 1));
    set_up(&mut port, START, 100, &config(quiet, 1));
    until_stopped(&mut port, 100);
    assert_eq!(SETUPS.load(Ordering::SeqCst), setups + 1);
    assert_eq!(port.flushed, [5]);
}

#[test]
fn flushes_are_acknowledged_up_to_the_newest() {
    let (_played, mut port) = Played::begin();
    port.setup_tracing();
    for request in [3, 4, 2, 9] {
        port.command(FLUSH, &Proto::new().int(2, request));
    }
    while port.flushed.last() != Some(&9) {
        assert!(port.serve());
    }
    assert!(port.flushed.len() <= 4);
}

struct Asked;

static ASKED_FLUSHES: AtomicU32 = AtomicU32::new(0);
static ASKED: Source<Asked> = Source::new("com.example.asked").on_flush(|_, flush| {
    ASKED_FLUSHES.fetch_add(1, Ordering::SeqCst);
    drop(flush);
});

impl DataSource for Asked {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, Self::Config>) -> Self {
        Self
    }
}

#[test]
fn a_flood_of_flushes_costs_no_more_than_a_few() {
    const FLUSHES: u64 = 2_000;
    ASKED.register().expect("registers");
    let (_played, mut port) = Played::begin();
    port.setup_tracing();
    let asked = config(b"com.example.asked", 1);
    set_up(&mut port, SETUP, 1, &asked);
    set_up(&mut port, START, 1, &asked);
    port.serve_until("NotifyDataSourceStarted", 1);
    // One that names an instance again and again.
    let ids = (0..10_000).fold(Proto::new(), |body, _| body.int(1, 1));
    port.command(FLUSH, &ids.int(2, 1));
    while port.flushed.is_empty() {
        assert!(port.serve());
    }
    assert_eq!(ASKED_FLUSHES.load(Ordering::SeqCst), 1);
    // Many at once: each acknowledgement covers those before it.
    port.commands_at_once(FLUSH, (2..=FLUSHES).map(|request| Proto::new().int(2, request)));
    while port.flushed.last() != Some(&FLUSHES) {
        assert!(port.serve());
    }
    assert!(port.flushed.len() < 200, "{} acknowledgements", port.flushed.len());
}

#[test]
fn memory_that_is_a_socket_ends_the_connection() {
    let (played, mut port) = Played::begin();
    port.serve_until("GetAsyncCommand", 1);
    for (fd, page_kb) in [(true, 4), (false, 4), (false, 3)] {
        let (one, other) = UnixStream::pair().expect("a pair");
        let fd = fd.then(|| OwnedFd::from(one));
        port.command_with(SETUP_TRACING, &Proto::new().int(1, page_kb), fd.as_ref());
        while port.serve() {}
        drop(other);
        // It comes again.
        port = played.accept();
    }
    drop(played.harness);
}

#[test]
fn case_05_a_service_may_be_lost_more_than_a_hundred_times() {
    let (played, port) = Played::begin();
    let Played { listener, harness, _tracing } = played;
    let socket = harness.producer_socket();
    let methods = fake::first(12, &PRODUCER_METHODS);
    drop((port, listener));
    // Perfetto's library gives up after 101.
    for _ in 2..=120 {
        std::fs::remove_file(&socket).expect("is there");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let accepted = AtomicBool::new(false);
        let mut port = std::thread::scope(|scope| {
            // The SDK connects at once to a socket that appears in the folder. Here it may appear
            // before the SDK watches the folder.
            scope.spawn(|| {
                while !accepted.load(Ordering::SeqCst) {
                    drop(harness.write("poke", ""));
                    std::fs::remove_file(harness.path("poke")).expect("is there");
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            let port = FakeProducerPort::accept(&listener, &methods, Proto::new());
            accepted.store(true, Ordering::SeqCst);
            port
        });
        port.serve_until("InitializeConnection", 1);
    }
}

struct Renewed;

static RENEWED_SETUPS: AtomicU32 = AtomicU32::new(0);
static RENEWED: Source<Renewed> = Source::new("com.example.renewed");

impl DataSource for Renewed {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, Self::Config>) -> Self {
        RENEWED_SETUPS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

#[test]
fn a_stream_of_commands_that_ends_is_renewed() {
    RENEWED.register().expect("registers");
    let (_played, mut port) = Played::begin();
    port.setup_tracing();
    let renewed = config(b"com.example.renewed", 1);
    // An instance that lives through all of it.
    set_up(&mut port, SETUP, 1, &renewed);
    set_up(&mut port, START, 1, &renewed);
    let ends: [fn(&mut FakeProducerPort); 3] = [
        |port| port.end_commands(true),
        |port| port.end_commands(false),
        |port| port.last_command(CLEAR, &Proto::new().int(1, 1)),
    ];
    for (id, end) in (2..).zip(ends.iter().cycle().take(60)) {
        let asked = count(&port, "GetAsyncCommand");
        end(&mut port);
        port.serve_until("GetAsyncCommand", asked + 1);
        let setups = RENEWED_SETUPS.load(Ordering::SeqCst);
        set_up(&mut port, SETUP, id, &renewed);
        set_up(&mut port, START, id, &renewed);
        until_stopped(&mut port, id);
        assert_eq!(RENEWED_SETUPS.load(Ordering::SeqCst), setups + 1);
    }
    let told = count(&port, "NotifyDataSourceStopped");
    until_stopped(&mut port, 1);
    assert_eq!(count(&port, "NotifyDataSourceStopped"), told + 1, "it had not ended before");
}

#[test]
fn a_service_that_never_has_commands_is_connected_to_again() {
    let (played, mut port) = Played::begin();
    for _ in 0..2 {
        port.serve_until("GetAsyncCommand", 1);
        let mut ended = 0;
        loop {
            if count(&port, "GetAsyncCommand") > ended {
                port.end_commands(true);
                ended += 1;
            }
            if !port.serve() {
                break;
            }
        }
        assert_eq!(ended, 9, "it asks again, but not for ever");
        port = played.accept();
    }
    port.setup_tracing();
    until_stopped(&mut port, 1);
}

#[test]
fn case_04_sockets_can_be_delivered() {
    static REQUESTS: std::sync::Mutex<Vec<esatto::SocketRequest>> = std::sync::Mutex::new(Vec::new());
    let next = || wait_until("a request", || REQUESTS.lock().unwrap().pop());
    QUIET.register().expect("registers");
    let ask = |request| REQUESTS.lock().unwrap().push(request);
    let _tracing = Tracing::builder().socket_factory(ask).start().expect("the control thread starts");
    let methods = fake::first(12, &PRODUCER_METHODS);
    let harness = Harness::new();
    let listener = UnixListener::bind(harness.producer_socket()).expect("a socket");

    // After a descriptor that is no socket, and after a request without an answer, the SDK asks
    // again a second later.
    next().deliver(std::fs::File::open("/dev/null").expect("is there"));
    drop(next());
    next().deliver(UnixStream::connect(harness.producer_socket()).expect("connects"));
    let mut port = FakeProducerPort::accept(&listener, &methods, Proto::new());
    port.serve_until("RegisterDataSource", 1);
    // When that is over it asks again.
    drop(port);
    next().deliver(UnixStream::connect(harness.producer_socket()).expect("connects"));
    FakeProducerPort::accept(&listener, &methods, Proto::new()).serve_until("RegisterDataSource", 1);
}

#[test]
fn triggers_wait_for_a_connection_and_are_forgotten_in_time() {
    let harness = Harness::new();
    let socket = harness.producer_socket().display().to_string();
    let tracing = Tracing::builder().socket(socket).start().expect("the control thread starts");
    tracing.activate_triggers(&["too old"], std::time::Duration::ZERO);
    tracing.activate_triggers(&["first", "second"], std::time::Duration::from_secs(600));
    let listener = UnixListener::bind(harness.producer_socket()).expect("a socket");
    let methods = fake::first(12, &PRODUCER_METHODS);
    let mut service = fake::FakeService::accept(&listener, &methods);
    let mut triggers = Vec::new();
    while triggers.is_empty() {
        let call = service.call().expect("the producer stays");
        match call.method {
            "ActivateTriggers" => {
                triggers = wire::all(&call.args, 1).into_iter().map(<[u8]>::to_vec).collect();
            }
            "GetAsyncCommand" => {}
            _ => service.reply(&call, &Proto::new()),
        }
    }
    assert_eq!(triggers, [&b"first"[..], b"second"]);
    tracing.activate_triggers(&["at once"], std::time::Duration::ZERO);
    let call = loop {
        let call = service.call().expect("the producer stays");
        if call.method == "ActivateTriggers" {
            break call;
        }
        service.reply(&call, &Proto::new());
    };
    assert_eq!(wire::all(&call.args, 1), [b"at once"]);
}
