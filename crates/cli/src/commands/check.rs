//! The command `esatto check`: is a trace sound, what was lost, and what would have prevented it.

use std::process::ExitCode;

use esatto_inputs::{Inputs, Member};
use esatto_report::{Notice, NoticeLevel, notices};
use esatto_trace::escape::Line;
use esatto_trace::{Error, Summary};
use serde_json::json;

use crate::args::{self, Traces};
use crate::commands::info;
use crate::console::{self, say};
use crate::failure::{Attempt as _, Failure};
use crate::trace_input::{self, first};

/// Exit status if a trace can be read but data is missing in it.
const LOST: u8 = 3;
/// Findings with the same explanation that are shown one after the other.
const SHOWN_ALIKE: usize = 3;

/// The state of a trace, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Sound,
    Lost,
    /// The machine could not read all of it; the file may be sound.
    Unread,
    Damaged,
}

impl Verdict {
    fn of(notices: &[Notice]) -> Self {
        let has = |level| notices.iter().any(|notice| notice.level == level);
        match () {
            () if has(NoticeLevel::Error) => Self::Damaged,
            () if has(NoticeLevel::Unread) => Self::Unread,
            () if has(NoticeLevel::Loss) => Self::Lost,
            () => Self::Sound,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Lost => "data is missing",
            Self::Unread => "cannot be read wholly",
            Self::Damaged => "damaged",
        }
    }
}

/// The result for a trace.
struct Checked {
    name: String,
    packets: u64,
    slices: u64,
    duration_ns: i64,
    notices: Vec<Notice>,
}

impl Checked {
    fn new(name: String, summary: &Summary, more: Vec<Notice>) -> Self {
        let mut notices = notices(summary);
        notices.extend(more);
        Self {
            name,
            packets: summary.packets,
            slices: summary.slices.count,
            duration_ns: summary.duration_ns().unwrap_or(0),
            notices,
        }
    }
}

pub(crate) fn run(args: &args::Check) -> Result<ExitCode, Failure> {
    let mut worst = Verdict::Sound;
    let mut objects = Vec::new();
    let inputs: Vec<Traces> = if args.are_pieces {
        vec![Traces { files: args.files.clone(), are_pieces: true }]
    } else {
        args.files.iter().map(|file| Traces { files: vec![file.clone()], are_pieces: false }).collect()
    };
    for traces in inputs {
        let results = match trace_input::open(&traces).and_then(|inputs| check(&inputs, &traces)) {
            Ok(results) => results,
            // The others are checked nevertheless.
            Err(failure) => {
                worst = Verdict::Damaged;
                say!("esatto: {failure}");
                objects.push(unreadable(&traces, &failure));
                continue;
            }
        };
        for result in results {
            let verdict = Verdict::of(&result.notices);
            worst = worst.max(verdict);
            if args.json {
                objects.push(to_json(&result, verdict));
            } else {
                console::print(&to_text(&result, verdict)).attempt(|| "cannot show the result".to_owned())?;
            }
        }
    }
    if args.json {
        let text = format!("{:#}\n", serde_json::Value::Array(objects));
        console::print(&text).attempt(|| "cannot show the result".to_owned())?;
    }
    Ok(match worst {
        Verdict::Sound => ExitCode::SUCCESS,
        Verdict::Lost => ExitCode::from(LOST),
        Verdict::Unread | Verdict::Damaged => ExitCode::FAILURE,
    })
}

/// Checks a trace, or an archive: each of its traces alone, and all together.
fn check(inputs: &Inputs, traces: &Traces) -> Result<Vec<Checked>, Failure> {
    let path = first(traces);
    let name = path.to_string_lossy().into_owned();
    let mut summary = inputs.summary().map_err(trace_input::failed)?;
    let losses = |member: Option<&str>| {
        let losses = inputs.losses().into_iter().filter(|(name, _)| member.is_none_or(|member| member == name));
        losses.map(|(_, loss)| notice(NoticeLevel::Warning, loss)).collect::<Vec<_>>()
    };
    if !inputs.is_archive() {
        info::set_being_written(&mut summary, path);
        return Ok(vec![Checked::new(name, &summary, losses(None))]);
    }
    let mut results = Vec::new();
    if summary.parts.is_empty() {
        let member = inputs.single().map(Member::name).unwrap_or_default();
        summary.errors.retain(|error| !matches!(error, Error::Archive { .. }));
        results.push(Checked::new(format!("{name}: {member}"), &summary, losses(None)));
    }
    for part in &summary.parts {
        results.push(Checked::new(format!("{name}: {}", part.name), &part.summary, losses(Some(&part.name))));
    }
    // The archive itself, if there is something to tell of it.
    let damaged = inputs.errors().iter().map(|(name, why)| notice(NoticeLevel::Error, format!("{name}: {why}")));
    let left_out = summary.errors.iter().filter(|error| matches!(error, Error::LeftOut { .. }));
    let left_out = left_out.map(|error| notice(NoticeLevel::Error, error.to_string()));
    let notices: Vec<Notice> = damaged.chain(left_out).collect();
    if !notices.is_empty() {
        let (packets, slices) = (summary.packets, summary.slices.count);
        results.push(Checked { name, packets, slices, duration_ns: summary.duration_ns().unwrap_or(0), notices });
    }
    Ok(results)
}

