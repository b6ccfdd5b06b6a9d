//! The command `esatto view`: a trace in the browser.

use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use esatto_trace::escape::Line;
use esatto_ui_server::{
    Activity, Content, Error, Handover, Server, Site, Token, TraceSource, UI_ORIGIN, UiFiles, View, private_address,
};

use super::report;
use crate::args;
use crate::browser::{Browser, NoBrowser};
use crate::console::{print, say};
use crate::failure::{Attempt as _, Failure};
use crate::stop_signal::StopSignal;
use crate::trace_input;

/// Time without a page until the command ends.
const UNTIL_OPENED: Duration = Duration::from_secs(600);
/// Time after a page was closed: it may be reloaded.
const AFTER_CLOSING: Duration = Duration::from_secs(10);
/// Time after a report was sent, which does not tell how long it is open.
const AFTER_REPORT: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &args::View) -> Result<ExitCode, Failure> {
    let [file] = &args.files[..] else {
        let why = format!("{} files are named, and the page takes one", args.files.len());
        let failure = Failure::new("cannot show the traces", why);
        return Err(failure.hint("`esatto merge -o all.zip FILE...` makes one archive of them"));
    };
    if args.online {
        return hand_over(args, file);
    }
    let ui = if args.report { None } else { find_ui(args.ui.as_deref())? };
    let is_report = ui.is_none();
    let content = match ui {
        Some(ui) => {
            let version = ui.version().map(|version| format!(" {version}")).unwrap_or_default();
            say!("Perfetto's UI{}, from {}", Line(version), Line(ui.path().display()));
            Content::Ui(ui, trace(file)?)
        }
        None => {
            if !args.report {
                say!("There is no copy of Perfetto's UI here, so this is our report; `esatto view --help` tells how");
                say!("to get one");
            }
            let mut page = Vec::new();
            let inputs = trace_input::open_file(file)?;
            let (report, unread) = report::read(&inputs, file)?;
            if let Some(failure) = unread {
                say!("esatto: {failure}");
            }
            report.write(&mut page).attempt(|| "cannot write the report".to_owned())?;
            Content::Page(page)
        }
    };
    let server = Server::bind((private_address().map_err(failed)?, 0).into()).map_err(failed)?;
    let site = View::new(content, Token::random().map_err(failed)?, server.address(), server.activity());
    let site = site.map_err(failed)?;
    let url = site.url();
    show(args, server, site, &url, |activity, now| {
        let idle = activity.idle_for(now);
        let patience = match (activity.has_had_page(), activity.has_delivered() && is_report) {
            (true, _) => AFTER_CLOSING,
            (false, true) => AFTER_REPORT,
            (false, false) => UNTIL_OPENED,
        };
        idle >= patience
    })
}

/// Hands the trace over to Perfetto's public UI.
fn hand_over(args: &args::View, file: &Path) -> Result<ExitCode, Failure> {
    let trace = trace(file)?;
    let server = Server::bind(Handover::ADDRESS.into()).map_err(|error| {
        failed(error).hint("it is the only address from which that page may fetch traces: end the program there")
    })?;
    let token = Token::random().map_err(failed)?;
    let site = Handover::new(trace, token, &server.address().to_string(), UI_ORIGIN);
    let url = site.page_url();
    say!("{UI_ORIGIN} reads the trace inside the browser, and comes from the internet itself");
    show(args, server, site, &url, |activity, now| activity.has_delivered() || activity.idle_for(now) >= UNTIL_OPENED)
}

