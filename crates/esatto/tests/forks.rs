//! Forks while other threads use everything that the process shares: the child can use all of it.

#![allow(missing_docs, reason = "tests")]
#![cfg(target_os = "linux")]

use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::panic::catch_unwind;
use std::sync::Mutex;

use esatto::schema::DataSourceConfig;
use esatto::{
    Backend, Category, CustomClock, DataSource, Error, Interceptor, Lanes, Pending, Session, SessionConfig,
    SessionObserver, Setup, Source, Stop, Tracing, Track,
};

esatto::categories! {
    static TEST = "test";
}

const FORKS: u32 = 200;

/// If a child hangs, it is ended and the test fails.
const CHILD_SECONDS: u32 = 120;

unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn alarm(seconds: u32) -> u32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
}

struct Numbers;

impl DataSource for Numbers {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

static NUMBERS: Source<Numbers> = Source::new("test.numbers");

struct Observer;

impl SessionObserver for Observer {}

struct Ignorer;

impl Interceptor for Ignorer {
    type ThreadState = ();

    fn setup(_: &[u8]) -> Self {
        Self
    }

    fn packet(&self, (): &mut (), _: &[u8]) {}
}

static LANES: Lanes = Lanes::new("lanes");
static DEVICE: CustomClock = CustomClock::new(66, 1);

/// Locks the locks in the user's statics.
fn use_statics() {
    NUMBERS.register().expect("registers");
    drop(LANES.take());
    assert!(DEVICE.anchor_at(0, 0));
}

/// Locks everything, one thing after the other.
fn use_everything() {
    use_statics();
    drop(esatto::observe_sessions(Observer));
    esatto::interceptor::register::<Ignorer>("test_interceptor").expect("registers");
    let _ = Category::dynamic("forks");
    NUMBERS.instances().for_each(drop);
    Track::of_process().named("forks").describe_now();
    // Describes the thread, and asks the clock.
    std::thread::spawn(|| esatto::instant!(TEST, "elsewhere")).join().expect("ends");
}

/// The work of a child, which must succeed.
fn child() -> bool {
    alarm(CHILD_SECONDS);
    use_everything();
    let tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("connects");
    let session = Session::start(Backend::InProcess, config()).expect("starts");
    assert!(tracing.wait_until_enabled(&TEST, core::time::Duration::from_secs(60)));
    use_everything();
    // The thread that forked is the main thread here.
    esatto::instant!(TEST, track: &Track::of_this_thread(), "in a child");
    let events = esatto_trace::events(&session.stop().expect("stops"));
    let count = |name: &str| events.iter().filter(|event| event.name.as_deref() == Some(name)).count();
    let own = events.iter().find(|event| event.name.as_deref() == Some("in a child"));
    assert_eq!(own.and_then(|event| event.tid), Some(i64::from(std::process::id())));
    (count("elsewhere"), count("in a child")) == (1, 1)
}

fn config() -> SessionConfig {
    SessionConfig::new().buffer_size_kb(256)
}

/// A data source whose instances end when the test says so.
struct Late;

static STOPS: Mutex<Vec<Stop>> = Mutex::new(Vec::new());

impl DataSource for Late {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }

    fn stop(&self, stop: Stop) {
        STOPS.lock().unwrap().push(stop);
    }
}

static LATE: Source<Late> = Source::new("test.late");

#[test]
fn a_children_pending_operations_fail() {
    LATE.register().expect("registers");
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    let late = DataSourceConfig { name: Some("test.late".into()), ..Default::default() };
    let session = Session::start(Backend::InProcess, config().data_source(late)).expect("starts");
    let [waited, awaited, told] = [(); 3].map(|()| session.stop_recording());
    let mut chunks = session.chunks();
    let child = move || {
        alarm(CHILD_SECONDS);
        let errors = [
            waited.wait().expect_err("nobody answers"),
            block_on(awaited).expect_err("nobody answers"),
            heard(told).expect_err("nobody answers"),
            chunks.next().expect("says why").expect_err("nobody reads"),
        ];
        errors.iter().all(|error| error.to_string().contains("forked")) && chunks.next().is_none()
    };
    assert_eq!(in_child(child), 0);
    STOPS.lock().unwrap().clear();
    session.stop().expect("for the parent nothing has changed");
}

fn heard(pending: Pending<()>) -> Result<(), Error> {
    let (sender, receiver) = std::sync::mpsc::channel();
    pending.then(move |result| sender.send(result).expect("is waited for"));
    receiver.recv().expect("is told")
}

/// A runtime for futures that are ready.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

/// Runs `child` in a child process and returns its status: 0 if that was true.
fn in_child(child: impl FnOnce() -> bool) -> i32 {
    match fork() {
        0 => {
            let good = catch_unwind(AssertUnwindSafe(child)).unwrap_or(false);
            std::process::exit(i32::from(!good))
        }
        pid => {
            let mut status = -1;
            // SAFETY: the address of an integer of ours.
            let waited = unsafe { waitpid(pid, &raw mut status, 0) };
            if waited == pid { status } else { -1 }
        }
    }
}

#[test]
fn random_flows_of_a_child_are_not_those_of_its_parent() {
    let _tracing = Tracing::builder().in_process().start().expect("connects");
    let before = esatto::Flow::random();
    let file = std::env::temp_dir().join(format!("esatto-random-flows-{}", std::process::id()));
    let flows = || [(); 3].map(|()| esatto::Flow::random().id());
    let child = || std::fs::write(&file, flows().map(u64::to_le_bytes).concat()).is_ok();
    assert_eq!(in_child(child), 0);
    let of_child = std::fs::read(&file).expect("was written");
    let _ = std::fs::remove_file(&file);
    let of_parent = flows().map(u64::to_le_bytes);
    assert_eq!(of_child.len(), 24);
    for id in of_child.chunks(8) {
        assert!(!of_parent.iter().any(|own| own == id) && id != before.id().to_le_bytes());
    }
}

#[test]
fn a_child_finds_all_locks_free() {
    let tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("connects");
    // Has read its number.
    Track::of_this_thread().named("forks").describe_now();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    use_everything();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    use_statics();
                }
            });
        }
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let session = Session::start(Backend::InProcess, config()).expect("starts");
                tracing.wait_until_enabled(&TEST, core::time::Duration::from_secs(60));
                drop(session);
            }
        });
        let failed = (0..FORKS).find(|_| in_child(child) != 0);
        over.store(true, Ordering::Relaxed);
        assert_eq!(failed, None, "a child has not done what it should");
    });
}
