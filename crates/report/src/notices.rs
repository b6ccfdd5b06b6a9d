//! Remarks above the timeline: errors of the file, losses, and notes.

use std::collections::BTreeMap;

use esatto_trace::{Error, Loss, MISSING_ANCESTORS, Summary, UNMATCHED_ENDS};

use crate::report::{Notice, NoticeLevel, Report};
use crate::stacks::MAX_STACK_NODES;
use crate::timeline::MAX_DEPTH;
use crate::trace_import::{LeftOut, MAX_KERNEL_EVENTS};

/// Programs that a notice names.
const NAMED_PROGRAMS: usize = 5;
/// Errors of the file that are shown one by one.
const MAX_ERRORS: usize = 20;

/// Returns the remarks on a trace: errors of the file, losses with what would prevent them, broken
/// rules of the format, and what is normal but worth knowing. The gravest come first.
pub fn notices(summary: &Summary) -> Vec<Notice> {
    let mut notices = Vec::new();
    for error in summary.errors.iter().take(MAX_ERRORS) {
        let level = if error.is_of_temporary_file() { NoticeLevel::Unread } else { NoticeLevel::Error };
        let mut notice = notice(level, error.to_string(), &extent(summary, error));
        notice.remedy = capitalized(error.remedy().unwrap_or_default());
        notices.push(notice);
    }
    let more = summary.errors.len().saturating_sub(MAX_ERRORS) as u64 + summary.more_errors;
    if more > 0 {
        notices.push(notice(NoticeLevel::Error, format!("{more} more errors of the file"), ""));
    }
    let losses = summary.losses();
    notices.extend(losses.iter().filter(|loss| !loss.expected).map(|loss| of_loss(summary, loss)));
    let of_ring = summary.skipped_of_ring();
    let skipped = summary.skipped_packets.saturating_sub(of_ring);
    if skipped > 0 {
        let title = format!("{skipped} packets could not be read, because the state that they need was lost");
        let mut skipped = notice(NoticeLevel::Loss, title, "");
        skipped.remedy = match summary.clear_period_ms() {
            _ if summary.begins_in_another_file() => {
                "The file begins in the middle of the recording: a program has read the packets before it, which have \
                 this state. Write all pieces into one file, in the order in which they were read."
            }
            0 => {
                "A larger `buffers { size_kb: … }` loses less, or `incremental_state_config { clear_period_ms: 1000 }`, \
                 with which programs send the state again each second."
            }
            _ => "A larger `buffers { size_kb: … }` loses less.",
        }
        .to_owned();
        notices.push(skipped);
    }
    for problem in &summary.data_source_problems {
        notices.push(notice(NoticeLevel::Warning, format!("{}: {}", problem.data_source, problem.reason), ""));
    }
    for part in &summary.parts {
        for problem in &part.summary.data_source_problems {
            let title = format!("{}: {}: {}", part.name, problem.data_source, problem.reason);
            notices.push(notice(NoticeLevel::Warning, title, ""));
        }
    }
    notices.extend(apart(summary));
    if summary.ftrace_events > 0 && summary.early_ftrace_events >= summary.ftrace_events {
        let title = "all kernel events lie before the recording, and readers leave them out";
        let text = "The kernel and the service have different clocks, as in a time namespace.";
        let mut early = notice(NoticeLevel::Warning, title, text);
        early.remedy = "Record outside of the namespace.".to_owned();
        notices.push(early);
    }
    notices.extend(scheduling_gap(summary));
    if summary.interning_errors > 0 {
        let title = format!("{} names were used but never sent", summary.interning_errors);
        notices.push(notice(NoticeLevel::Warning, title, ""));
    }
    let unmatched_ends = summary.unmatched_ends();
    for (problem, number) in &summary.problems {
        if *problem == UNMATCHED_ENDS && unmatched_ends.is_some() {
            continue;
        }
        let title = format!("{number} × {}", problem.replace('_', " "));
        let mut broken = notice(NoticeLevel::Warning, title, "The trace breaks a rule of the format.");
        broken.remedy = remedy_of_rule(problem).to_owned();
        notices.push(broken);
    }
    if let Some(number) = unmatched_ends {
        let title =
            if number == 1 { "1 slice has no begin".to_owned() } else { format!("{number} slices have no begin") };
        let text = "They had begun before the recording, or their begin was lost. They are not shown.";
        notices.push(notice(NoticeLevel::Note, title, text));
    }
    notices.extend(losses.iter().filter(|loss| loss.expected).map(|loss| of_loss(summary, loss)));
    if of_ring > 0 {
        let title = format!("the {of_ring} oldest packets of the ring could not be read");
        let text = "The ring has overwritten the names and other state that they need, which is normal.";
        notices.push(notice(NoticeLevel::Note, title, text));
    }
    notices
}

