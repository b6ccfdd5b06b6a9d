//! Sockets that offer the relay port, and a captured conversation with a real relay.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use esatto_daemon::{Daemon, Error, Options, RelayEndpoints};
use esatto_ipc::{Address, BlockingClient, Error as IpcError, FrameDecoder};
use esatto_schema::{TraceConfig, TracePacketReader};

use crate::harness::{DEADLINE, Harness, config, enable, read, tcp_address};

/// The machine in the captured conversation.
const GUEST: u32 = 1_011_363_979;

fn offers_relay_port(address: &Address) -> bool {
    match BlockingClient::connect(address, "RelayPort", DEADLINE) {
        Ok(client) => client.has_method("InitRelay") && client.has_method("SyncClock"),
        Err(IpcError::NoSuchService(_)) => false,
        Err(e) => panic!("{address}: {e}"),
    }
}

#[test]
fn on_no_socket_on_all_or_on_some() {
    for (wish, expected) in [
        (RelayEndpoints::Off, [false, false]),
        (RelayEndpoints::All, [true, true]),
        (RelayEndpoints::On(vec![tcp_address()]), [false, true]),
    ] {
        let tcp = match &wish {
            RelayEndpoints::On(addresses) => addresses[0].clone(),
            _ => tcp_address(),
        };
        let harness = Harness::start_with(|options| {
            options.producers.push(tcp);
            options.relay_endpoints = wish;
        });
        let offers: Vec<bool> = harness.daemon.producers().iter().map(offers_relay_port).collect();
        assert_eq!(offers, expected);
        assert!(!offers_relay_port(harness.daemon.consumer()));
    }
}

#[test]
fn an_endpoint_that_is_no_producer_socket_is_refused() {
    let address = |name: &str| Address::Abstract(format!("esatto-never-{name}").into_bytes());
    let mut options = Options::new(address("p"), address("c"));
    options.relay_endpoints = RelayEndpoints::On(vec![address("c")]);
    let refused = Daemon::bind(options).unwrap_err();
    assert!(matches!(&refused, Error::NoSuchProducerAddress(named) if *named == address("c")), "{refused}");
}

fn capture(file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures/relay").join(file)).unwrap()
}

fn frames(mut bytes: &[u8]) -> Vec<String> {
    let mut decoder = FrameDecoder::new();
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        bytes = &bytes[decoder.push(bytes)..];
        while let Some(frame) = decoder.next_frame().unwrap() {
            frames.push(format!("{frame:?}"));
        }
    }
    frames
}

#[test]
fn a_captured_relay_gets_the_captured_answers() {
    let address = tcp_address();
    let harness = Harness::start_with(|options| {
        options.producers.push(address.clone());
        options.relay_endpoints = RelayEndpoints::On(vec![address.clone()]);
    });
    let mut relay = TcpStream::connect(address.to_string()).unwrap();
    relay.set_read_timeout(Some(DEADLINE)).unwrap();
    relay.write_all(&capture("control.c2s.bin")).unwrap();
    let expected = capture("control.s2c.bin");
    let mut answers = Vec::new();
    // Compare frames, because the encodings of lengths differ.
    while frames(&answers).len() < frames(&expected).len() {
        let mut bytes = [0; 4096];
        let n = relay.read(&mut bytes).unwrap();
        assert_ne!(n, 0, "disconnected after {:?}", frames(&answers));
        answers.extend_from_slice(&bytes[..n]);
    }
    assert_eq!(frames(&answers), frames(&expected));

    let mut consumer = harness.consumer();
    let wish = TraceConfig { trace_all_machines: Some(true), ..config() };
    consumer.send("EnableTracing", &enable(wish), None).unwrap();
    let mut told = Vec::new();
    for packet in read(&mut consumer) {
        let packet = TracePacketReader::parse(&packet).unwrap();
        if packet.machine_id() == Some(GUEST) {
            let name = packet.system_info().and_then(|info| info.machine_name()).map(<[u8]>::to_vec);
            told.push((name, packet.remote_clock_sync().map(|sync| sync.synced_clocks().count())));
        }
    }
    assert_eq!(told, [(Some(b"guest1".to_vec()), None), (None, Some(2))]);
}
