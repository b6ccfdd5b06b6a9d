//! Perfetto's UI in a headless browser.

use crate::{Harness, peers};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Content that the UI reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(BTreeMap<String, String>);

impl Shown {
    /// A count, such as `slices`.
    ///
    /// # Panics
    ///
    /// There is no such count.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

/// The exit status of `ui-check` when the browser does not answer: the trace is not to blame, at
/// first.
const BROWSER_HANGS: i32 = 3;

/// Opens a trace in the UI. `ESATTO_SCREENSHOTS` names a folder to keep the pictures in.
///
/// # Panics
///
/// The UI shows an error, or does not load the trace.
#[must_use]
pub fn open(harness: &Harness, trace: &Path, options: &[&str]) -> Shown {
    let name = trace.file_name().expect("a file").to_string_lossy().into_owned() + ".png";
    let picture = match std::env::var_os("ESATTO_SCREENSHOTS") {
        Some(folder) => Path::new(&folder).join(name),
        None => harness.path(name),
    };
    let check = || {
        let mut command = Command::new(peers::script("ui-check"));
        command.args(["--timeout", "60"]).args(options).arg(trace).arg(&picture);
        command.output().expect("ui-check starts")
    };
    let mut output = in_turn(check);
    if output.status.code() == Some(BROWSER_HANGS) {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        output = in_turn(check);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "ui-check: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::metadata(&picture).is_ok_and(|file| file.len() > 10_000), "a picture");
    Shown(text.lines().filter_map(|line| line.split_once(": ")).map(|(k, v)| (k.into(), v.into())).collect())
}

/// Runs something with a browser. One browser runs at a time: it takes all there is of memory and
/// processors.
pub fn in_turn<R>(run: impl FnOnce() -> R) -> R {
    static BROWSER: Mutex<()> = Mutex::new(());
    let _turn = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    run()
}
