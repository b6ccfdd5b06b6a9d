//! No service runs, and another user listens where programs look for it by default, in `/tmp`.
//! Programs send nothing there, and report the refusal to their user. A service of root or of the
//! program's own user is accepted there. One of the folder's owner is accepted if no other user can
//! write to the folder. If the socket was named, any user is accepted.
//!
//! The tests run in a new mount namespace, where `/tmp` and `/run` are empty.

use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use esatto::{Backend, ErrorKind, Session, Tracing};
use esatto_tests::{Skip, wait_until};

use crate::strangers::{self, STRANGER};

/// Environment variable of the program: the case that it meets.
const ROLE: &str = "ESATTO_SERVICE_IN_TMP";

const PRODUCER: &str = "/tmp/perfetto-producer";
const CONSUMER: &str = "/tmp/perfetto-consumer";

#[test]
fn by_programs_that_were_not_told_an_address() {
    match std::env::var(ROLE).as_deref() {
        Err(_) => esatto_tests::skip(|| {
            run("a stranger", &[])?;
            run("its user", &[])?;
            run("the owner of the folder", &[])?;
            run("a stranger that was named", &[(PRODUCER, "PRODUCER"), (CONSUMER, "CONSUMER")])
        }),
        Ok("a stranger") => refuses(),
        Ok("its user") => accepts(|path| UnixListener::bind(path).expect("a socket")),
        Ok("the owner of the folder") => {
            std::os::unix::fs::chown("/tmp", Some(STRANGER), None).expect("ours");
            set_mode(0o755);
            accepts(strangers::listen);
        }
        Ok(_) => accepts(strangers::listen),
    }
}

fn set_mode(mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions("/tmp", std::fs::Permissions::from_mode(mode)).expect("ours");
}

/// Runs this test again, as a program.
fn run(role: &str, named: &[(&str, &str)]) -> Result<(), Skip> {
    let name = "strange_services_in_tmp_are_refused::by_programs_that_were_not_told_an_address";
    let empty = "mount -t tmpfs -o mode=1777 none /tmp && mount -t tmpfs none /run || exit 77; exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", empty, "sh"])
        .arg(std::env::current_exe().expect("the test knows its own path"));
    command.args(["--exact", name, "--nocapture"]).env(ROLE, role);
    for variable in ["PRODUCER", "CONSUMER"] {
        command.env_remove(format!("PERFETTO_{variable}_SOCK_NAME"));
    }
    for (socket, variable) in named {
        command.env(format!("PERFETTO_{variable}_SOCK_NAME"), socket);
    }
    let output = command.output().expect("unshare (util-linux)");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) || stderr.contains("unshare failed") {
        return Err(Skip(format!("no mount namespaces: {}", stderr.trim())));
    }
    assert!(output.status.success() && stdout.contains("1 passed"), "{role}: {}\n{stdout}\n{stderr}", output.status);
    Ok(())
}

fn refuses() {
    let (producers, consumers) = (strangers::listen(Path::new(PRODUCER)), strangers::listen(Path::new(CONSUMER)));
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let said = |line: &str| SAID.lock().unwrap().push(line.to_owned());
    let _tracing = Tracing::builder().system().notices(said).start().expect("the control thread starts");
    assert_eq!(all_it_says(&producers), b"");
    let line = wait_until("a line", || SAID.lock().unwrap().first().cloned());
    let why = format!(
        "refused {PRODUCER}: uid {STRANGER} listens there, and any user may; run the service as root or as the user of this process, \
         let it listen in /run/perfetto, or name its socket in PERFETTO_PRODUCER_SOCK_NAME to trust it"
    );
    assert_eq!(line, format!("not recorded by the system's tracing service: {why}"));

    let error = Session::start(Backend::System, esatto::track_events(64)).expect_err("it is refused");
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Denied, why.replace("producer", "consumer").replace("PRODUCER", "CONSUMER"))
    );
    assert_eq!(all_it_says(&consumers), b"");

    let command = Command::new(esatto_tests::esatto_bin()).args(["record", "-o", "/tmp/trace"]).output();
    let command = command.expect("our command starts");
    let said = String::from_utf8_lossy(&command.stderr);
    assert!(!command.status.success() && said.contains(&format!("refused {CONSUMER}: uid {STRANGER}")), "{said}");
    assert_eq!(all_it_says(&consumers), b"");

    // It tries again, and says nothing again. As soon as root listens there, it is recorded.
    drop(producers);
    std::fs::remove_file(PRODUCER).expect("is there");
    let producers = UnixListener::bind(PRODUCER).expect("a socket");
    speaks(&producers);
    assert_eq!(SAID.lock().unwrap().len(), 1);
}

fn accepts(listen: impl Fn(&Path) -> UnixListener) {
    let (producers, consumers) = (listen(Path::new(PRODUCER)), listen(Path::new(CONSUMER)));
    let _tracing = Tracing::builder().system().start().expect("the control thread starts");
    speaks(&producers);
    let _session = Session::open(Backend::System).expect("opens");
    speaks(&consumers);
}

/// Reads everything that the next client sends before it disconnects.
fn all_it_says(listener: &UnixListener) -> Vec<u8> {
    let mut said = Vec::new();
    accept(listener).read_to_end(&mut said).expect("it says something, or goes");
    said
}

/// The next client says something.
fn speaks(listener: &UnixListener) {
    accept(listener).read_exact(&mut [0; 4]).expect("it speaks first");
}

fn accept(listener: &UnixListener) -> UnixStream {
    let (stream, _) = listener.accept().expect("a client");
    stream.set_read_timeout(Some(esatto_tests::DEADLINE)).expect("can be set");
    stream
}
