//! Perfetto tracing for Rust programs: slices, instants, counters and flows, recorded by the tracing service of the system
//! or inside the process, without a C++ toolchain.
//!
//! ```
//! use esatto::{CounterTrack, Flow, Session, Tracing};
//!
//! esatto::categories! {
//!     static RENDER = "render", "Frames and what is drawn in them";
//! }
//!
//! static QUEUE: CounterTrack = CounterTrack::new("queue length");
//!
//! // Connect: here to a service inside of this process, with `.system()` to the one of the machine.
//! let tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
//! # let session = Session::start(esatto::Backend::InProcess, esatto::track_events(1024))?;
//!
//! for frame in 0..3_u64 {
//!     let _frame = esatto::slice!(RENDER, "frame", number = frame);
//!     esatto::counter!(RENDER, &QUEUE, 3 - frame);
//!     {
//!         let _draw = esatto::slice!(RENDER, "draw", flow: Flow::process(frame));
//!     }
//!     esatto::instant!(RENDER, "vsync", end_flow: Flow::process(frame));
//! }
//! # let trace = session.stop()?;
//! # assert!(trace.len() > 500);
//! # Ok::<(), esatto::Error>(())
//! ```
//!
//! Look at traces with <https://ui.perfetto.dev>. A program is recorded by `esatto record -o FILE -- PROGRAM`, or
//! by Perfetto's own tools: the sockets, the shared memory and the bytes are the same.
//!
//! # How a program is recorded
//!
//! | wish | way |
//! | --- | --- |
//! | all of it, into a file | [`trace_to_file`], [`trace_from_env`]: `ESATTO_TRACE=out.pftrace ./app` |
//! | some of it, when the program says so | [`Session`] with [`Backend::InProcess`], after [`Builder::in_process`] |
//! | together with the system and other programs | [`Builder::system`], and `esatto record`, Perfetto's own tools, or a [`Session`] with [`Backend::System`] |
//!
//! What a session records is a [`SessionConfig`], or any [`TraceConfig`].
//!
//! # Which tier
//!
//! | there is | for | begin with |
//! | --- | --- | --- |
//! | trace points | what a program does and when: nearly always this | [`slice!`], [`instant!`], [`counter!`], [`state!`], [`Track`], [`Flow`], [`Value`] |
//! | data sources | packets of one's own, with their own configuration and life cycle: samplers, statistics, records in one's own schema | [`DataSource`], [`Source`] |
//! | endpoints and writers | programs that have their own transport or event loop | [`producer`] |
//!
//! Programs that use `tracing` or `log` keep it: `esatto-tracing` makes slices of spans. Coming from another tracing library? `docs/migrating.md` of the
//! repository says what is called what.
//!
//! # What can be said
//!
//! | wish | way |
//! | --- | --- |
//! | something takes time: in a scope, from here to there, while a future lives | [`slice!`]; [`begin!`], [`end!`]; [`async_slice!`] |
//! | something happens; a number changes; something is in a state | [`instant!`]; [`counter!`] and [`CounterTrack`]; [`state!`] and [`StateTrack`] |
//! | it happens beside the thread: per request, per connection, per device | `track:` with a [`Track`]; [`Lanes`] |
//! | one leads to another; many belong together | `flow:` with a [`Flow`]; [`Event::correlate`] |
//! | with what values | `key = value`: every [`Value`]; [`debug`], [`display`], [`dict`], [`TraceArgs`] |
//! | it was at another time | `at:` with a [`Timestamp`], of a [`CustomClock`], an `Instant` |
//! | where in the source; what was logged; by which call | [`Event::location`] and [`here!`]; [`Event::log`]; [`Event::callstack`] |
//! | fields of one's own schema | [`Event::fields`] |
//! | what can be switched on and off | [`categories!`], [`Category::group`], [`Category::dynamic`] |
//!
//! Names and texts may hold any character. The trace processor shows those with NUL in them up to there.
//!
//! [`slice!`](crate::slice!) lists all arguments of trace points; the folder `examples` has a program for each.
//!
//! # What a trace point costs
//!
//! Figures are nanoseconds on a virtual machine with 2.7 GHz where reading the counter alone takes 9 to 12; `cargo xtask bench sdk` measures them beside other
//! libraries.
//!
//! | | cost |
//! | --- | --- |
//! | off | a relaxed load and a branch; arguments are not evaluated |
//! | an event with a name known beforehand | a reading of the clock and 1 to 5 ns: a dozen bytes are stored into memory that the service reads. No lock, no allocation, no system call |
//! | an argument | 2 to 5 ns for a number or a short text; texts of more than about 80 bytes, nested values and closures take an ordinary way of some 50 ns |
//! | an event on another track, a flow, a counter | 3 to 8 ns more |
//! | every 4 KiB | the next chunk: one short lock; a wake-up of the control thread once in 5 ms, or for each quarter of the memory |
//! | the first event of a thread in a session, or with a new name | microseconds: the thread, the process and the name are described |
//! | the clock | [`Clock::Counter`] 9 to 12; [`Clock::BootTime`] 20 |
//! | machine code | 60 bytes for a pair, 140 with two arguments |
//!
//! Each session that records a category writes its own copy of the event.
//!
//! # Losing nothing
//!
//! Trace points never fail and never panic. When the shared memory is full they drop events, by default: the service was slower than the program. A loss
//! is marked in the trace where it happened, and counted (`traced_buf_sequence_packet_loss` in the trace processor's `stats` is the number of gaps, `traced_buf_trace_writer_packet_loss` that of packets that
//! broke off); names are announced again behind it, so
//! that what follows is readable. To lose nothing
//!
//! - give more memory: [`Builder::shared_memory`];
//! - or let threads wait for the service: [`SessionConfig::stall`];
//! - give the session a buffer that holds all of it, or [a file](SessionConfig::write_into);
//! - let [`losses`] tell you that nothing was lost where a trace cannot say it;
//! - keep the [`Tracing`] until the end of `main`. It hands over the last events, as does [`exit`](std::process::exit); services that share memory
//!   with the process find them there even after `SIGKILL`, but for the one being written.
//!
//! # Threads and processes
//!
//! Everything may be used from any thread. One thread named `esatto` talks to the services. Threads that sleep give their memory back when it becomes
//! scarce. A process may `fork`: the child is off until it connects anew. [`shutdown`] ends all of it. A trace point inside of a trace point (in an
//! argument's [`Value`]) does nothing. Neither does one in the destructor of a thread-local, if that is older than the thread's first trace point: such destructors run last.
//!
//! A signal handler may trace, with care. If it interrupts a trace point, or the crate with a lock that trace points take, its own trace points do nothing, and
//! [`record`] says so; otherwise they are recorded as any other. Threads of the crate get no signals, but for their own faults. What is left is the
//! allocator: a thread's first event in a session, its first with some name, and one that needs a new chunk allocate. So a handler may trace if its signal never comes while the program
//! allocates: one that a thread raises itself, or one that is blocked elsewhere. As before any other call, it saves `errno`.
//!
//! In a container the process has the pid that the system's own probes see, if the service is Esatto's; the main thread has the same number. The numbers of
//! other threads are those inside of the container, because nobody can tell there what they are called outside. With another service all numbers are those inside.
//!
//! # Platforms and features
//!
//! Linux and Android have everything. On macOS and Windows there is the service inside of the process: [`Builder::system`] fails to start there with an
//! [`Error`] that says so.
//!
//! | feature | default | |
//! | --- | --- | --- |
//! | `in-process` | yes | a service inside of the process. Programs that do not ask for it do not contain it either way |
//! | `compact` | yes | what writes protobuf by hand is small rather than fast; slices, instants and counters with ordinary arguments take another way |
//! | `macros` | no | `#[esatto::trace]` and `#[derive(TraceArgs)]` |
//! | `full-schema`, `ftrace-schema` | no | every message in [`schema`] |

