//! Records the whole program into a file.

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Once;

use super::connect::{Builder, Guard, Tracing};
use super::own_file::OwnFile;
use super::recordings::{self, PATIENCE, Recording, Running};
use super::unread_variable::{self, FILE_VARIABLE};
use super::{empty_file, file_losses};
use crate::category::{known, registry};
use crate::error::{Error, ErrorKind};
use crate::session::{Backend, Session, SessionConfig};
use crate::{diagnostics, record};

/// Patterns of categories.
const CATEGORIES_VARIABLE: &str = "ESATTO_TRACE_CATEGORIES";
/// The size of the buffer for events that are not written yet.
const BUFFER_VARIABLE: &str = "ESATTO_TRACE_BUFFER_KB";

/// In front of a tag in a list of patterns.
const TAG: &str = "tag:";

/// The required form of the value.
const PATTERNS: &str = "a list of patterns such as `net,db.*,-db.rows,tag:slow`";
const NUMBER: &str = "a number of KiB";

/// Half a second of events, at 128 MB per second.
const BUFFER_SIZE_KB: u32 = 64 * 1024;

/// Records everything that this program traces into a file (feature `in-process`), from now until
/// the guard is dropped, `std::process::exit` is called, or the main thread panics. No service is
/// needed.
///
/// ```no_run
/// esatto::categories! { static APP = "app"; }
///
/// fn main() -> Result<(), esatto::Error> {
///     let _trace = esatto::trace_to_file("app.pftrace")?;
///     let _slice = esatto::slice!(APP, "everything");
///     Ok(())
/// }
/// ```
///
/// The environment overrides the program:
///
/// | variable | |
/// | --- | --- |
/// | `ESATTO_TRACE` | another file, or none: `off`, `0` or empty. `%p` becomes the process id |
/// | `ESATTO_TRACE_CATEGORIES` | patterns of categories to record, or, with `-` in front, to leave out: `net,db.*,-db.rows`. Default: all but those tagged `slow` or `debug`. `tag:slow` also records those with this tag; tags may end in `*` |
/// | `ESATTO_TRACE_BUFFER_KB` | memory for events that are not written yet; default 65536, at least 1024 |
///
/// [`trace_from_env`] and [`Builder::file_from_env`] trace only if
/// `ESATTO_TRACE` is set.
///
/// The file is written while the program runs, four times a second, and can be read at any time. A
/// program that is killed or aborts loses the last quarter of a second, and one that a signal ends
/// too, unless it calls [`complete_on_signals`](crate::complete_on_signals). A panic loses nothing,
/// even if the program is compiled with `panic = "abort"`. Threads that trace faster than the disk
/// takes the data wait for it instead of losing events: when the buffer is half full, a trace point
/// can stall its thread, for at most half a minute. Events that are lost nevertheless are reported
/// in a [notice](crate::Builder::notices) at the end. A program that must not wait gives a
/// [`Session`] a [`SessionConfig`] that [writes into a file](SessionConfig::write_into) and does
/// not [stall](SessionConfig::stall).
///
/// If another process is writing the file, this one writes `FILE.PID`, with its own number, and
/// says so in a [notice](crate::Builder::notices). So a program and the programs that it starts can
/// have the same `ESATTO_TRACE`. The same holds for a second recording of one process, even as
/// another program after an `exec`, and for a forked child. Such a child records nothing, until it
/// calls this function again. A trace that nobody writes any more is replaced; a notice says so if
/// another program of the same job, such as a script, has written it. If this process already
/// writes the file, its recordings become one, which ends with the last guard.
///
/// # Errors
///
/// If the file cannot be created or has content that is no trace, a variable has a value that is
/// not allowed, or no thread can be started.
#[doc(alias = "record", alias = "profile", alias = "dump", alias = "capture")]
pub fn trace_to_file(path: impl AsRef<Path>) -> Result<FileTrace, Error> {
    start(Some(path.as_ref()))
}

/// As [`trace_to_file`], if the environment variable `ESATTO_TRACE` names a file (feature
/// `in-process`): `ESATTO_TRACE=app.pftrace ./app`. Otherwise this does nothing.
///
/// ```
/// fn main() -> Result<(), esatto::Error> {
///     let trace = esatto::trace_from_env()?;
///     assert_eq!(trace.path(), None);
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// As for [`trace_to_file`].
#[doc(alias = "ESATTO_TRACE", alias = "environment")]
pub fn trace_from_env() -> Result<FileTrace, Error> {
    start(None)
}

/// A running trace of the whole program (feature `in-process`); keep it until the end of `main`.
///
/// Dropping it completes the file. A forked child does not touch the file of its parent.
#[must_use = "the trace ends when it is dropped: bind it to a variable"]
pub struct FileTrace {
    recording: Option<Recording>,
}

