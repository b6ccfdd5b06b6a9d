//! The command `esatto check`: is a trace sound, what was lost, and what would have prevented it.

use std::path::Path;
use std::process::ExitCode;

use esatto_report::{Notice, NoticeLevel, notices};
use esatto_trace::Summary;
use esatto_trace::escape::Line;
use serde_json::json;

use crate::args;
use crate::commands::info;
use crate::console::{self, say};
use crate::failure::{Attempt as _, Failure};

/// Exit status if a trace can be read but data is missing in it.
const LOST: u8 = 3;

/// The state of a trace, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Sound,
    Lost,
    Damaged,
}

impl Verdict {
    fn of(notices: &[Notice]) -> Self {
        let has = |level| notices.iter().any(|notice| notice.level == level);
        match () {
            () if has(NoticeLevel::Error) => Self::Damaged,
            () if has(NoticeLevel::Loss) => Self::Lost,
            () => Self::Sound,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Lost => "data is missing",
            Self::Damaged => "damaged",
        }
    }
}

pub(crate) fn run(args: &args::Check) -> Result<ExitCode, Failure> {
    let mut worst = Verdict::Sound;
    let mut objects = Vec::new();
    for file in &args.files {
        let summary = match info::read(file) {
            Ok(summary) => summary,
            // The others are checked nevertheless.
            Err(failure) => {
                worst = Verdict::Damaged;
                say!("esatto: {failure}");
                continue;
            }
        };
        let notices = notices(&summary);
        let verdict = Verdict::of(&notices);
        worst = worst.max(verdict);
        if args.json {
            objects.push(to_json(file, &summary, verdict, &notices));
        } else {
            console::print(&to_text(file, &summary, verdict, &notices))
                .attempt(|| "cannot show the result".to_owned())?;
        }
    }
    if args.json {
        let text = format!("{:#}\n", serde_json::Value::Array(objects));
        console::print(&text).attempt(|| "cannot show the result".to_owned())?;
    }
    Ok(match worst {
        Verdict::Sound => ExitCode::SUCCESS,
        Verdict::Lost => ExitCode::from(LOST),
        Verdict::Damaged => ExitCode::FAILURE,
    })
}

fn to_text(file: &Path, summary: &Summary, verdict: Verdict, notices: &[Notice]) -> String {
    let seconds = summary.duration_ns().unwrap_or(0) as f64 / 1e9;
    let mut text = format!(
        "{}: {}. {} packets, {} slices, {seconds:.3} s\n",
        Line(file.display()),
        verdict.word(),
        summary.packets,
        summary.slices.count
    );
    for notice in notices {
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
        NoticeLevel::Loss => "lost",
        NoticeLevel::Warning => "warning",
        _ => "note",
    }
}

fn to_json(file: &Path, summary: &Summary, verdict: Verdict, notices: &[Notice]) -> serde_json::Value {
    let findings: Vec<_> = notices
        .iter()
        .map(|notice| {
            json!({ "level": level(notice), "title": notice.title, "text": notice.text, "remedy": notice.remedy })
        })
        .collect();
    json!({
        "file": file.to_string_lossy(),
        "is_sound": verdict == Verdict::Sound,
        "verdict": verdict.word(),
        "packets": summary.packets,
        "slices": summary.slices.count,
        "duration_ns": summary.duration_ns().unwrap_or(0),
        "findings": findings,
    })
}
