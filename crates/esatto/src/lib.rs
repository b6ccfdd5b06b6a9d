//! Perfetto tracing for Rust programs: slices, instants, counters and flows. The system's tracing
//! service records them, or a service inside the process. No C++ toolchain is needed.
//!
//! This program records itself into a file. Open the file in <https://ui.perfetto.dev>:
//!
//! ```no_run
//! use esatto::{CounterTrack, Flow};
//!
//! esatto::categories! {
//!     static RENDER = "render", "Frames and what is drawn in them";
//! }
//!
//! static QUEUE: CounterTrack = CounterTrack::new("queue length");
//!
//! fn main() -> Result<(), esatto::Error> {
//!     // Keep it until the end of `main`: its drop completes the file.
//!     let _trace = esatto::trace_to_file("app.pftrace")?;
//!     for number in 0..3_u64 {
//!         let _frame = esatto::slice!(RENDER, "frame", number);
//!         esatto::counter!(RENDER, &QUEUE, 3 - number);
//!         {
//!             let _draw = esatto::slice!(RENDER, "draw", flow: Flow::process(number));
//!         } // the slice ends here
//!         esatto::instant!(RENDER, "vsync", end_flow: Flow::process(number));
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A tracing service can also record the program, alone or with others. Then `main` begins with
//! `let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start()?;`, and the
//! command `esatto record -o FILE -- PROGRAM` records it. So do Perfetto's own tools: the sockets,
//! the shared memory and the bytes are the same.
//!
//! Three pages help to begin: [Which way fits my program?](guide::which_way), [Async
//! programs](guide::async_programs) and [Common mistakes](guide::common_mistakes).
//!
//! # How a program is recorded
//!
//! | goal | API |
//! | --- | --- |
//! | record the whole program into a file | [`trace_to_file`], [`trace_from_env`], [`Builder::file_from_env`]: `ESATTO_TRACE=out.pftrace ./app` |
//! | record a part of it, controlled by the program | [`Session`] with [`Backend::InProcess`], after [`Builder::in_process`] |
//! | record it together with the system and other programs | [`Builder::system`], and `esatto record`, Perfetto's own tools, or a [`Session`] with [`Backend::System`] |
//!
//! A [`SessionConfig`], or any [`TraceConfig`], says what a session records.
//!
//! # Which API to use
//!
//! | API | use it for | start with |
//! | --- | --- | --- |
//! | trace points | what a program does and when: almost always the right choice | [`slice!`], [`instant!`], [`counter!`], [`state!`], [`Track`], [`Flow`], [`Value`] |
//! | data sources | custom packets with their own configuration and life cycle: samplers, statistics, records in a custom schema | [`DataSource`], [`Source`] |
//! | endpoints and writers | programs that have their own transport or event loop | [`producer`] |
//!
//! Programs that use `tracing` or `log` keep it: `esatto-tracing` turns spans into slices. To see
//! events in the terminal while they happen, use `esatto-console`. If you come from another tracing
//! library, `docs/migrating.md` in the repository maps its terms to these. The search also finds
//! items by the words of other libraries: span, zone, gauge, histogram, arrow and more.
//!
//! # Async programs
//!
//! The guard of [`slice!`] stays on its thread, and its slice contains all work of the thread until
//! the guard is dropped. Futures share threads, so they need slices of their own. Put
//! `#[esatto::trace]` on an `async fn`, and use [`async_slice!`] for other futures. Both record one
//! slice for the lifetime and one per poll. See [Async programs](guide::async_programs).
//!
//! ```
//! esatto::categories! {
//!     static NET = "net", "Requests and connections";
//! }
//!
//! # #[cfg(feature = "macros")]
//! #[esatto::trace(NET, args(id))]
//! async fn answer(id: u64) -> u64 {
//!     esatto::async_slice!(NET, "look up", id).run(look_up(id)).await + 1
//! }
//!
//! async fn look_up(id: u64) -> u64 {
//!     id * 2
//! }
//! ```
//!
//! # What an event can record
//!
//! | what | API |
//! | --- | --- |
//! | a duration: of a scope, between two calls, of a future | [`slice!`]; [`begin!`], [`end!`]; [`async_slice!`] |
//! | a moment; a changing number; a state | [`instant!`]; [`counter!`] and [`CounterTrack`]; [`state!`] and [`StateTrack`] |
//! | work that does not belong to a thread: a request, a connection, a device | `track:` with a [`Track`]; [`Lanes`] |
//! | cause and effect; events that belong together | `flow:` with a [`Flow`]; [`Event::correlate`] |
//! | values | `key = value`: every [`Value`]; [`debug`], [`display`], [`dict`], [`TraceArgs`] |
//! | another time than now | `at:` with a [`Timestamp`], of a [`CustomClock`], an `Instant` |
//! | the place in the source; a log message; a call stack | [`Event::location`] and [`here!`]; [`Event::log`]; [`Event::callstack`] |
//! | fields of a custom schema | [`Event::fields`] |
//! | categories that can be switched on and off | [`categories!`], [`Category::group`], [`Category::dynamic`] |
//!
//! Names and texts may contain any character. The trace processor shows a text only up to its first
//! NUL.
//!
//! [`slice!`](crate::slice!) lists all arguments of trace points. The folder `examples` has a
//! program for each topic.
//!
//! # What a trace point costs
//!
//! Figures are nanoseconds on a virtual machine with 2.7 GHz, where reading the counter alone takes
//! 9 to 12. `cargo xtask bench sdk` measures them and those of other libraries.
//!
//! | | cost |
//! | --- | --- |
//! | off | a relaxed load and a branch; arguments are not evaluated |
//! | an event with a static name | a reading of the clock and 1 to 5 ns: the thread stores a dozen bytes into memory that the service reads. No lock, no allocation, no system call |
//! | an argument | 2 to 5 ns for a number or a short text; about 50 ns for texts of more than about 80 bytes, nested values and closures |
//! | an event on another track, a flow, a counter | 3 to 8 ns more |
//! | every 4 KiB | the next chunk: one short lock; the control thread wakes once in 5 ms, or for each quarter of the memory |
//! | the first event of a thread in a session, or with a new name | microseconds: the thread, the process and the name are described |
//! | the clock | [`Clock::Counter`] 9 to 12; [`Clock::BootTime`] 20 |
//! | machine code | 60 bytes for a pair, 140 with two arguments |
//!
//! Each session that records a category gets its own copy of the event.
//!
//! # Losing nothing
//!
//! Trace points never fail and never panic. If the shared memory is full because the service was
//! slower than the program, they drop events by default. The trace marks the loss where it
//! happened. The trace processor's `stats` count losses: `traced_buf_sequence_packet_loss` is the
//! number of gaps, `traced_buf_trace_writer_packet_loss` the number of packets that broke off.
//! After a loss, names are announced again, so the rest of the trace is readable. To lose nothing
//!
//! - give more memory: [`Builder::shared_memory`];
//! - or let threads wait for the service: [`SessionConfig::stall`];
//! - give the session a buffer that holds all of it, or [a file](SessionConfig::write_into);
//! - check [`losses`] for losses that a trace cannot show;
//! - keep the [`Tracing`] until the end of `main`. It hands over the last events, and so does
//!   [`exit`](std::process::exit). Services that share memory with the process find these events
//!   even after `SIGKILL`, except the one that was being written;
//! - call [`complete_on_signals`] if a signal such as Ctrl-C may end a program that records itself.
//!
//! # Threads and processes
//!
//! Everything may be used from any thread. One thread named `esatto` talks to the services.
//! Sleeping threads give their memory back when memory becomes scarce. A process may `fork`:
//! tracing is off in the child until the child connects again. [`shutdown`] ends tracing. A trace
//! point inside a trace point (in an argument's [`Value`]) does nothing. A trace point in the
//! destructor of a thread-local does nothing if the thread-local is older than the thread's first
//! trace point, because such destructors run last.
//!
//! A signal handler may trace, with care. If it interrupts a trace point, or code of this crate
//! that holds a lock which trace points take, its trace points do nothing, and [`record`] returns
//! zero. Otherwise they are recorded like any other. Threads of this crate block all signals except
//! those of their own faults. The remaining risk is the allocator. Three kinds of events allocate:
//! a thread's first event in a session, its first event with a given name, and an event that needs
//! a new chunk. So a handler may trace only if its signal never arrives while the program
//! allocates. Examples are a signal that a thread raises itself, and one that is blocked elsewhere.
//! As before any other call, the handler must save `errno`.
//!
//! If the process runs in a container and the service is Esatto's, the trace shows the pid that the
//! system's own probes see. The main thread has the same number. All other threads have the numbers
//! that the container gives them, because nothing in the container knows their outer numbers. With
//! another service, all numbers are the container's.
//!
//! # Platforms and features
//!
//! Linux and Android support everything. On macOS and Windows only the service inside the process
//! works: with [`Builder::system`], [`Builder::start`] returns an [`Error`] that says so.
//!
//! | feature | default | |
//! | --- | --- | --- |
//! | `in-process` | yes | a service inside the process. Programs that do not ask for it do not contain its code |
//! | `compact` | yes | code that writes protobuf by hand is small instead of fast; slices, instants and counters with ordinary arguments use another path |
//! | `macros` | yes | `#[esatto::trace]`, `#[derive(TraceArgs)]` and `#[esatto::trace_rpc]` |
//! | `full-schema` | no | every message in [`schema`], except those of kernel events |
//! | `ftrace-schema` | no | the messages of kernel events in [`schema`] |
//!
//! Items that need a feature name it in the first line of their description.

