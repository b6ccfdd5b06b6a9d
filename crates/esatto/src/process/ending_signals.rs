//! Hands over before a signal ends the process.

use crate::error::Error;

/// From now on, completes the traces when SIGINT (Ctrl-C), SIGTERM or SIGHUP (a lost terminal)
/// arrives, before the signal acts.
///
/// Without this call, a program that such a signal ends loses the last quarter of a second of a
/// file that it writes itself. With it,
///
/// - the recorded events are handed over, the sessions of the program are stopped and their files
///   completed, in at most five seconds. Then the signal ends the process, whose status says so.
///   Meanwhile the program goes on, also after a `raise` of its own; its exit waits for the signal.
///   A signal that comes again after half a second ends it at once;
/// - if the program had a handler of its own, only the recorded events are handed over. Then the
///   handler is called, and tracing goes on: the handler decides if and how the program ends. A
///   program that then returns from `main` or calls `exit` completes its files;
/// - a handler that is installed later takes the place of this one. If it calls the previous
///   handler, as that of `tokio` does, the events are handed over at the same time;
/// - a signal that the program ignores stays ignored;
/// - if there are several copies of this crate in the process, in other versions or in plugins,
///   each hands over (on Linux and Android).
///
/// The handler itself only writes a byte for a thread of this crate. A forked child has the signals
/// as they were before, until it calls this function itself. Further calls do nothing. The handler
/// and the thread stay after a [`shutdown`](crate::shutdown): a library that calls this must not be
/// unloaded. On other systems than Linux, Android and
/// Apple's, and on processors on which Linux keeps handlers in another form (MIPS, SPARC, s390x),
/// this does nothing.
///
/// ```no_run
/// fn main() -> Result<(), esatto::Error> {
///     let _trace = esatto::trace_to_file("app.pftrace")?;
///     esatto::complete_on_signals()?;
///     // …
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// If no thread can be started, or there is no descriptor for a pair of sockets.
pub fn complete_on_signals() -> Result<(), Error> {
    #[cfg(all(
        any(target_os = "linux", target_os = "android", target_vendor = "apple"),
        not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64", target_arch = "s390x"))
    ))]
    hand_over::start()?;
    Ok(())
}

#[cfg(all(
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64", target_arch = "s390x"))
))]
mod hand_over {
    use core::mem::ManuallyDrop;
    use std::time::Duration;

    use crate::error::Error;
    use crate::os::fork::StaticMutex;
    use crate::os::signals::ending::{self, Arrivals, Fate};
    use crate::{connection, diagnostics, lifecycle, os};

    const WATCHING_THREAD_NAME: &str = "esatto-signal";
    const WORKING_THREAD_NAME: &str = "esatto-end";

    /// How long a signal may be delayed.
    const PATIENCE: Duration = Duration::from_secs(5);

    pub(super) fn start() -> Result<(), Error> {
        /// The process that has the thread.
        static WATCHED: StaticMutex<Option<u32>> = StaticMutex::new(None);
        let mut watched = WATCHED.lock();
        let process = std::process::id();
        if *watched == Some(process) {
            return Ok(());
        }
        let (arrivals, catch) =
            ending::prepare().map_err(|error| Error::state(&format!("cannot catch signals: {error}")))?;
        os::spawn(WATCHING_THREAD_NAME, Box::new(|| watch(arrivals))).map_err(Error::thread)?;
        catch.begin();
        *watched = Some(process);
        Ok(())
    }

    fn watch(arrivals: Arrivals) {
        os::block_signals();
        // Never closed: if the program has closed the descriptor, its number is not ours any more.
        let mut arrivals = ManuallyDrop::new(arrivals);
        while let Some(signal) = arrivals.next() {
            let work = match ending::fate(signal) {
                Fate::End => complete,
                Fate::Continue => hand_over,
            };
            if !in_time(work) {
                diagnostics::say_once(format!(
                    "not everything could be handed over within {PATIENCE:?} of signal {signal}"
                ));
            }
            ending::let_act(signal);
        }
    }

    /// Does the work on another thread. Returns false if it is not done in time.
    fn in_time(work: fn()) -> bool {
        let (answer, answers) = connection::answers();
        let run = move || {
            os::block_signals();
            work();
            answer.give();
        };
        match os::spawn(WORKING_THREAD_NAME, Box::new(run)) {
            Ok(_) => answers.wait(PATIENCE).unwrap_or(false),
            Err(_) => {
                work();
                true
            }
        }
    }

    /// Does what the end of the process does, and ends all sessions.
    fn complete() {
        os::exit::run_all();
        lifecycle::shutdown();
    }

    /// The process goes on afterwards, and so do its startup sessions.
    fn hand_over() {
        lifecycle::flush(lifecycle::PATIENCE);
    }
}