/// Returns what a program can do to keep a rule of the format; "" if it is not known.
fn remedy_of_rule(problem: &str) -> &'static str {
    match problem {
        MISSING_ANCESTORS => {
            "These events are not shown. Each track above theirs needs an event of its own, or a descriptor, as \
             `esatto_track_options.below` and nested tracks write it in C and C++."
        }
        _ => "",
    }
}

/// Tells the time without kernel events through which threads seem to run.
fn scheduling_gap(summary: &Summary) -> Option<Notice> {
    let (from, to) = summary.scheduling_gap_ns?;
    let begin = summary.bounds_ns.map_or(from, |(begin, _)| begin);
    let seconds = |ns: i64| ns as f64 / 1e9;
    let title = format!(
        "no thread was switched for {:.3} s, from {:.3} s after the begin",
        seconds(to.saturating_sub(from)),
        seconds(from.saturating_sub(begin))
    );
    let text = "The trace is several recordings in one, or the machine slept. Threads and system calls that seem to \
                last through it did not.";
    Some(notice(NoticeLevel::Warning, title, text))
}

/// Names the programs whose times are not those of the recording.
fn apart(summary: &Summary) -> Option<Notice> {
    let apart = summary.sequences.iter().filter_map(|sequence| Some((sequence.pid, sequence.apart_ns?)));
    let apart: BTreeMap<Option<i32>, i64> = apart.collect();
    if apart.is_empty() {
        return None;
    }
    let name = |pid: Option<i32>| {
        let Some(pid) = pid else { return "an unknown program".to_owned() };
        let process = summary.processes.iter().find(|process| process.pid == i64::from(pid));
        match process.and_then(|process| process.name.as_deref()) {
            Some(name) => format!("{name} (pid {pid})"),
            None => format!("process {pid}"),
        }
    };
    // Programs may be in different namespaces.
    let place = |ns: i64| {
        let hours = (ns.unsigned_abs() / 1_000_000_000) as f64 / 3600.0;
        format!("{hours:.1} h {}", if ns < 0 { "before" } else { "after" })
    };
    let named = apart.iter().take(NAMED_PROGRAMS);
    let names: Vec<String> = named.map(|(pid, ns)| format!("{} lie {} it", name(*pid), place(*ns))).collect();
    let more = if apart.len() > NAMED_PROGRAMS {
        format!(" and {} more", apart.len() - NAMED_PROGRAMS)
    } else {
        String::new()
    };
    let title = format!("events are far from the recording: those of {}{more}", names.join(", of "));
    let mut notice = notice(
        NoticeLevel::Warning,
        title,
        "The program and the service have different clocks, as in different time namespaces.",
    );
    notice.remedy = "Record it with a service inside of its namespace, or start it without one of its own.".to_owned();
    Some(notice)
}

/// Returns how much of the file an error concerns.
fn extent(summary: &Summary, error: &Error) -> String {
    let rest = match summary.unread_bytes {
        Some(0) => String::new(),
        Some(1) => " One byte after it is not read.".to_owned(),
        Some(bytes) => format!(" {bytes} bytes after it are not read."),
        None => " Nothing after it is read.".to_owned(),
    };
    match error {
        Error::Empty
        | Error::Foreign { .. }
        | Error::TemporaryFile { .. }
        | Error::Archive { .. }
        | Error::LeftOut { .. } => String::new(),
        Error::InPart { error, .. } => extent(summary, error),
        Error::Torn { .. } | Error::TornHeader { .. } if error.ends_reading() => {
            "Everything before it is shown.".to_owned()
        }
        _ if error.ends_reading() => format!("Everything before it is shown.{rest}"),
        Error::Malformed { .. } => "The rest of this packet is not shown.".to_owned(),
        _ => "The rest of this compressed packet is not shown.".to_owned(),
    }
}

