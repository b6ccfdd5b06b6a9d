//! The command `esatto top`: a live view of the sessions of the service.

use core::fmt::Write as _;
use core::time::Duration;
use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Instant;

use esatto_ipc::BlockingClient;
use esatto_trace::escape;
use esatto_trace::{BufferStats, Loss, Reading, TraceStats};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::sessions::in_words;
use crate::args;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::progress::Size;
use crate::service_connection::{address, connect};
use crate::session_list::{ListedSession, SessionList, SessionStats, statistics};
use crate::stop_signal::StopSignal;
use crate::table::{cell, table};

/// Clears the screen and goes to its begin.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// Columns of a terminal that does not tell.
const DEFAULT_COLUMNS: usize = 80;

/// Numbers of a session at one time.
#[derive(Clone, Debug)]
struct Look {
    at: Instant,
    list: SessionList,
    stats: HashMap<u64, SessionStats>,
}

impl Look {
    fn take(client: &mut BlockingClient) -> Result<Self, Failure> {
        Ok(Self { at: Instant::now(), list: SessionList::query(client)?, stats: statistics(client)? })
    }
}

/// A buffer in the time between two looks.
#[derive(Clone, Debug, PartialEq)]
struct BufferView {
    index: usize,
    size: u64,
    /// Bytes of it that have content.
    used: u64,
    written: u64,
    written_per_s: u64,
    overwritten_per_s: u64,
}

/// A session in the time between two looks.
#[derive(Clone, Debug)]
struct SessionView {
    session: ListedSession,
    /// `None` if the service does not tell.
    buffers: Option<Vec<BufferView>>,
    losses: Vec<Loss>,
}

pub(crate) fn run(args: &args::Top) -> Result<ExitCode, Failure> {
    let mut client = connect(&address()?)?;
    let stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    let is_live = std::io::stdout().is_terminal() && !args.once && !args.json;
    let mut before = Look::take(&mut client)?;
    if let Some(wanted) = &args.session {
        before.list.find(wanted)?;
    }
    loop {
        if has_signal(&stop, args.interval)? {
            return Ok(ExitCode::SUCCESS);
        }
        let now = Look::take(&mut client)?;
        let views = views(&before, &now, args.session.as_deref());
        let text = match (args.json, is_live) {
            (true, _) => json(&views),
            (false, true) => format!("{CLEAR}{}", fitted(&text(&views, &now.list), columns())),
            (false, false) => text(&views, &now.list),
        };
        console::print(&text).attempt(|| "cannot show the sessions".to_owned())?;
        if args.once || (!is_live && !args.json) {
            return Ok(ExitCode::SUCCESS);
        }
        before = now;
    }
}

/// Waits for a signal. Returns false after `timeout`.
fn has_signal(stop: &StopSignal, timeout: Duration) -> Result<bool, Failure> {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(stop, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(Failure::new("cannot wait", std::io::Error::from(error))),
    }
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(DEFAULT_COLUMNS, |size| usize::from(size.ws_col)).max(1)
}

/// Cuts the lines to the width of the terminal.
fn fitted(text: &str, columns: usize) -> String {
    text.lines().fold(String::new(), |mut out, line| {
        out.extend(line.chars().take(columns));
        out.push('\n');
        out
    })
}

fn views(before: &Look, now: &Look, wanted: Option<&str>) -> Vec<SessionView> {
    let elapsed_ms = u64::try_from((now.at - before.at).as_millis()).unwrap_or(u64::MAX).max(1);
    let only = wanted.map(|wanted| now.list.find(wanted).map(|session| session.id).ok());
    let sessions = now.list.sessions.iter().filter(|session| only.is_none_or(|only| only == Some(session.id)));
    let view = |session: &ListedSession| {
        let stats = now.stats.get(&session.id);
        let earlier = before.stats.get(&session.id);
        let buffers = stats.map(|now| buffer_views(&now.stats, earlier.map(|earlier| &earlier.stats), elapsed_ms));
        let losses = stats.map(|now| {
            let is_continuous = now.is_read_while_recording(&session.state);
            let reading = if is_continuous { Reading::Continuous } else { Reading::AtEnd };
            now.stats.losses_since(&earlier.unwrap_or(now).stats, &now.config, reading)
        });
        SessionView { session: session.clone(), buffers, losses: losses.unwrap_or_default() }
    };
    sessions.map(view).collect()
}

fn buffer_views(stats: &TraceStats, earlier: Option<&TraceStats>, elapsed_ms: u64) -> Vec<BufferView> {
    let number = |buffer: &BufferStats, name: &str| buffer.get(name).copied().unwrap_or(0);
    let view = |(index, buffer): (usize, &BufferStats)| {
        let before = earlier.and_then(|earlier| earlier.buffers.get(index));
        let rate = |name: &str| {
            let grown = number(buffer, name).saturating_sub(before.map_or(0, |before| number(before, name)));
            grown.saturating_mul(1000) / elapsed_ms
        };
        let (size, written) = (number(buffer, "buffer_size"), number(buffer, "bytes_written"));
        let gone = number(buffer, "bytes_overwritten").saturating_add(number(buffer, "bytes_read"));
        BufferView {
            index,
            size,
            used: written.saturating_sub(gone).min(size),
            written,
            written_per_s: rate("bytes_written"),
            overwritten_per_s: rate("bytes_overwritten"),
        }
    };
    stats.buffers.iter().enumerate().map(view).collect()
}

fn text(views: &[SessionView], list: &SessionList) -> String {
    let mut out = String::new();
    if views.is_empty() {
        out += "No session runs.\n";
    }
    for view in views {
        session_text(&mut out, view);
    }
    if list.hidden > 0 {
        // A string takes everything.
        let _ = writeln!(out, "{} more sessions of other users", list.hidden);
    }
    out
}