#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(
    any(not(any(target_os = "linux", target_os = "android")), esatto_portable),
    allow(dead_code, unreachable_pub, unused_imports, reason = "what only a connection to another process needs")
)]

mod backend;
mod callbacks;
mod category;
mod clock;
mod connection;
mod control_thread;
pub mod data_source;
mod destination;
mod diagnostics;
mod error;
mod event;
#[cfg(doc)]
pub mod guide;
mod hash;
pub mod interceptor;
mod lifecycle;
mod macros;
mod name;
mod os;
mod process;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub mod producer;
mod random;
#[doc(hidden)]
pub mod raw;
mod record;
mod sequence;
mod session;
mod slice_stack;
mod start_times;
mod trace_point_gate;
mod track_uuid;

pub use category::Category;
pub use clock::{Clock, now_ns};
pub use connection::SocketRequest;
pub use connection::producer::{Losses, losses};
pub use data_source::session_observer::{Observation, SessionObserver, Started, observe_sessions, session_count};
pub use data_source::{BufferExhausted, Context, DataSource, Field, Flush, Setup, Source, SourceConfig, Stop};
pub use error::{Error, ErrorKind};
#[cfg(feature = "macros")]
#[doc(inline)]
pub use esatto_macros::{TraceArgs, trace, trace_rpc};
pub use esatto_schema::TraceConfig;
pub use esatto_shm::Packet;
pub use event::timestamp::{CustomClock, Timestamp};
pub use event::track::{ChildOrdering, CounterTrack, Merge, StateTrack, Track, Unit};
pub use event::{
    AnnotationWriter, CounterValue, DebugValue, DictValue, DictWriter, DisplayValue, Interned, JsonValue, ListValue,
    ListWriter, ProtoValue, TraceArgs, Value, debug, dict, display, interned, json, list, proto,
};
pub use event::{Arg, Correlation, Event, Flow, Frame, Kind, Location, LogPriority, Site};
pub use interceptor::Interceptor;
pub use lifecycle::shutdown;
pub use name::Name;
pub use process::{Builder, Tracing, complete_on_signals, trace_panics};
#[cfg(feature = "in-process")]
pub use process::{FileTrace, trace_from_env, trace_to_file};
pub use record::{
    AsyncSlice, AsyncSlices, Begun, Driven, Lane, Lanes, SliceGuard, ThreadSlice, TrackSliceGuard, empty_event, record,
    record_only,
};
pub use session::{
    Backend, Chunks, CloneOf, Cloned, Pending, Session, SessionConfig, Startup, StartupTracing, track_events,
};

