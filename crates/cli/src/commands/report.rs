//! The command `esatto report`: one HTML page that shows a trace without a network.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use esatto_inputs::Inputs;
use esatto_report::{NoticeLevel, Report};
use esatto_trace::escape::Line;

use crate::args;
use crate::commands::info;
use crate::console::say;
use crate::failure::{Attempt as _, Failure};
use crate::shell_word::ShellWord;
use crate::trace_input::{self, first};
use crate::trace_output::NewFile;

/// The mark of our pages, within their first bytes.
const MARK: &[u8] = b"content=\"esatto report\"";
/// Usual extensions of traces.
const EXTENSIONS: [&str; 4] = ["pftrace", "perfetto-trace", "perfetto", "pb"];
/// Bytes of a page that contain the mark.
const HEAD: u64 = 2048;

pub(crate) fn run(args: &args::Report) -> Result<ExitCode, Failure> {
    let (report, unread) = read(&trace_input::open(&args.traces)?, first(&args.traces))?;
    if args.output.as_deref().is_some_and(|output| output.as_os_str() == "-") {
        report.write(&mut io::stdout().lock()).attempt(|| "cannot print the report".to_owned())?;
        return unread.map_or(Ok(ExitCode::SUCCESS), Err);
    }
    let output = args.output.clone().unwrap_or_else(|| page_beside(first(&args.traces)));
    if !args.force {
        refuse_to_replace(&output)?;
    }
    let slices = report.slices();
    let count = |level| report.notices().iter().filter(|notice| notice.level == level).count();
    let (errors, losses) = (count(NoticeLevel::Error), count(NoticeLevel::Loss));
    let bytes = write(report, &output)?;
    say!("Wrote the report {}: {slices} slices, {}", Line(output.display()), size(bytes));
    if errors + losses > 0 {
        say!("It begins with what is missing: {losses} losses, {errors} errors of the file");
    }
    say!("Open it in any browser; it needs no network: xdg-open {}", ShellWord::new(&output));
    unread.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Reads the traces of a report. `path` is the first file, or the archive. The second value is
/// there if the report is not about all of a trace, because the machine could not read it wholly.
pub(super) fn read(inputs: &Inputs, path: &Path) -> Result<(Report, Option<Failure>), Failure> {
    let (engine, summary) = inputs.read().map_err(trace_input::failed)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let title = match (path.as_os_str() == "-", inputs.members().len()) {
        (true, _) => "trace".to_owned(),
        (false, number) if number > 1 && !inputs.is_archive() => format!("{name} and {} more", number - 1),
        (false, _) => name.into_owned(),
    };
    let mut report = Report::new(&engine, &summary, &title);
    let unread = info::unread(path, &summary);
    for (name, loss) in inputs.losses() {
        report.add_notice(NoticeLevel::Warning, format!("{name}: {loss}"));
    }
    for note in inputs.notes() {
        report.add_notice(NoticeLevel::Note, note);
    }
    if path.as_os_str() == "-" {
        return Ok((report, unread));
    }
    if report.is_empty() && report.notices().iter().any(|notice| notice.level == NoticeLevel::Error) {
        let why = report.notices()[0].title.clone();
        return Err(Failure::new(format!("{} is not a Perfetto trace", path.display()), why));
    }
    Ok((report, unread))
}

/// Writes the report of a trace beside it, and returns the name of the page.
///
/// # Errors
///
/// As those of the command.
pub(crate) fn write_beside(trace: &Path) -> Result<PathBuf, Failure> {
    let (report, unread) = read(&trace_input::open_file(trace)?, trace)?;
    if let Some(failure) = unread {
        return Err(failure);
    }
    let output = page_beside(trace);
    refuse_to_replace(&output)?;
    write(report, &output)?;
    Ok(output)
}

/// Returns the name of the page of a trace: that of the trace, with `.html` instead of a usual
/// extension of traces, or after another one.
fn page_beside(trace: &Path) -> PathBuf {
    if trace.as_os_str() == "-" {
        return PathBuf::from("trace.html");
    }
    if trace.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
        return trace.with_extension("html");
    }
    let mut name = OsString::from(trace);
    name.push(".html");
    name.into()
}

/// Refuses to replace a file that is no report. Pipes and devices are not replaced but written to.
fn refuse_to_replace(path: &Path) -> Result<(), Failure> {
    if !fs::metadata(path).is_ok_and(|file| file.is_file()) {
        return Ok(());
    }
    let mut head = Vec::new();
    let _ = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    if head.windows(MARK.len()).any(|bytes| bytes == MARK) {
        return Ok(());
    }
    let what = format!("cannot write the report {}", path.display());
    Err(Failure::new(what, "the file is there, and it is no report").hint("--force replaces it; -o names another one"))
}

/// Writes the page, and returns its size. A page that cannot be written whole leaves no file. Like
/// the trace, the page is readable only for its owner.
fn write(report: Report, path: &Path) -> Result<u64, Failure> {
    let what = || format!("cannot write the report {}", path.display());
    if fs::metadata(path).is_ok_and(|file| !file.is_file()) {
        // A pipe or a device takes the page as it comes.
        let mut file = BufWriter::new(File::options().write(true).open(path).attempt(what)?);
        report.write(&mut file).and_then(|()| file.flush()).attempt(what)?;
        return Ok(0);
    }
    let file = NewFile::beside(path).attempt(what)?;
    let mut out = BufWriter::new(file.file());
    report.write(&mut out).and_then(|()| out.flush()).attempt(what)?;
    drop(out);
    let size = file.file().metadata().attempt(what)?.len();
    file.name(path, true).attempt(what)?;
    Ok(size)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_beside_the_trace() {
        assert_eq!(page_beside(Path::new("a/t.pftrace")), Path::new("a/t.html"));
        assert_eq!(page_beside(Path::new("t.pftrace.gz")), Path::new("t.pftrace.gz.html"));
        assert_eq!(page_beside(Path::new("trace")), Path::new("trace.html"));
        assert_eq!(page_beside(Path::new("-")), Path::new("trace.html"));
    }

    #[test]
    fn sizes_have_two_or_three_digits() {
        assert_eq!([999, 54_321, 1_250_000].map(size), ["999 bytes", "54 kB", "1.2 MB"]);
    }
}