fn session_text(out: &mut String, view: &SessionView) {
    let session = &view.session;
    let name = if session.name.is_empty() { String::new() } else { format!(" {}", cell(&session.name)) };
    let age = session.age.map(|age| format!(" for {}", in_words(age))).unwrap_or_default();
    let left = session.duration.zip(session.age).map(|(duration, age)| duration.saturating_sub(age));
    let left = left.map(|left| format!(", ends in {}", in_words(left))).unwrap_or_default();
    let state = cell(&session.state.to_lowercase());
    let sources = match session.data_sources {
        1 => "1 data source".to_owned(),
        count => format!("{count} data sources"),
    };
    let _ = writeln!(out, "session {}{name}: {state}{age}{left}, {sources}", session.id);
    let Some(buffers) = &view.buffers else {
        out.push_str("  (only Esatto's service tells the content of its buffers)\n\n");
        return;
    };
    let rate = |bytes: u64| format!("{}/s", Size(bytes));
    let rows = buffers.iter().map(|buffer| {
        [
            buffer.index.to_string(),
            Size(buffer.size).to_string(),
            format!("{}%", percent(buffer.used, buffer.size)),
            Size(buffer.written).to_string(),
            rate(buffer.written_per_s),
            Some(buffer.overwritten_per_s).filter(|bytes| *bytes > 0).map(rate).unwrap_or_default(),
            lasts(buffer).map(in_words).unwrap_or_default(),
        ]
    });
    let head = ["buffer", "size", "used", "written", "rate", "overwritten", "holds the last"];
    out.push_str(&table(&head, rows.collect()));
    for loss in &view.losses {
        let _ =
            writeln!(out, "  {}: {} {}: {}", cell(&loss.place), loss.number, cell(&loss.what), advice(loss, buffers));
    }
    out.push('\n');
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}

/// Returns the time whose events a full ring holds at this rate.
fn lasts(buffer: &BufferView) -> Option<Duration> {
    let is_full = buffer.overwritten_per_s > 0;
    is_full.then(|| buffer.size.checked_div(buffer.written_per_s).map(Duration::from_secs)).flatten()
}

/// Returns what would prevent a loss.
fn advice(loss: &Loss, buffers: &[BufferView]) -> String {
    let index: Option<usize> = loss.place.strip_prefix("buffer ").and_then(|index| index.parse().ok());
    let advice = loss.remedy(index.and_then(|index| buffers.get(index)).map(|buffer| buffer.size / 1024));
    if advice.is_empty() { "docs/concepts/losses.md tells what it means".to_owned() } else { advice }
}

fn json(views: &[SessionView]) -> String {
    let session = |view: &SessionView| {
        let buffer = |buffer: &BufferView| {
            json!({
                "size": buffer.size,
                "used": buffer.used,
                "written": buffer.written,
                "written_per_s": buffer.written_per_s,
                "overwritten_per_s": buffer.overwritten_per_s,
            })
        };
        let loss = |loss: &Loss| {
            let advice = advice(loss, view.buffers.as_deref().unwrap_or_default());
            json!({ "place": loss.place, "what": loss.what, "number": loss.number, "is_normal": loss.expected, "advice": advice })
        };
        json!({
            "id": view.session.id,
            "name": view.session.name,
            "state": view.session.state,
            "age_s": view.session.age.map(|age| age.as_secs_f64()),
            "buffers": view.buffers.as_ref().map(|buffers| buffers.iter().map(buffer).collect::<Vec<_>>()),
            "losses": view.losses.iter().map(loss).collect::<Vec<_>>(),
        })
    };
    let sessions: Vec<_> = views.iter().map(session).collect();
    escape::json(&format!("{}\n", json!({ "sessions": sessions })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(written: u64, overwritten: u64) -> TraceStats {
        let counts = [("buffer_size", 1 << 20), ("bytes_written", written), ("bytes_overwritten", overwritten)];
        let buffer = counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let mut stats = TraceStats::decode(&[]);
        stats.buffers = vec![buffer];
        stats
    }

    #[test]
    fn rates_are_those_between_two_looks() {
        let view = &buffer_views(&stats(3 << 20, 2 << 20), Some(&stats(1 << 20, 0)), 2000)[0];
        assert_eq!((view.used, view.written_per_s, view.overwritten_per_s), (1 << 20, 1 << 20, 1 << 20));
        assert_eq!(lasts(view), Some(Duration::from_secs(1)));
        let first = &buffer_views(&stats(1 << 19, 0), None, 1000)[0];
        assert_eq!((percent(first.used, first.size), lasts(first)), (50, None));
    }

    #[test]
    fn lines_fit_into_a_narrow_terminal() {
        assert_eq!(fitted("12345678\näöü\n", 5), "12345\näöü\n");
    }

    #[test]
    fn a_loss_names_the_line_that_helps() {
        let loss = |what: &str, expected| {
            let mut losses = stats(1, 1).losses_since(&stats(0, 0), &[], Reading::AtEnd);
            losses.clear();
            let mut probe = stats(1, 1);
            probe.buffers[0].insert(what.to_owned(), 3);
            let found = probe.losses_since(&stats(0, 0), &[], Reading::AtEnd);
            let found = found.into_iter().find(|loss| loss.what == what).expect("a loss");
            assert_eq!(found.expected, expected);
            advice(&found, &buffer_views(&probe, None, 1000))
        };
        let line = "Normal for a ring buffer. `buffers { size_kb: 2048 }` keeps more.";
        assert_eq!(loss("chunks_overwritten", true), line);
        assert!(loss("trace_writer_packet_loss", false).contains("shm_size_kb"));
    }
}
