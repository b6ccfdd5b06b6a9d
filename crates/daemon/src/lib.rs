//! The tracing service as a daemon: sockets, files, timers and signals around `esatto-service`.
//!
//! ```text
//!  producers ─┐   ┌────────────── event loop, one thread ──────────────┐
//!             ├──▶│ frames ─▶ Client ─▶ Input ─▶ Service ─▶ Output ─┐  │
//!  consumers ─┘   │ epoll   ◀─ queues  ◀──────────────── outputs  ◀─┘  │
//!                 └──────────────────────────────┬─────────────────────┘
//!                                                └─▶ one thread per trace file
//! ```
//!
//! The loop never waits for a client: sockets are non-blocking, and their queues are bounded. Each
//! trace file has its own thread, which exists only while a session writes the file. Other threads
//! close connections and the descriptors that came with them; they exist only while there is
//! something to close. An idle daemon has one thread, no timers and no wake-ups.
//!
//! | what could grow | its bound | beyond it |
//! |---|---|---|
//! | connections | as many as the limit of descriptors allows (four for each), at most 8192; of one user half of that, of all users 15/16, but for root and the service's own | refused |
//! | bytes received and not handled | a frame of 128 KiB, given back when it is handled | no more is read |
//! | calls handled before others get their turn | 64, or what copies a MiB or visits 16 Ki entries | they wait |
//! | calls that wait for a reply | 4096 of a connection | rejected |
//! | bytes that wait for a consumer | 256 KiB of replies | no more of its calls are handled, no more of the trace is read for it |
//! | bytes that wait for a producer | 4 MiB | disconnected |
//! | bytes that wait for all of them, and frames of which only a part has come | [`Options::max_queued_bytes`], of one user half of that, but for root and the service's own | the fullest connection of the user for whom most is held is closed |
//! | shared memory | 32 MiB of a connection, 8 GiB in all, of one user half of what others leave, except root and the service's own | the producer gets the default size |
//! | descriptors that came with calls | one of a connection | the older one is closed |
//! | descriptors that wait to be closed | 64 that connections of one user passed | a connection of this user that passes another one waits, and is closed after 2 s |
//! | bytes on their way into a file | a batch of the service, about 1 MiB | no more is read for the file |
//! | trace files, also those whose last write does not end | 64; 16 that one user brought, 48 that all brought, but for root and the service's own | the session is told that its file cannot be written |
//! | log lines | 5 in a second of each level, 200 at once | left out and counted |
//!
//! Configs decide how much memory sessions take; the service bounds it.
//!
//! Run the daemon as the program [`traced`], or inside another program:
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
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod buffer_memory_limit;
mod cgroup;
mod client;
mod clocks;
mod closers;
mod daemon;
mod error;
mod event_loop;
mod metrics_file;
mod options;
mod packet_file;
mod patient_write;
mod relay;
mod relay_program;
mod secret_option;
mod shared_memory;
mod shared_secret;
mod socket_activation;
mod socket_permissions;
mod socket_role;
mod stats;
mod system_facts;
mod timers;
mod trace_files;
mod traced_program;
mod usage_watchdog;
mod user_shares;
mod wakeup;

pub use cgroup::memory_limit;
pub use daemon::{Daemon, DaemonHandle, Stopper};
pub use error::Error;
pub use esatto_daemon_program::stderr_log::init as log_to_stderr;
pub use options::{Options, RelayEndpoints};
pub use relay::{Relay, RelayHandle, RelayOptions};
pub use relay_program::{TRACED_RELAY_HELP, traced_relay, traced_relay_as};
pub use shared_secret::{SecretError, SharedSecret};
pub use socket_permissions::{Access, PermissionsError, SocketPermissions};
pub use stats::Stats;
pub use traced_program::{TRACED_HELP, traced, traced_as};