fn notice(level: NoticeLevel, title: String) -> Notice {
    Notice::new(level, title)
}

fn to_text(result: &Checked, verdict: Verdict) -> String {
    #[allow(clippy::cast_precision_loss, reason = "it is shown in milliseconds")]
    let seconds = result.duration_ns as f64 / 1e9;
    let mut text = format!(
        "{}: {}. {} packets, {} slices, {seconds:.3} s\n",
        Line(&result.name),
        verdict.word(),
        result.packets,
        result.slices
    );
    // A loss in each of very many sequences has the same explanation.
    let same = |a: &Notice, b: &Notice| (level(a), &a.text, &a.remedy) == (level(b), &b.text, &b.remedy);
    let mut hidden = 0;
    for (position, notice) in result.notices.iter().enumerate() {
        let before = result.notices[..position].iter().rev().take_while(|other| same(other, notice)).take(SHOWN_ALIKE);
        let before = before.count();
        let explains = !notice.text.is_empty() || !notice.remedy.is_empty();
        hidden = if explains && before >= SHOWN_ALIKE { hidden + 1 } else { 0 };
        if hidden > 0 {
            if !result.notices.get(position + 1).is_some_and(|next| same(next, notice)) {
                text += &format!("  {}: {hidden} more like these; `esatto info` lists them\n", level(notice));
            }
            continue;
        }
        text += &format!("  {}: {}", level(notice), Line(&notice.title));
        for more in [&notice.text, &notice.remedy] {
            if !more.is_empty() {
                text += &format!(". {}", Line(more.trim_end_matches('.')));
            }
        }
        text.push('\n');
    }
    text
}

fn level(notice: &Notice) -> &'static str {
    match notice.level {
        NoticeLevel::Error => "damaged",
        NoticeLevel::Unread => "unread",
        NoticeLevel::Loss => "lost",
        NoticeLevel::Warning => "warning",
        _ => "note",
    }
}

fn to_json(result: &Checked, verdict: Verdict) -> serde_json::Value {
    let findings: Vec<_> = result
        .notices
        .iter()
        .map(|notice| {
            json!({ "level": level(notice), "title": notice.title, "text": notice.text, "remedy": notice.remedy })
        })
        .collect();
    json!({
        "file": result.name,
        "is_sound": verdict == Verdict::Sound,
        "verdict": verdict.word(),
        "packets": result.packets,
        "slices": result.slices,
        "duration_ns": result.duration_ns,
        "findings": findings,
    })
}

/// Describes a trace that cannot be read.
fn unreadable(traces: &Traces, failure: &Failure) -> serde_json::Value {
    json!({
        "file": first(traces).to_string_lossy(),
        "is_sound": false,
        "verdict": "cannot be read",
        "findings": [{ "level": "damaged", "title": failure.to_string(), "text": "", "remedy": "" }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_that_are_alike_are_shown_three_times() {
        let alike = |number: usize| {
            let mut notice = notice(NoticeLevel::Loss, format!("1 chunk dropped (sequence {number})"));
            notice.remedy = "give it more".to_owned();
            notice
        };
        let mut notices: Vec<Notice> = (0..100).map(alike).collect();
        notices.extend((0..5).map(|number| notice(NoticeLevel::Warning, format!("{number} × oddity"))));
        let result = Checked { name: "t".to_owned(), packets: 1, slices: 1, duration_ns: 1, notices };
        let text = to_text(&result, Verdict::Lost);
        assert_eq!(text.lines().count(), 1 + 3 + 1 + 5, "{text}");
        assert!(text.contains("sequence 2)") && !text.contains("sequence 3)"), "{text}");
        assert!(text.contains("lost: 97 more like these"), "{text}");
    }
}