impl FileTrace {
    /// Returns the path of the file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.recording.as_ref().map(|recording| &*recording.path)
    }

    /// Completes the file and returns the result, which dropping reports as a
    /// [notice](crate::Builder::notices).
    ///
    /// # Errors
    ///
    /// If the file could not be written, for instance because the disk is full, or if another
    /// program has removed, replaced or emptied it.
    pub fn finish(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.recording.take().map_or(Ok(()), |recording| recordings::end(&recording, stop))
    }
}

impl Drop for FileTrace {
    fn drop(&mut self) {
        if let (Some(path), Err(error)) = (self.path().map(Path::to_owned), self.end()) {
            notice_incomplete(&path, &error);
        }
    }
}

impl fmt::Debug for FileTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileTrace").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Builder {
    /// Also records the whole program into a file, if the environment variable `ESATTO_TRACE` names
    /// one (feature `in-process`): `ESATTO_TRACE=app.pftrace ./app`. Programs without this call are
    /// smaller, because they do not contain a service.
    ///
    /// The file is complete when the [`Tracing`] is dropped, or when the process exits.
    /// [`trace_to_file`](crate::trace_to_file) explains the other variables, and what happens when
    /// several processes name the same file.
    pub fn file_from_env(mut self) -> Self {
        self.file = Some(guard_from_env);
        self
    }
}

/// As [`trace_from_env`], for [`Builder::file_from_env`].
fn guard_from_env() -> Result<Guard, Error> {
    trace_from_env().map(Guard::new)
}

fn start(path: Option<&Path>) -> Result<FileTrace, Error> {
    unread_variable::mark_read();
    let Some(wanted) = choose(path, env::var_os(FILE_VARIABLE)) else { return Ok(FileTrace { recording: None }) };
    let recording = recordings::begin(&wanted, || record_into(&wanted))?;
    Ok(FileTrace { recording: Some(recording) })
}

fn record_into(wanted: &Path) -> Result<Running, Error> {
    let categories = variable(CATEGORIES_VARIABLE, PATTERNS)?;
    let config = configure(categories.as_deref(), variable(BUFFER_VARIABLE, NUMBER)?.as_deref())?;
    let builder = Tracing::builder().in_process();
    // Dropping it would hand over the recorded data, but the end of the session also does that.
    core::mem::forget(builder.start()?);
    let (own, file) = OwnFile::create(wanted, recordings::is_of_parent(wanted))?;
    let session = Session::start(Backend::InProcess, config.write_into_fd(file))?;
    hook_in();
    RECORDED.store(std::process::id(), Ordering::Relaxed);
    Ok(Running::new(own, session))
}

/// Returns the file, from the program's choice and the environment's.
fn choose(path: Option<&Path>, variable: Option<OsString>) -> Option<PathBuf> {
    let chosen = match variable {
        Some(value) if unread_variable::is_off(&value) => return None,
        Some(path) => path.into(),
        None => path?.to_owned(),
    };
    match chosen.to_str() {
        Some(text) => Some(text.replace("%p", &std::process::id().to_string()).into()),
        None => Some(chosen),
    }
}

/// Returns a variable that has to be `what`, and therefore text.
fn variable(name: &str, what: &str) -> Result<Option<String>, Error> {
    let text = env::var_os(name).map(OsString::into_string).transpose();
    text.map_err(|bytes| Error::variable(name, &bytes.to_string_lossy(), what))
}

fn configure(categories: Option<&str>, buffer_kb: Option<&str>) -> Result<SessionConfig, Error> {
    let buffer_size_kb = match buffer_kb {
        None => BUFFER_SIZE_KB,
        Some(text) => match text.trim().parse() {
            Ok(size_kb @ 1..) => size_kb,
            _ => return Err(Error::variable(BUFFER_VARIABLE, text, NUMBER)),
        },
    };
    let patterns = || categories.unwrap_or_default().split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
    let is_wrong = |pattern: &str| pattern == "-" || pattern == TAG || pattern.starts_with("-tag:");
    if patterns().any(is_wrong) {
        return Err(Error::variable(CATEGORIES_VARIABLE, categories.unwrap_or_default(), PATTERNS));
    }
    let without = patterns().filter_map(|pattern| pattern.strip_prefix('-'));
    let tags = patterns().filter_map(|pattern| pattern.strip_prefix(TAG));
    let config = SessionConfig::new().buffer_size_kb(buffer_size_kb).stall().without_categories(without).tags(tags);
    let mut with = patterns().filter(|pattern| !pattern.starts_with('-') && !pattern.starts_with(TAG)).peekable();
    Ok(if with.peek().is_some() { config.categories(with) } else { config })
}

/// Registers the functions for the end of the process, once.
fn hook_in() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        crate::os::exit::at_exit(end_all);
        if cfg!(panic = "abort") {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                previous(info);
                end_all();
            }));
        }
    });
}

/// Completes all files.
fn end_all() {
    recordings::end_all(|running| {
        let path = running.file.path.clone();
        let result = stop(running);
        if let Err(error) = &result {
            notice_incomplete(&path, error);
        }
        result
    });
}

