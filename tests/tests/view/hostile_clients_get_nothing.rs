//! Programs of this user that send what they want to `esatto view`. None gets a byte of the trace,
//! and none keeps the user's page from working.

use esatto_tests::{Harness, Program, Signal, Skip, esatto_bin, skip, wait_until};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;

const SECRET: &str = "the bytes of the trace";

/// A running `esatto view`, with a made-up copy of the UI.
struct View {
    harness: Harness,
    program: Program,
    address: SocketAddr,
    /// With both slashes.
    path: String,
}

impl View {
    fn start() -> Self {
        let harness = Harness::new();
        std::fs::create_dir_all(harness.path("ui/v1.0-abc")).expect("a folder");
        harness.write("ui/index.html", "<html><head></head></html>");
        harness.write("ui/v1.0-abc/frontend_bundle.js", "program");
        harness.write("outside", SECRET);
        symlink(harness.path("outside"), harness.path("ui/link")).expect("a link");
        symlink(harness.path(""), harness.path("ui/folder")).expect("a link");
        harness.write("t.pftrace", SECRET);
        let mut command = harness.command(esatto_bin());
        let program = harness.start("view", command.args(["view", "--no-open", "--ui", "ui", "t.pftrace"]));
        let url = wait_until("the address", || {
            let log = program.log();
            log.lines()
                .find_map(|line| line.strip_prefix("http://").map(str::to_owned))
                .filter(|url| url.ends_with('/'))
        });
        let (address, path) = url.split_once('/').expect("a path");
        Self { address: address.parse().expect("an address"), path: format!("/{path}"), harness, program }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(esatto_tests::DEADLINE)).expect("a time");
        stream
    }

    /// Sends bytes, and returns all that comes until the end.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may refuse before it has read all.
        let _ = stream.write_all(bytes);
        let mut came = Vec::new();
        let _ = stream.read_to_end(&mut came);
        String::from_utf8_lossy(&came).into_owned()
    }

    fn get(&self, path: &str, headers: &str) -> String {
        self.send(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes())
    }

    fn host(&self) -> String {
        format!("Host: {}\r\n", self.address)
    }

    fn trace(&self) -> String {
        format!("{}trace/t.pftrace", self.path)
    }

    /// The user's own page still gets the trace.
    fn assert_works(&self) {
        let answer = self.get(&self.trace(), &self.host());
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(SECRET), "{answer}");
    }

    fn end(mut self) {
        self.assert_works();
        self.program.signal(Signal::INT);
        self.program.wait_ok();
    }
}

fn status(answer: &str) -> &str {
    answer.strip_prefix("HTTP/1.1 ").and_then(|line| line.split(' ').next()).unwrap_or(answer)
}

#[test]
fn without_the_token_or_with_another_host_or_origin() {
    let view = View::start();
    let host = view.host();
    let wrong = format!("/{}/trace/t.pftrace", "0".repeat(32));
    for path in ["/", "/trace/t.pftrace", "//", "/index.html", "/service_worker.js", &wrong] {
        let answer = view.get(path, &host);
        assert_eq!(status(&answer), "404", "{path}");
    }
    let ours = view.address;
    for headers in [
        String::new(),
        "Host: evil.example\r\n".to_owned(),
        format!("Host: localhost:{}\r\n", ours.port()),
        format!("{host}Host: evil.example\r\n"),
        format!("{host}Origin: https://evil.example\r\n"),
        format!("{host}Origin: null\r\n"),
        format!("{host}Sec-Fetch-Site: cross-site\r\n"),
    ] {
        let answer = view.get(&view.trace(), &headers);
        assert!(["400", "403"].contains(&status(&answer)) && !answer.contains(SECRET), "{headers}: {answer}");
    }
    let answer = view.send(format!("POST {} HTTP/1.1\r\nConnection: close\r\n{host}\r\n", view.trace()).as_bytes());
    assert_eq!(status(&answer), "405");
    view.end();
}