#![deny(unsafe_code)]
#![cfg_attr(
    any(not(any(target_os = "linux", target_os = "android")), esatto_portable),
    allow(dead_code, unreachable_pub, unused_imports, reason = "what only a connection to another process needs")
)]

mod backend;
mod begun;
mod callbacks;
mod category;
mod clock;
mod connection;
mod control_thread;
pub mod data_source;
mod diagnostics;
mod error;
mod event;
mod instance;
pub mod interceptor;
mod lifecycle;
mod macros;
mod name;
mod order;
mod os;
mod process;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub mod producer;
#[doc(hidden)]
#[cfg(not(esatto_loom))]
pub mod raw;
mod record;
mod sequence;
mod session;
mod sync;
mod sys;
mod thread;
mod track_uuid;

pub use begun::Begun;
pub use category::Category;
pub use clock::Clock;
pub use connection::SocketRequest;
pub use connection::producer::{Losses, losses};
pub use data_source::session_observer::{Observation, SessionObserver, Started, observe_sessions, session_count};
pub use data_source::{BufferExhausted, Context, DataSource, Field, Flush, Setup, Source, SourceConfig, Stop};
pub use error::{Error, ErrorKind};
#[cfg(feature = "macros")]
pub use esatto_macros::{TraceArgs, trace};
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
pub use process::{Builder, Tracing, trace_panics};
#[cfg(feature = "in-process")]
pub use process::{FileTrace, trace_from_env, trace_to_file};
pub use record::{AsyncSlice, AsyncSlices, Driven, Lane, Lanes};
pub use session::{
    Backend, Chunks, CloneOf, Cloned, Pending, Session, SessionConfig, Startup, StartupTracing, track_events,
};
pub use thread::{SliceGuard, empty_event, record, record_only};

/// The messages of the protocol, for configurations and for fields that have no method of their own.
///
/// Those of data sources other than track events need the feature `full-schema`, the kernel's events `ftrace-schema`.
pub use esatto_schema as schema;

/// For the macros; not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::event::Place;
    pub use crate::event::arg::arg;
    pub use crate::record::async_slice::{AsyncSite, call};
    pub use crate::thread::{SliceGuard, record_enabled, record_enabled_as, record_plain};

    /// Number of names, as a constant.
    #[must_use]
    pub const fn count(names: &[&str]) -> usize {
        names.len()
    }
}