/// Adds remarks on what the report itself leaves out.
pub(crate) fn add_of_report(report: &mut Report) {
    if report.timeline.too_deep > 0 {
        let title = format!(
            "{} slices are not shown, because they are nested deeper than {MAX_DEPTH}",
            report.timeline.too_deep
        );
        report.notices.push(notice(NoticeLevel::Warning, title, ""));
    }
    if report.stacks.is_full {
        let title = format!(
            "Some call stacks are not whole, because a page holds {MAX_STACK_NODES} functions with different callers"
        );
        report.notices.push(notice(NoticeLevel::Warning, title, "They end at the last caller that it holds."));
    }
    add_left_out_events(report);
}

/// Names of kernel events that are listed as left out.
const MAX_LEFT_OUT: usize = 6;

/// Adds a remark on kernel events that the page has no room for.
fn add_left_out_events(report: &mut Report) {
    let left_out = &report.left_out_events;
    let number: usize = left_out.iter().map(|events| events.number).sum();
    if number == 0 {
        return;
    }
    let one = |events: &LeftOut| match events.all - events.number {
        0 => format!("all {} `{}`", events.number, events.name),
        shown => format!("{} of {} `{}` (the first {shown} are shown)", events.number, events.all, events.name),
    };
    // The most frequent ones come last.
    let listed: Vec<String> = left_out.iter().rev().take(MAX_LEFT_OUT).map(one).collect();
    let more = match left_out.len().saturating_sub(MAX_LEFT_OUT) {
        0 => String::new(),
        more => format!(", and {more} further names"),
    };
    let title = format!(
        "{number} kernel events are not shown one by one, because a page holds {MAX_KERNEL_EVENTS} of them; \
         the rarest names come first"
    );
    let mut notice = notice(NoticeLevel::Warning, title.clone(), "");
    report.left_out_title = title;
    notice.remedy = format!(
        "Not shown: {}{more}. They are in the trace: `esatto dump` lists them, and a config without their names in \
         `ftrace_config {{ ftrace_events: … }}` leaves them out.",
        listed.join(", ")
    );
    report.notices.push(notice);
}

fn notice(level: NoticeLevel, title: impl Into<String>, text: &str) -> Notice {
    Notice { level, title: title.into(), text: text.to_owned(), remedy: String::new() }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn of_loss(summary: &Summary, loss: &Loss) -> Notice {
    let level = if loss.expected { NoticeLevel::Note } else { NoticeLevel::Loss };
    let mut notice = notice(level, format!("{} {} ({})", loss.number, loss.what.replace('_', " "), loss.place), "");
    notice.remedy = summary.remedy(loss);
    notice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_events_without_room_are_counted_and_named() {
        let mut report = Report::default();
        add_of_report(&mut report);
        assert!(report.notices.is_empty());
        let left = |name: String, number, all| LeftOut { name, number, all };
        report.left_out_events.push(left("kfree".to_owned(), 10, 30));
        report.left_out_events.extend((0..7).map(|i| left(format!("event{i}"), 100, 100)));
        add_of_report(&mut report);
        let [notice] = &report.notices[..] else { panic!("one remark: {:?}", report.notices) };
        assert_eq!(notice.level, NoticeLevel::Warning);
        assert!(notice.title.starts_with("710 kernel events are not shown one by one, because"), "{}", notice.title);
        assert!(notice.remedy.contains("all 100 `event6`, all 100 `event5`"), "{}", notice.remedy);
        assert!(notice.remedy.contains("and 2 further names"), "{}", notice.remedy);
        report.left_out_events.truncate(1);
        report.notices.clear();
        add_of_report(&mut report);
        let remedy = &report.notices[0].remedy;
        assert!(remedy.starts_with("Not shown: 10 of 30 `kfree` (the first 20 are shown)."), "{remedy}");
    }
}