/// Prints the address, opens the browser, and serves until it is over.
fn show(
    args: &args::View,
    server: Server,
    site: impl Site,
    url: &str,
    is_over: impl FnMut(&Activity, Instant) -> bool,
) -> Result<ExitCode, Failure> {
    let mut stop = StopSignal::install().attempt(|| "cannot handle signals".to_owned())?;
    // For scripts, the address is all there is on standard output.
    print(&format!("{url}\n")).attempt(|| "cannot print the address".to_owned())?;
    if !args.no_open {
        match Browser::of_this_session() {
            Ok(browser) => browser.open(url),
            Err(why) => say_why(why, &server, args.online),
        }
    }
    say!("Ctrl-C ends it");
    let activity = server.activity();
    server.serve(site, stop.as_fd(), is_over).map_err(failed)?;
    if activity.has_delivered() || activity.has_had_page() || stop.received() {
        return Ok(ExitCode::SUCCESS);
    }
    let minutes = UNTIL_OPENED.as_secs() / 60;
    Err(Failure::new("cannot show the trace", format!("nobody has opened the address for {minutes} minutes")))
}

fn say_why(why: NoBrowser, server: &Server, is_online: bool) {
    let address = server.address();
    say!("Open the address yourself: {}", why.reason());
    if !is_online && std::env::var_os("SSH_CONNECTION").is_some() {
        say!("From your own machine, first run: ssh -L {address}:{address} HOST");
    }
}

/// Opens the trace; - is standard input.
fn trace(path: &Path) -> Result<TraceSource, Failure> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .attempt(|| "cannot read the trace from standard input".to_owned())?;
        return Ok(TraceSource::from_bytes(bytes, "trace"));
    }
    TraceSource::open(path).map_err(failed)
}

/// Finds a copy of the UI. The ones that the user names must be right, and so must the others if
/// they exist.
fn find_ui(named: Option<&Path>) -> Result<Option<UiFiles>, Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let advice = "`esatto view --help` tells how to get a copy";
    if let Some(path) = named {
        return UiFiles::open(path).map(Some).map_err(|error| failed(error).hint(advice));
    }
    if let Some(path) = variable("ESATTO_UI") {
        let opened = UiFiles::open(Path::new(&path)).map(Some);
        return opened.map_err(|error| failed(error).hint(format!("ESATTO_UI names it; {advice}")));
    }
    let path = usual_places(variable("XDG_DATA_HOME"), variable("HOME")).into_iter().find(|path| path.exists());
    let Some(path) = path else { return Ok(None) };
    UiFiles::open(&path).map(Some).map_err(|error| failed(error).hint("remove it, or use --report"))
}

/// Returns the places of a copy that nobody has named.
fn usual_places(data: Option<OsString>, home: Option<OsString>) -> Vec<PathBuf> {
    // The specification of these variables ignores relative paths.
    let data = data.map(PathBuf::from).filter(|path| path.is_absolute());
    let data = data.or_else(|| home.map(|home| PathBuf::from(home).join(".local/share")));
    let system = ["/usr/local/share", "/usr/share"].map(PathBuf::from);
    data.into_iter().chain(system).map(|path| path.join("esatto/ui")).collect()
}

fn failed(error: Error) -> Failure {
    match error {
        Error::Read { path, source } => Failure::new(format!("cannot read {}", path.display()), source),
        Error::NotTheUi { path, why } => {
            Failure::new(format!("{} is not a copy of Perfetto's UI", path.display()), why)
        }
        Error::Listen { address, source } => Failure::new(format!("cannot listen on {address}"), source),
        error => Failure::new("cannot serve the trace", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_the_user_come_before_those_of_the_machine() {
        let places = |data: Option<&str>, home: Option<&str>| usual_places(data.map(Into::into), home.map(Into::into));
        let system = ["/usr/local/share/esatto/ui", "/usr/share/esatto/ui"].map(PathBuf::from);
        assert_eq!(places(None, None), system);
        assert_eq!(places(None, Some("/home/a"))[0], Path::new("/home/a/.local/share/esatto/ui"));
        assert_eq!(places(Some("/data"), Some("/home/a"))[0], Path::new("/data/esatto/ui"));
        assert_eq!(places(Some("data"), Some("/home/a"))[0], Path::new("/home/a/.local/share/esatto/ui"));
    }
}