/// The messages of the protocol, for configurations and for fields that have no method of their
/// own.
///
/// Messages of data sources other than track events need the feature `full-schema`, those of kernel
/// events the feature `ftrace-schema`.
pub use esatto_schema as schema;

/// Items for the macros; not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::event::Place;
    pub use crate::event::arg::arg;
    #[cfg(not(feature = "in-process"))]
    pub use crate::process::InProcessFeature;
    pub use crate::record::async_slice::{AsyncSite, call};
    pub use crate::record::traced_result::{TracedResult, as_result};
    pub use crate::record::{
        begin_enabled, begin_enabled_as, begin_plain, close_enabled, close_enabled_as, close_plain, open_enabled,
        open_enabled_as, open_plain, record_enabled, record_enabled_as, record_plain,
    };
    pub use crate::slice_stack::OpenSlice;

    /// Refuses a literal name in which braces look like those of a format string, when the macro is
    /// compiled.
    ///
    /// # Panics
    ///
    /// If the name has a brace that is closed.
    pub const fn check_name(name: &str) {
        let name = name.as_bytes();
        let (mut at, mut is_open) = (0, false);
        while at < name.len() {
            assert!(
                !(is_open && name[at] == b'}'),
                "names are not format strings: write `dynamic: format!(\"…\")`, or a plain name and the value as an \
                 argument; for a name with braces `dynamic: \"…\"`"
            );
            is_open |= name[at] == b'{';
            at += 1;
        }
    }

    /// Returns an identifier without `r#`.
    #[must_use]
    pub const fn plain_name(identifier: &'static str) -> &'static str {
        match identifier.as_bytes() {
            [b'r', b'#', name @ ..] => utf8(name),
            _ => identifier,
        }
    }

    /// Returns bytes as the text that they are known to be.
    ///
    /// # Panics
    ///
    /// If they are not UTF-8.
    #[must_use]
    pub const fn utf8(bytes: &[u8]) -> &str {
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => panic!("not UTF-8"),
        }
    }

    /// Returns the length of a [`path`].
    #[must_use]
    pub const fn path_len(names: &[&str]) -> usize {
        let (mut len, mut at) = (names.len() - 1, 0);
        while at < names.len() {
            len += names[at].len();
            at += 1;
        }
        len
    }

    /// Joins names with dots.
    #[must_use]
    pub const fn path<const LEN: usize>(names: &[&str]) -> [u8; LEN] {
        let (mut joined, mut len, mut name) = ([b'.'; LEN], 0, 0);
        while name < names.len() {
            let (bytes, mut at) = (names[name].as_bytes(), 0);
            while at < bytes.len() {
                joined[len] = bytes[at];
                len += 1;
                at += 1;
            }
            len += 1;
            name += 1;
        }
        joined
    }

    /// Returns the name of a category, if patterns can name it.
    ///
    /// # Panics
    ///
    /// If the name is empty, has a character of patterns, or begins or ends like something else in
    /// a list of patterns.
    #[must_use]
    pub const fn category_name(name: &'static str) -> &'static str {
        let bytes = name.as_bytes();
        assert!(!bytes.is_empty(), "the name of a category is empty: no pattern could name it");
        assert!(bytes[0] != b'-', "the name of a category begins with `-`, which excludes a category in patterns");
        assert!(
            !matches!(bytes, [b't', b'a', b'g', b':', ..]),
            "the name of a category begins with `tag:`, which names a tag in patterns"
        );
        assert!(
            !bytes[0].is_ascii_whitespace() && !bytes[bytes.len() - 1].is_ascii_whitespace(),
            "the name of a category begins or ends with a space, which lists of patterns ignore"
        );
        let mut at = 0;
        while at < bytes.len() {
            assert!(bytes[at] != b'*', "the name of a category has a `*`, which is a wildcard in patterns");
            assert!(bytes[at] != b',', "the name of a category has a `,`, which separates patterns");
            at += 1;
        }
        name
    }

    /// A [`Flow`](crate::Flow), so that the compiler explains other values.
    #[diagnostic::on_unimplemented(
        message = "expected a `Flow`, found `{Self}`",
        label = "not a flow",
        note = "make a flow from a number with `Flow::process(id)`, or with `Flow::global(id)` if other processes know it"
    )]
    pub trait IsFlow {
        /// Returns the id.
        fn id(self) -> u64;
    }

    impl IsFlow for crate::Flow {
        #[inline(always)]
        fn id(self) -> u64 {
            self.id()
        }
    }

    /// Returns the id of a flow.
    #[inline(always)]
    pub fn flow_id(flow: impl IsFlow) -> u64 {
        flow.id()
    }

    /// A text, so that the compiler explains other values.
    #[diagnostic::on_unimplemented(
        message = "expected a text as the name of an event, found `{Self}`",
        label = "not a text",
        note = "make a text of it: `dynamic: format!(\"step {{id}}\")`; or use a literal name, and the value as an argument"
    )]
    pub trait IsText {
        /// Returns the text.
        fn text(&self) -> &str;
    }

    #[diagnostic::do_not_recommend]
    impl<T: AsRef<str> + ?Sized> IsText for T {
        #[inline(always)]
        fn text(&self) -> &str {
            self.as_ref()
        }
    }

    /// Returns the text of a name that is made at run time.
    #[inline(always)]
    pub fn text<T: IsText + ?Sized>(name: &T) -> &str {
        name.text()
    }

    /// Returns the number of names, as a constant.
    #[must_use]
    pub const fn count(names: &[&str]) -> usize {
        names.len()
    }
}
