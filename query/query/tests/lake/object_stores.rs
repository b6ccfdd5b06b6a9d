//! Lakes in an object store: the same rows, and no half trace if an export is killed.

use std::process::{Output, Stdio};

use crate::s3_server::{KEY, Server};
use crate::{TRACE, command, csv, export, folder, stderr, trace};

const PLACE: &str = "s3://bucket/some/lake";

fn on(server: &Server, key: &str, args: &[&str]) -> std::process::Command {
    let mut command = command(args);
    command
        .env("AWS_ENDPOINT", &server.endpoint)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", key)
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-1")
        // A proxy of this machine has no way to the test.
        .env("NO_PROXY", "127.0.0.1");
    command
}

fn ok(server: &Server, args: &[&str]) -> String {
    let output: Output = on(server, KEY, args).output().expect("the program runs");
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{args:?}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

fn traces() -> [String; 3] {
    [trace(TRACE), trace("official-v56-deflate.pftrace"), trace("official-v56-process-and-sys-stats.pftrace")]
}

const SQL: &str = "select s.trace_file, t.name, count(*) as n, sum(s.dur) as total from slice s
    join thread_track t on s.track_id = t.id group by 1, 2 order by 1, 2";

#[test]
fn a_lake_in_an_object_store_is_as_one_in_a_folder() {
    let server = Server::start();
    let [a, b, c] = &traces();
    let args = ["export", a, b, c, "--to", PLACE, "--partition", "date,host", "--attribute", "host=a/b", "--jobs", "1"];
    let text = ok(&server, &args);
    assert!(text.starts_with("3 traces exported"), "{text}");
    assert!(server.names().iter().all(|name| name.starts_with("some/lake/")), "{:?}", server.names());
    let lake = folder("store").join("lake");
    export(&[a, b, c], &lake, &["--jobs", "1"]);
    let place = lake.to_string_lossy();
    let of_folder = csv(&[&place], SQL);
    let of_store = ok(&server, &[PLACE, SQL, "--format", "csv"]);
    assert_eq!(of_store.split_once('\n').map(|(_, rows)| rows), Some(&*of_folder));
    assert_eq!(
        ok(&server, &[PLACE, "select count(*) n from slice where trace_host = 'a/b'", "--format", "csv"]),
        "n\n6505\n"
    );
    assert!(ok(&server, &["lake", "check", PLACE]).ends_with(": sound\n"));
    assert_eq!(ok(&server, &["export", a, b, c, "--to", PLACE]), "no new trace; 3 traces in the lake already\n");
    // A lost object is found, and repaired.
    let slices = server.names().into_iter().find(|name| name.starts_with("some/lake/slice/")).expect("slices");
    server.remove(&slices);
    let output = on(&server, KEY, &["lake", "check", PLACE]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("is missing"), "{output:?}");
    let text = ok(&server, &["lake", "check", PLACE, "--repair"]);
    assert!(text.contains("repaired: "), "{text}");
    ok(&server, &["export", a, b, c, "--to", PLACE]);
    assert!(ok(&server, &["lake", "check", PLACE]).ends_with(": sound\n"));
}

#[test]
fn a_killed_export_leaves_whole_traces_and_is_completed() {
    let server = Server::start();
    let traces = traces();
    let [a, b, c] = &traces;
    let args = ["export", a, b, c, "--to", PLACE, "--jobs", "1"];
    ok(&server, &args);
    let whole = server.writes();
    let rows = ok(&server, &[PLACE, SQL, "--format", "csv"]);
    let names = server.names();
    assert!(whole > 60, "{whole} writes");
    let mut kills = 0;
    for at in (0..whole).step_by(8) {
        let server = Server::start();
        server.hang_at(Some(at));
        let mut child = on(&server, KEY, &args).stdout(Stdio::null()).spawn().expect("the program runs");
        server.wait_until_it_hangs();
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        server.hang_at(None);
        kills += 1;
        if server.names().iter().any(|name| name.ends_with("/lake.json")) {
            let sql = "select trace_file, count(*) as n from slice group by 1 order by 1";
            let seen = ok(&server, &[PLACE, sql, "--format", "csv"]);
            for line in seen.lines().skip(1) {
                assert!([",1503", ",5002"].iter().any(|count| line.ends_with(count)), "after {at} writes: {line}");
            }
        }
        ok(&server, &args);
        let text = ok(&server, &["lake", "check", PLACE]);
        assert!(text.ends_with(": sound\n"), "after {at} writes: {text}");
        assert_eq!(server.names(), names, "after {at} writes");
        assert_eq!(ok(&server, &[PLACE, SQL, "--format", "csv"]), rows, "after {at} writes");
    }
    assert!(kills >= 8, "{kills}");
}

#[test]
fn single_traces_are_read_from_an_object_store() {
    let server = Server::start();
    let [a, ..] = &traces();
    server.add("in/a.pftrace", std::fs::read(a).expect("a trace can be read"));
    let url = "s3://bucket/in/a.pftrace";
    let sql = "select count(*) as n from slice";
    assert_eq!(ok(&server, &[url, sql, "--format", "csv"]), "n\n1503\n");
    let sql = "select distinct trace_file from slice";
    assert_eq!(ok(&server, &[url, sql, "--trace-columns", "--format", "csv"]), format!("trace_file\n{url}\n"));
    assert!(ok(&server, &["export", url, "--to", PLACE]).starts_with("1 trace exported"));
    assert!(ok(&server, &["export", a, "--to", PLACE]).starts_with("no new trace"));
    // As one of several it is reported and left out if it is missing.
    let missing = "s3://bucket/in/b.pftrace";
    let output = on(&server, KEY, &[url, missing, "select count(*) as n from slice", "--format", "csv"]).output();
    let output = output.expect("the program runs");
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"n\n1503\n"[..]));
    assert!(stderr(&output).contains("s3://bucket/in/b.pftrace: cannot read"), "{}", stderr(&output));
    // A file that is larger than the memory for traces is refused.
    server.add("in/large.pftrace", vec![0; 2 << 20]);
    let args = ["s3://bucket/in/large.pftrace", "select 1 from slice", "--memory-limit", "2M", "--format", "csv"];
    let output = on(&server, KEY, &args).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("more than the 1 MiB that a trace may have"), "{}", stderr(&output));
}

