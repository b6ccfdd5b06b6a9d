//! A command line that is run with both commands and both services.

use esatto_tests::{Harness, Implementation, Peer, esatto_bin};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Messages that scripts look for (§15).
const STABLE: [&str; 7] = [
    "Connected to the Perfetto traced service",
    "Wrote ",
    "Trace written into the output file",
    "Service error:",
    "Could not connect to the traced socket",
    "SIGINT/SIGTERM received: disabling tracing.",
    "The TraceConfig is empty",
];
/// Longest time of a run.
const PATIENCE: Duration = Duration::from_secs(60);
/// Brings back exit code 0 for refusals, as Perfetto's command has it.
const ODDITIES: &str = "ESATTO_PERFETTO_ODDITIES";

/// A config that records nothing for a short time.
pub(crate) const SHORT: &str = "duration_ms: 200 buffers { size_kb: 64 } data_sources { config { name: \"none\" } }";
/// A config that the service refuses.
pub(crate) const REFUSED: &str = "buffers { size_kb: 64 } data_sources { config { name: \"none\" target_buffer: 7 } }";

/// A command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row {
    pub(crate) args: &'static [&'static str],
    /// Files that it finds: name and content.
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) stdin: &'static str,
    /// No service runs.
    pub(crate) without_service: bool,
}

/// The deeds of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// Files with content that it made.
    pub(crate) files: BTreeSet<String>,
    pub(crate) harness: Harness,
}

impl Ran {
    pub(crate) fn of(output: Output, harness: Harness, inputs: &[(&str, &str)]) -> Self {
        let files = std::fs::read_dir(harness.folder()).expect("the folder").filter_map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_result = entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0)
                && !name.ends_with(".log")
                && !inputs.iter().any(|(input, _)| *input == name);
            is_result.then_some(name)
        });
        let files = files.collect();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), stdout: output.stdout, stderr, files, harness }
    }

    /// The config that a trace contains, as text without its random id.
    pub(crate) fn config(&self, trace: &str) -> String {
        let path = self.harness.path(trace);
        let output = Command::new(esatto_bin()).args(["info", "--json"]).arg(path).output().expect("it runs");
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = info["config_text"].as_str().expect("a config").to_owned();
        text.lines().filter(|line| !line.starts_with("trace_uuid")).collect::<Vec<_>>().join("\n")
    }

    fn stable(&self) -> Vec<&'static str> {
        STABLE.into_iter().filter(|text| self.stderr.contains(text)).collect()
    }
}

/// Runs our command alone, with our service.
pub(crate) fn run_ours(row: Row) -> Ran {
    run(row, Implementation::Ours, Implementation::Ours, false)
}

/// Runs the row with each service, and compares our command with theirs. Passes our run and theirs
/// to `check`.
pub(crate) fn compare(row: Row, check: impl Fn(&Ran, &Ran)) {
    esatto_tests::skip(|| {
        Peer::Official.require()?;
        let services = [Implementation::Ours, Implementation::Theirs];
        for service in services.into_iter().take(if row.without_service { 1 } else { 2 }) {
            let theirs = run(row, service, Implementation::Theirs, false);
            let odd = run(row, service, Implementation::Ours, true);
            let ours = run(row, service, Implementation::Ours, false);
            let what =
                format!("{:?}, the service is {service}\ntheirs: {}\nours: {}", row.args, theirs.stderr, odd.stderr);
            assert_eq!(odd.code, theirs.code, "{what}");
            assert_eq!(ours.files, theirs.files, "{what}");
            assert_eq!(ours.stable(), theirs.stable(), "{what}");
            check(&ours, &theirs);
        }
        Ok(())
    });
}

fn run(row: Row, service: Implementation, client: Implementation, with_oddities: bool) -> Ran {
    let harness = Harness::with_perfetto(client);
    for (name, content) in row.files {
        harness.write(name, content);
    }
    let _service = (!row.without_service).then(|| harness.service(service));
    let mut command = harness.perfetto(row.args);
    if with_oddities {
        command.env(ODDITIES, "1");
    }
    let output = output_of(&mut command, row.stdin);
    Ran::of(output, harness, row.files)
}

/// Runs a command to its end with this text on stdin.
pub(crate) fn output_of(command: &mut Command, stdin: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // A command that does not read it is fine.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    let pid = Pid::from_raw(child.id() as i32).expect("a process");
    let (ended, wait) = std::sync::mpsc::channel();
    let watch = std::thread::spawn(move || {
        if wait.recv_timeout(PATIENCE).is_err() {
            // The status tells.
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("it ends");
    let _ = ended.send(());
    watch.join().expect("no panic");
    output
}

/// A test of this name, whose row has the same exit code with both commands. A line
/// `without_service;` before them is for commands that fail before they need one.
macro_rules! same {
    (without_service; $($rows:tt)*) => { crate::rows::same!(true; $($rows)*); };
    ($without:literal; $($name:ident: $args:expr => $code:expr;)*) => {
        $(#[test]
        fn $name() {
            let row = crate::rows::Row {
                args: &$args,
                files: FILES,
                without_service: $without,
                ..Default::default()
            };
            crate::rows::compare(row, |ours, _| assert_eq!(ours.code, Some($code), "{}", ours.stderr));
        })*
    };
    ($($rows:tt)*) => { crate::rows::same!(false; $($rows)*); };
}
pub(crate) use same;