#[test]
fn by_paths_that_lead_out_of_the_folder() {
    let view = View::start();
    for path in [
        "../outside",
        "..%2foutside",
        "%2e%2e/outside",
        "v1.0-abc/../../outside",
        "./index.html",
        "link",
        "folder/outside",
        "trace/../../outside",
        "trace/",
        "//etc/passwd",
        "\\..\\outside",
        "index.html/",
        "v1.0-abc",
    ] {
        let answer = view.get(&format!("{}{path}", view.path), &view.host());
        assert_eq!(status(&answer), "404", "{path}: {answer}");
    }
    let answer = view.get(&format!("{}v1.0-abc/frontend_bundle.js", view.path), &view.host());
    assert!(status(&answer) == "200" && answer.ends_with("program"), "{answer}");
    view.end();
}

#[test]
fn by_requests_that_are_none_or_have_no_end() {
    let view = View::start();
    let head = format!("GET {} HTTP/1.1\r\n{}", view.trace(), view.host());
    for (request, wanted) in [
        ("\0\0\0\0".to_owned(), "400"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), "400"),
        (format!("{head}Content-Length: 5\r\n\r\nhello"), "413"),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "413"),
        (format!("{head}A: {}\r\n\r\n", "a".repeat(1 << 20)), "431"),
        (format!("{head}{}\r\n", "A: b\r\n".repeat(1000)), "431"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20)), "431"),
    ] {
        let answer = view.send(request.as_bytes());
        // A client that still sends may lose the answer, but gets nothing else.
        assert!(answer.is_empty() || status(&answer) == wanted, "{wanted}: {answer}");
    }
    view.end();
}

#[test]
fn by_many_connections_that_say_little() {
    let view = View::start();
    let threads = || std::fs::read_dir(format!("/proc/{}/task", view.program.pid())).expect("it runs").count();
    let mut held = Vec::new();
    for round in 0..300 {
        let mut stream = view.connect();
        // Some say nothing, some a part.
        if round % 2 == 0 {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
        }
        held.push(stream);
        if round % 50 == 0 {
            view.assert_works();
        }
    }
    view.assert_works();
    assert!(threads() <= 200, "{} threads", threads());
    assert!(view.program.descriptors() <= 400, "{} descriptors", view.program.descriptors());
    drop(held);
    view.end();
}

#[test]
fn the_answer_forbids_other_places_to_the_page() {
    let view = View::start();
    for path in ["", "v1.0-abc/frontend_bundle.js", "esatto/page.js", "trace/t.pftrace"] {
        let answer = view.get(&format!("{}{path}", view.path), &view.host());
        let policy = answer.lines().find_map(|line| line.strip_prefix("content-security-policy: "));
        let policy = policy.unwrap_or_else(|| panic!("{path}: {answer}"));
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("http"), "{path}: {policy}");
        for header in ["cache-control: no-store", "x-content-type-options: nosniff", "referrer-policy: no-referrer"] {
            assert!(answer.contains(header), "{path}: {answer}");
        }
        assert!(!answer.contains("access-control-allow-origin"), "{answer}");
    }
    view.end();
}

#[test]
fn programs_of_other_users_are_refused() {
    skip(|| {
        if !rustix::process::geteuid().is_root() {
            return Err(Skip("it takes root to be several users".into()));
        }
        of_other_users();
        Ok(())
    });
}

fn of_other_users() {
    let view = View::start();
    std::fs::set_permissions(view.harness.folder(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let (ip, port) = (view.address.ip(), view.address.port());
    let script = format!(
        "exec 3<>/dev/tcp/{ip}/{port}; printf 'GET {} HTTP/1.1\\r\\nHost: {}\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3",
        view.trace(),
        view.address
    );
    let run = |user: &str| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", user, "--regid", user, "--clear-groups", "bash", "-c", &script]);
        String::from_utf8_lossy(&command.output().expect("setpriv").stdout).into_owned()
    };
    assert!(run("0").ends_with(SECRET), "the same request of our own user is answered");
    assert_eq!(run("65534"), "");
    view.end();
}