#[test]
fn single_traces_are_read_from_a_server_of_http() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let [a, ..] = &traces();
    let bytes = std::fs::read(a).expect("a trace can be read");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}/traces/a%20b.pftrace", listener.local_addr().expect("it has an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().expect("a socket can be shared")).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            let _headers = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            let (status, body) = match first.as_str() {
                "GET /traces/a%20b.pftrace HTTP/1.1" => ("200 OK", &bytes[..]),
                _ => ("404 Not Found", &b""[..]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nlast-modified: Sat, 28 Nov 2026 00:00:00 GMT\r\n\
                 connection: close\r\n\r\n",
                body.len()
            );
            let _the_client_may_be_gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    let server = Server::start();
    let sql = "select count(*) as n from slice";
    assert_eq!(ok(&server, &[&url, sql, "--format", "csv"]), "n\n1503\n");
    let missing = url.replace("a%20b", "none");
    let output = on(&server, KEY, &[&missing, sql]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("none.pftrace: cannot read"), "{}", stderr(&output));
}

#[test]
fn wrong_credentials_are_told() {
    let server = Server::start();
    let [a, ..] = &traces();
    for args in [&["export", a, "--to", PLACE][..], &["lake", "check", PLACE], &[PLACE, "select 1"]] {
        let output = on(&server, "AKWRONG", args).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let message = stderr(&output);
        assert!(message.starts_with("esatto-query: cannot read s3://bucket/some/lake/lake.json: "), "{message}");
        assert!(message.contains("InvalidAccessKeyId"), "{message}");
        assert!(message.contains("; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(server.names().is_empty());
}

#[test]
fn a_store_that_cannot_be_reached_is_told() {
    // A port that was free a moment ago.
    let mut server = Server::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    server.endpoint = format!("http://{}", listener.local_addr().expect("it has an address"));
    drop(listener);
    let [a, ..] = &traces();
    let output = on(&server, KEY, &["export", a, "--to", PLACE]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.starts_with("esatto-query: cannot read s3://bucket/some/lake/lake.json: "), "{message}");
    assert!(message.contains("; see if the server can be reached (AWS_ENDPOINT names it)"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_server_of_http_is_no_place_for_a_lake() {
    let output = crate::run(&["export", &trace(TRACE), "--to", "http://127.0.0.1:1/lake"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("use a folder or s3:"), "{}", stderr(&output));
}