/// Reports an error that no caller is left to receive. After a [shutdown](crate::shutdown) the
/// program knows it, and the file is complete.
fn notice_incomplete(path: &Path, error: &Error) {
    if error.kind() == ErrorKind::Disconnected {
        return;
    }
    diagnostics::say_once(match error.kind() {
        // The text has the name.
        ErrorKind::File => error.to_string(),
        _ => format!("{} is incomplete: {error}", path.display()),
    });
}

/// Reports the patterns and tags in the variable that no category has.
fn explain_patterns() {
    let value = env::var(CATEGORIES_VARIABLE).unwrap_or_default();
    let patterns = || value.split(',').map(str::trim);
    let names = patterns().filter(|pattern| !pattern.starts_with('-') && !pattern.starts_with(TAG));
    let tags = patterns().filter_map(|pattern| pattern.strip_prefix(TAG));
    let without = patterns().filter_map(|pattern| pattern.strip_prefix('-'));
    let lines = known::missing(names.map(str::as_bytes)).into_iter();
    for line in lines.chain(without.filter_map(known::mistyped_exclusion)).chain(tags.filter_map(known::missing_tag)) {
        diagnostics::say_once(format!("{CATEGORIES_VARIABLE}: {line}"));
    }
}

/// The number of the last process in a chain of forks that has begun a recording.
static RECORDED: AtomicU32 = AtomicU32::new(0);

fn stop(running: Running) -> Result<(), Error> {
    let pid = std::process::id();
    if running.pid != pid {
        if RECORDED.load(Ordering::Relaxed) != pid {
            let path = running.file.path.display();
            let remedy = "call `trace_from_env` or `trace_to_file` after the fork";
            let line = format!("{path} contains nothing of the forked process {pid}: {remedy}");
            diagnostics::say_once_in_child(&line);
            // That line says it.
            let _ = registry::take_missed();
        }
        // The session is the parent's, and so is the connection. The lock is closed already.
        core::mem::forget(running);
        return Ok(());
    }
    if !empty_file::explain(&running.file.path, &running.session, CATEGORIES_VARIABLE) {
        explain_patterns();
    }
    record::flush_all();
    running.session.stop_explained().wait_timeout(PATIENCE)?;
    file_losses::explain(&running.file.path, &running.session);
    running.file.require_trace()
}

#[cfg(test)]
mod tests {
    use esatto_protozero::ProtoString;

    use super::*;

    #[test]
    fn the_environment_overrides_the_program() {
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(choose(None, None), None);
        assert_eq!(choose(Some("a".as_ref()), None), path("a"));
        assert_eq!(choose(None, Some("b".into())), path("b"));
        assert_eq!(choose(Some("a".as_ref()), Some("b".into())), path("b"));
        for off in ["", "off", "0"] {
            assert_eq!(choose(Some("a".as_ref()), Some(off.into())), None);
        }
        assert_eq!(choose(None, Some("t-%p.pftrace".into())), path(&format!("t-{}.pftrace", std::process::id())));
    }

    #[test]
    fn variables_are_parsed_or_refused() {
        let config = configure(Some("net, db.*,-db.rows,"), Some("1024")).expect("it makes sense");
        let config = config.trace_config();
        assert_eq!(config.buffers[0].size_kb, Some(1024));
        let source = config.data_sources[0].config.as_ref().expect("a source");
        let events = source.track_event_config.as_ref().expect("track events");
        assert_eq!(events.enabled_categories, ["net", "db.*"]);
        assert_eq!(events.disabled_categories, ["db.rows", "*"]);
        assert_eq!(events.disabled_tags, ["slow", "debug"]);
        assert!(events.enabled_tags.is_empty());
        let tags = |patterns| {
            let config = configure(Some(patterns), None).expect("it makes sense");
            let source = config.trace_config().data_sources[0].config.as_ref().expect("a source");
            let events = source.track_event_config.as_ref().expect("track events");
            let texts = |texts: &[ProtoString]| texts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            [texts(&events.enabled_categories), texts(&events.enabled_tags), texts(&events.disabled_tags)]
        };
        assert_eq!(tags("tag:slow"), ["*", "slow", "debug"]);
        assert_eq!(tags("net,tag:slow,tag:debug"), ["net", "slow debug", ""]);
        assert_eq!(tags("tag:*"), ["*", "*", ""]);
        let error = configure(None, Some("much")).expect_err("no number").to_string();
        assert_eq!(error, "ESATTO_TRACE_BUFFER_KB is 'much', which is not a number of KiB");
        assert!(configure(None, Some("0")).is_err());
        for wrong in ["-", "net, -", "tag:", "-tag:slow"] {
            let error = configure(Some(wrong), None).expect_err("no pattern").to_string();
            let list = "a list of patterns such as `net,db.*,-db.rows,tag:slow`";
            assert_eq!(error, format!("ESATTO_TRACE_CATEGORIES is '{wrong}', which is not {list}"));
        }
    }
}
