//! `esatto config check`: mistakes of configs, and warnings about them.

use std::process::ExitCode;

use serde_json::json;

use super::document::{self, Mistakes};
use super::finding::{Finding, Severity};
use super::options;
use super::rules;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::terminal::{Style, Terminal};
use esatto_trace::escape;

/// The findings about a file.
struct Report {
    name: String,
    findings: Vec<Finding>,
}

pub(crate) fn run(args: &options::Check) -> Result<ExitCode, Failure> {
    let reports: Vec<Report> = args.files.iter().map(|file| report(file)).collect::<Result<_, _>>()?;
    let text = if args.json { json(&reports) } else { text(&reports, Terminal::of_stdout()) };
    console::print(&text).attempt(|| "cannot show the mistakes".to_owned())?;
    let counts = |finding: &Finding| args.strict || finding.severity == Severity::Mistake;
    let is_bad = reports.iter().flat_map(|report| &report.findings).any(counts);
    Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn report(file: &std::path::Path) -> Result<Report, Failure> {
    let (document, mut findings) = match document::read(file, None)? {
        Ok(document) => (document, Vec::new()),
        Err(Mistakes { list, rest: Some(rest), .. }) => (*rest, list),
        Err(Mistakes { name, list, rest: None }) => return Ok(Report { name, findings: list }),
    };
    for mut finding in rules::findings(&document.config, &document.encoded) {
        document.locate(&mut finding);
        findings.push(finding);
    }
    findings.sort_by_key(|finding| finding.position().unwrap_or((usize::MAX, 0)));
    Ok(Report { name: document.name, findings })
}

fn text(reports: &[Report], terminal: Terminal) -> String {
    let mut text = String::new();
    for Report { name, findings } in reports {
        for finding in findings {
            let style = match finding.severity {
                Severity::Mistake => Style::Bad,
                Severity::Warning => Style::Warning,
            };
            let shown = finding.in_file(name);
            let place = terminal.paint(Style::Strong, &shown.place());
            text += &format!("{place} {} {}\n", terminal.paint(style, shown.severity()), shown.message());
            if let Some(snippet) = shown.snippet() {
                text += &snippet;
                text.push('\n');
            }
        }
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let total = total(count(Severity::Mistake), count(Severity::Warning));
        text += &format!("{}: {total}\n", terminal.paint(Style::Strong, name));
    }
    text
}

fn total(mistakes: usize, warnings: usize) -> String {
    let counted = |count: usize, noun: &str| match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    match warnings {
        0 => counted(mistakes, "mistake"),
        _ => format!("{}, {}", counted(mistakes, "mistake"), counted(warnings, "warning")),
    }
}

fn json(reports: &[Report]) -> String {
    let files: Vec<_> = reports
        .iter()
        .map(|Report { name, findings }| {
            let findings: Vec<_> = findings.iter().map(Finding::to_json).collect();
            json!({ "file": name, "findings": findings })
        })
        .collect();
    escape::json(&format!("{:#}\n", json!({ "files": files })))
}
