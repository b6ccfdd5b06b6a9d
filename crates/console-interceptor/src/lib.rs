//! Prints the track events of a program while they happen.
//!
//! An [interceptor](esatto::interceptor) that writes one line per event to the terminal. The
//! session in the service runs as usual and gets none of these events.
//!
//! ```
//! use esatto::{Backend, Session, Tracing};
//!
//! esatto::categories! { static APP = "app"; }
//!
//! esatto_console::register()?;
//! let _tracing = Tracing::builder().in_process().start()?;
//! let mut config = esatto::track_events(64);
//! for source in &mut config.data_sources {
//!     let source = source.config.get_or_insert_default();
//!     source.interceptor_config.get_or_insert_default().name = Some("console".into());
//! }
//! let session = Session::start(Backend::InProcess, config)?;
//! esatto::instant!(APP, "printed at once", number = 7_u32);
//! session.stop()?;
//! # Ok::<(), esatto::Error>(())
//! ```
//!
//! ```text
//! [  0.012] worker           app   frame {(number:7)
//! [  0.012] worker           app   -  draw {
//! [  0.031] worker           app   -  } draw +18ms
//! [  0.031] worker           app   } frame +19ms
//! ```
//!
//! The columns are the seconds since the session began, the track, the category, the depth on the
//! track, and the event. A begin ends in `{`. An end starts with `}` and shows the duration if that
//! was 10 ms or more. Debug annotations are in parentheses. Control characters are escaped, as in
//! `\n`. Counters and typed fields are not shown.
//!
//! A config selects it by `interceptor_config { name: "console" }`. `console_config` in it selects
//! standard output or error, and colours. The default is standard output, with colours if that is a
//! terminal. The contract is `docs/spec/client-library.md` §15.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod colors;
mod line;
mod sequence_state;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use core::sync::atomic::{AtomicU64, Ordering};

use esatto::schema::{DataSourceConfigReader, console_config};
use esatto::{Error, Interceptor};

use line::Line;
use sequence_state::{Sequence, Tracks};

/// Registers the interceptor `console`.
///
/// # Errors
///
/// None for this name; the [registration](esatto::interceptor::register) of other names can fail.
pub fn register() -> Result<(), Error> {
    esatto::interceptor::register::<Console>("console")
}

/// Prints to another file than the standard output, unless the config selects one. For tests, and
/// for programs that use the terminal themselves. The first call counts, for later sessions.
pub fn print_to(file: impl Into<File>) {
    let _ = OUTPUT.set(file.into());
}

static OUTPUT: OnceLock<File> = OnceLock::new();

/// The interceptor.
struct Console {
    output: Output,
    colors: bool,
    start_ns: AtomicU64,
    /// The tracks of all sequences, because each sequence may use any track.
    tracks: Mutex<Tracks>,
}

#[derive(Clone, Copy)]
enum Output {
    Chosen(&'static File),
    Stdout,
    Stderr,
}

impl Output {
    fn is_terminal(self) -> bool {
        match self {
            Self::Chosen(file) => file.is_terminal(),
            Self::Stdout => std::io::stdout().is_terminal(),
            Self::Stderr => std::io::stderr().is_terminal(),
        }
    }

    /// Writes whole lines, so that lines of several threads do not mix. Ignores errors, because no
    /// caller could handle them.
    fn write(self, text: &[u8]) {
        let _ = match self {
            Self::Chosen(mut file) => file.write_all(text),
            Self::Stdout => std::io::stdout().lock().write_all(text),
            Self::Stderr => std::io::stderr().lock().write_all(text),
        };
    }
}

/// The announcements of one sequence.
#[derive(Default)]
struct State {
    sequence: Sequence,
    line: Vec<u8>,
}

impl Interceptor for Console {
    type ThreadState = State;

    fn setup(config: &[u8]) -> Self {
        let config = DataSourceConfigReader::new(config).interceptor_config().and_then(|c| c.console_config());
        let output = match config.and_then(|c| c.output()) {
            Some(console_config::Output::OUTPUT_STDOUT) => Output::Stdout,
            Some(console_config::Output::OUTPUT_STDERR) => Output::Stderr,
            _ => OUTPUT.get().map_or(Output::Stdout, Output::Chosen),
        };
        let colors = config.and_then(|c| c.enable_colors()).unwrap_or_else(|| output.is_terminal());
        Self { output, colors, start_ns: AtomicU64::new(0), tracks: Mutex::default() }
    }

    fn start(&self) {
        self.start_ns.store(esatto::now_ns(), Ordering::Relaxed);
    }

    fn packet(&self, state: &mut State, packet: &[u8]) {
        let mut tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner);
        let State { sequence, line } = state;
        if let Some(event) = sequence.read(&mut tracks, packet) {
            line.clear();
            let start_ns = self.start_ns.load(Ordering::Relaxed);
            Line { out: line, colors: self.colors }.event(&event, sequence, start_ns);
            drop(event);
            self.output.write(line);
        }
    }
}
