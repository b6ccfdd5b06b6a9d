//! `esatto ui-bridge` without a browser: who may connect, and what the bytes do.

use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin, wait_until};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Starts a bridge at a free port.
fn start(harness: &Harness, options: &[&str]) -> (Program, u16) {
    let mut command = harness.command(esatto_bin());
    let program = harness.start("bridge", command.args(["ui-bridge", "--port", "0"]).args(options));
    let port = wait_until("the port", || {
        let log = program.log();
        log.split("ws://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()
    });
    (program, port)
}

fn connect(port: u16, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(esatto_tests::DEADLINE)).expect("a time");
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}{UPGRADE}\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    stream
}

/// Reads the head of an answer.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("an answer") == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text")
}

#[test]
fn origins_decide() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::under_test());
    let (mut bridge, port) = start(&harness, &["--allow-origin", "https://traces.example:8443"]);
    let status = |path: &str, origin: &str| {
        let answer = head(&mut connect(port, path, &format!("Origin: {origin}\r\n")));
        answer.strip_prefix("HTTP/1.1 ").and_then(|line| line.split(' ').next()).expect("a status").to_owned()
    };
    for origin in ["https://ui.perfetto.dev", "http://localhost:10000", "https://traces.example:8443"] {
        assert_eq!(status("/traced", origin), "101", "{origin}");
        assert_eq!(status("/adb", origin), "404", "adb was not asked for");
    }
    for origin in ["https://evil.example", "null", "https://traces.example", "https://ui.perfetto.dev.evil.example"] {
        assert_eq!(status("/traced", origin), "403", "{origin}");
        assert_eq!(status("/nothing", origin), "403", "{origin}");
    }
    let mut without = connect(port, "/traced", "");
    assert!(head(&mut without).starts_with("HTTP/1.1 403 "));
    bridge.signal(Signal::INT);
    bridge.wait_ok();
}

#[test]
fn the_service_answers_through_it() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::under_test());
    let (mut bridge, port) = start(&harness, &[]);
    let mut page = connect(port, "/traced", "Origin: https://ui.perfetto.dev\r\n");
    assert!(head(&mut page).contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    // A frame of the RPC protocol that binds to a service, masked with zeros.
    let bind = esatto_tests::wire::Proto::new()
        .int(2, 1)
        .message(3, &esatto_tests::wire::Proto::new().bytes(1, "ConsumerPort"));
    let mut frame = u32::try_from(bind.0.len()).expect("short").to_le_bytes().to_vec();
    frame.extend_from_slice(&bind.0);
    let mut message = vec![0x82, 0x80 | u8::try_from(frame.len()).expect("short"), 0, 0, 0, 0];
    message.extend_from_slice(&frame);
    // In two writes: a stream has no bounds.
    let (first, second) = message.split_at(9);
    page.write_all(first).expect("it is sent");
    page.write_all(second).expect("it is sent");
    let mut begin = [0; 2];
    page.read_exact(&mut begin).expect("an answer");
    assert_eq!(begin[0], 0x82, "a whole binary message");
    let mut rest = vec![0; 600];
    let read = page.read(&mut rest).expect("an answer");
    assert!(String::from_utf8_lossy(&rest[..read]).contains("EnableTracing"), "the methods of the service");
    bridge.signal(Signal::INT);
    bridge.wait_ok();
}

#[test]
fn without_a_service_the_page_learns_why() {
    let harness = Harness::new();
    let (mut bridge, port) = start(&harness, &[]);
    let mut page = connect(port, "/traced", "Origin: https://ui.perfetto.dev\r\n");
    let mut answer = String::new();
    page.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("cannot reach a tracing service at"), "{answer}");
    assert!(bridge.log().contains("A page wants to record, but cannot reach"), "{}", bridge.log());
    bridge.signal(Signal::INT);
    bridge.wait_ok();
}

#[test]
fn it_is_also_called_websocket_bridge() {
    let harness = Harness::new();
    let run = |args: &[&str]| {
        let mut command = harness.command(esatto_bin());
        let output = command.arg0("websocket_bridge").args(args).output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (code, text) = run(&["--help"]);
    assert!(code == Some(0) && text.contains("--http-additional-cors-origins"), "{text}");
    let (code, text) = run(&["--http-additional-cors-origins", "*"]);
    assert!(code == Some(1) && text.contains("'*' is not an origin"), "{text}");
}
