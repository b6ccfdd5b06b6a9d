//! The tracing service as a daemon: sockets, files, timers and signals around `esatto-service`.
//!
//! ```text
//!  producers ─┐   ┌────────────── event loop, one thread ──────────────┐
//!             ├──▶│ frames ─▶ Client ─▶ Input ─▶ Service ─▶ Output ─┐  │
//!  consumers ─┘   │ epoll   ◀─ queues  ◀─────────────── carry_out ◀─┘  │
//!                 └──────────────────────────────┬─────────────────────┘
//!                                                └─▶ one thread per trace file
//! ```
//!
//! The loop never waits for anybody: sockets are non-blocking and their queues bounded, trace files are written
//! by threads of their own. A consumer that reads slowly is given data as fast as it reads; one that does not read its
//! replies gets no more requests handled; a producer whose queue is full is disconnected.
//!
//! Run it as the program [`traced`], or inside another one:
//!
//! ```no_run
//! use esatto_daemon::{Daemon, Options};
//!
//! let options = Options::new("/tmp/my-producer".parse()?, "/tmp/my-consumer".parse()?);
//! let handle = Daemon::bind(options)?.spawn_thread()?;
//! // … programs connect and are traced …
//! println!("{:?}", handle.stats());
//! handle.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod activation;
mod background;
mod carry_out;
mod census;
mod client;
mod clocks;
mod command_line;
mod daemon;
mod error;
mod event_loop;
mod facts;
mod files;
mod manager;
mod memory;
mod options;
mod packet_file;
mod permissions;
mod ports;
mod priority;
mod program;
mod relay;
mod stats;
mod stderr_log;
mod timers;
mod wake;
mod watchdog;

pub use daemon::{Daemon, DaemonHandle, Stopper};
pub use error::Error;
pub use options::{Options, RelayEndpoints};
pub use permissions::{Access, PermissionsError, SocketPermissions};
pub use program::traced;
pub use relay::{Relay, RelayHandle, RelayOptions, traced_relay};
pub use stats::Stats;
pub use stderr_log::init as log_to_stderr;
