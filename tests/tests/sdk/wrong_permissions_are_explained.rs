//! A socket that is not for this user: one line that names the path, the owner and the remedy. A
//! session fails with it; a producer, which keeps trying, prints it once.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use esatto::{Backend, ErrorKind, Session, Tracing};
use esatto_tests::DEADLINE;
use esatto_tests::sdk::{Recorder, Scenario};

esatto_tests::scenario!([ours, theirs] Scenario::new(record));

/// In the environment of the process that is not allowed to.
const ROLE: &str = "ESATTO_SDK_ROLE";
const NOBODY: &str = "65534";

fn record(recorder: &Recorder) {
    match std::env::var(ROLE).as_deref() {
        Err(_) => run_as_nobody(recorder),
        Ok("listener") => with_a_listener(recorder),
        Ok(_) => without_a_listener(recorder),
    }
}

fn run_as_nobody(recorder: &Recorder) {
    let set = |path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
    set(recorder.harness().folder().to_owned(), 0o777);
    set(recorder.path("started"), 0o666);
    set(recorder.harness().producer_socket(), 0o600);
    set(recorder.harness().consumer_socket(), 0o660);
    for role in ["listener", "stderr"] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]);
        // As under `esatto record`: the start does not wait for a service that refuses it.
        command.env("ESATTO_WAIT_MS", "3000").env("ESATTO_WAIT_FOR", "service");
        let output = command.args(std::env::args_os()).env(ROLE, role).output().expect("setpriv (util-linux)");
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
        assert!(!stderr.contains("did not answer this program"), "{stderr}");
        let said = stderr.lines().filter(|line| line.contains("permission denied")).collect::<Vec<_>>();
        if role == "listener" {
            assert!(said.is_empty(), "{said:?}");
        } else {
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("esatto: not recorded by the system's tracing service: "), "{said:?}");
        }
    }
}

fn with_a_listener(recorder: &Recorder) {
    let (said, heard) = mpsc::channel();
    let builder = Tracing::builder().system().notices(move |line| said.send(line.to_owned()).expect("heard"));
    let _tracing = builder.start().expect("starts");
    let socket = recorder.harness().producer_socket();
    assert_eq!(
        heard.recv_timeout(DEADLINE).expect("a line"),
        format!(
            "not recorded by the system's tracing service: permission denied for {}: it belongs to root:root with mode 0600, and this process \
             is nobody (uid {NOBODY}); start the service with `--set-socket-permissions` for a group of nobody, or run as root, or name \
             another socket in PERFETTO_PRODUCER_SOCK_NAME",
            socket.display()
        )
    );

    let error = Session::start(Backend::System, esatto::track_events(64)).expect_err("it is not for us");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(
        error.to_string(),
        format!(
            "permission denied for {}: it belongs to root:root with mode 0660, and this process is nobody (uid {NOBODY}); start the \
             service with `--set-socket-permissions` for a group of nobody, or run as root, or name another socket in \
             PERFETTO_CONSUMER_SOCK_NAME",
            recorder.harness().consumer_socket().display()
        )
    );
    let nowhere = Session::open(Backend::Socket(recorder.path("nowhere").display().to_string())).expect("opens");
    let error = nowhere.capabilities().wait().expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::Disconnected);
    assert!(error.to_string().contains("is a tracing service running?"), "{error}");
}

fn without_a_listener(recorder: &Recorder) {
    let _tracing = Tracing::builder().system().start().expect("starts");
    // Longer than until it tries again, which a change in the folder makes soon.
    for change in ["one", "two", "three"] {
        recorder.save(change, "");
        std::thread::sleep(Duration::from_millis(200));
    }
}
