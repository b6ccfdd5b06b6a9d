//! Perfetto's UI in a headless browser.

use crate::{Lab, peers};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What the UI says it shows.
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

/// Opens a trace in the UI. `ESATTO_SCREENSHOTS` names a folder to keep the pictures in.
///
/// # Panics
///
/// The UI shows an error, or does not load the trace.
#[must_use]
pub fn open(lab: &Lab, trace: &Path, options: &[&str]) -> Shown {
    let name = trace.file_name().expect("a file").to_string_lossy().into_owned() + ".png";
    let picture = match std::env::var_os("ESATTO_SCREENSHOTS") {
        Some(folder) => Path::new(&folder).join(name),
        None => lab.path(name),
    };
    let output = Command::new(peers::script("ui-check"))
        .args(["--timeout", "120"])
        .args(options)
        .arg(trace)
        .arg(&picture)
        .output()
        .expect("ui-check starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "ui-check: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::metadata(&picture).is_ok_and(|file| file.len() > 10_000), "a picture");
    Shown(text.lines().filter_map(|line| line.split_once(": ")).map(|(k, v)| (k.into(), v.into())).collect())
}
