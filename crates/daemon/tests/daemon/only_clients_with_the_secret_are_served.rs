//! A shared secret on TCP sockets: relays prove it, and nobody else gets a port.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use esatto_daemon::{Options, Relay, RelayEndpoints, RelayHandle, RelayOptions, SharedSecret};
use esatto_ipc::frame::encode;
use esatto_ipc::peer::machine_id;
use esatto_ipc::{Address, BlockingClient, Error as IpcError, FrameBody, FrameDecoder};
use esatto_schema::{TraceConfig, TracePacketReader};

use crate::harness::{DEADLINE, Folder, Harness, Producer, barrier, config, enable, packet, read, tcp_address};

const HINT: &[u8] = b"another machine";

fn secret(byte: u8) -> SharedSecret {
    SharedSecret::new(&[byte; 32]).unwrap()
}

/// Starts a service on a TCP socket, with a secret or without.
fn service(secret: Option<SharedSecret>) -> (Harness, Address) {
    let address = tcp_address();
    let harness = Harness::start_with(|options: &mut Options| {
        options.producers.push(address.clone());
        options.relay_endpoints = RelayEndpoints::On(vec![address.clone()]);
        options.secret = secret;
    });
    (harness, address)
}

fn relay(folder: &Folder, service: Address, secret: Option<SharedSecret>) -> (RelayHandle, Address) {
    let guest = Address::Path(folder.path("guest"));
    let mut options = RelayOptions::new(guest.clone(), service);
    options.machine_id_hint = HINT.to_vec();
    options.secret = secret;
    (Relay::bind(options).unwrap().spawn_thread().unwrap(), guest)
}

/// Waits until the relay closes the connection of a producer.
fn assert_turned_away(guest: &Address) {
    let mut stream = UnixStream::connect(guest.as_path().unwrap()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let _ = stream.write_all(&[0; 4]);
    assert_ended(stream.read(&mut [0]));
}

fn assert_ended(read: std::io::Result<usize>) {
    match read {
        Ok(0) => {}
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
}

/// Waits until the service has refused so many connections.
fn await_refused(harness: &Harness, count: u64) {
    let begin = Instant::now();
    while harness.daemon.stats().connections_refused < count {
        assert!(begin.elapsed() < DEADLINE, "{:?}", harness.daemon.stats());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_relay_with_the_secret_works_as_without_one() {
    let (harness, address) = service(Some(secret(1)));
    let (_relay, guest) = relay(&harness.folder, address, Some(secret(1)));
    let mut consumer = harness.consumer();
    let wish = TraceConfig { trace_all_machines: Some(true), ..config() };
    consumer.send("EnableTracing", &enable(wish), None).unwrap();
    barrier(&mut consumer);
    let mut producer = Producer::connect(&guest);
    producer.await_start();
    producer.commit(&packet(5));
    // The clocks come by the relay's own connection.
    let (mut found, mut has_clocks) = (None, false);
    let begin = Instant::now();
    while found.is_none() || !has_clocks {
        assert!(begin.elapsed() < DEADLINE, "packet: {found:?}, clocks: {has_clocks}");
        for packet in read(&mut consumer) {
            let packet = TracePacketReader::new(&packet);
            has_clocks |= packet.remote_clock_sync().is_some();
            if packet.for_testing().is_some() {
                found = Some((packet.machine_id(), packet.trusted_pid()));
            }
        }
    }
    let pid = std::process::id() as i32;
    assert_eq!(found, Some((Some(machine_id(HINT)), Some(pid))), "the identity is told after the proof");
    assert_eq!(harness.daemon.stats().connections_refused, 0);
}

#[test]
fn other_relays_are_refused() {
    for other in [Some(secret(2)), None] {
        let (harness, address) = service(Some(secret(1)));
        let (_relay, guest) = relay(&harness.folder, address, other);
        // The relay's own connection.
        await_refused(&harness, 1);
        assert_turned_away_with_a_bind(&guest);
        await_refused(&harness, 2);
        // Programs of the service's own machine are not affected.
        harness.producer();
    }
}

/// As a producer begins: it asks for its port.
fn assert_turned_away_with_a_bind(guest: &Address) {
    match BlockingClient::connect(guest, "ProducerPort", DEADLINE) {
        Err(IpcError::NoSuchService(_) | IpcError::Disconnected) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_relay_with_a_secret_refuses_services_without_it() {
    for other in [Some(secret(2)), None] {
        let (harness, address) = service(other);
        let (_relay, guest) = relay(&harness.folder, address, Some(secret(1)));
        assert_turned_away(&guest);
        assert_turned_away_with_a_bind(&guest);
    }
}

/// A service that could read what a producer sends: the relay sends nothing before the proof.
#[test]
fn a_service_that_proves_nothing_gets_no_bytes_of_producers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string().parse().unwrap();
    let folder = Folder::create();
    let (_relay, guest) = relay(&folder, address, Some(secret(1)));
    let _control = listener.accept().unwrap();
    let mut producer = UnixStream::connect(guest.as_path().unwrap()).unwrap();
    producer.write_all(b"a secret event").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut decoder = FrameDecoder::new();
    let mut bytes = [0; 1024];
    let len = stream.read(&mut bytes).unwrap();
    decoder.push(&bytes[..len]);
    let frame = decoder.next_frame().unwrap().unwrap();
    assert!(matches!(frame.body, FrameBody::BindService { service_name: b"EsattoSecretPort" }), "{frame:?}");
    let mut reply = Vec::new();
    encode::bind_service_failed(&mut reply, frame.request_id).unwrap();
    assert_eq!(decoder.buffered(), 0, "no identity, no bytes");
    stream.write_all(&reply).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn a_client_without_the_secret_gets_no_port_of_any_kind() {
    let address = tcp_address();
    let consumer = tcp_address();
    let folder = Folder::create();
    let mut options = Options::new(address.clone(), consumer.clone());
    options.relay_endpoints = RelayEndpoints::All;
    options.secret = Some(secret(1));
    let daemon = esatto_daemon::Daemon::bind(options).unwrap().spawn_thread().unwrap();
    for (address, port) in [(&address, "ProducerPort"), (&address, "RelayPort"), (&consumer, "ConsumerPort")] {
        let refused = BlockingClient::connect(address, port, DEADLINE);
        assert!(matches!(refused, Err(IpcError::NoSuchService(_))), "{port}: {refused:?}");
    }
    // Calls without a bind, of every service that the socket could have.
    for service in 1..4 {
        let mut stream = TcpStream::connect(address.to_string()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut call = Vec::new();
        encode::invoke_method(&mut call, 1, service, 1, &[], false).unwrap();
        stream.write_all(&call).unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        // success = false, written explicitly: the method was not called.
        assert!(reply.ends_with(&[0x10, 1, 0x32, 2, 8, 0]), "{reply:?}");
    }
    assert_eq!(daemon.stats().connections_refused, 6);
    drop(folder);
}

#[test]
fn a_flood_of_strangers_does_not_keep_relays_out() {
    let (harness, address) = service(Some(secret(1)));
    // More than the service keeps without a proof.
    let strangers: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address.to_string()).unwrap()).collect();
    await_refused(&harness, 300 - 256);
    let (_relay, guest) = relay(&harness.folder, address.clone(), Some(secret(1)));
    let mut producer = Producer::connect(&guest);
    harness.consumer();
    assert!(producer.emulated);
    drop(strangers);
    // One that sends too much is closed at once, although it sends no whole frame.
    let before = harness.daemon.stats().connections_refused;
    let mut loud = TcpStream::connect(address.to_string()).unwrap();
    loud.write_all(&100_000_u32.to_le_bytes()).unwrap();
    let _ = loud.write_all(&[0; 50_000]);
    await_refused(&harness, before + 1);
    // And one that only waits, after its time.
    let mut silent = TcpStream::connect(address.to_string()).unwrap();
    silent.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_ended(silent.read(&mut [0]));
    await_refused(&harness, before + 2);
    // A relay that has proved the secret is not affected by the time.
    producer.client.call("Sync", &[], Some(DEADLINE)).unwrap();
}

/// Connects to a service on 127.0.0.1 from another address of this machine.
fn connect_from(from: [u8; 4], service: &Address) -> TcpStream {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((from, 0))).unwrap();
    rustix::net::connect(&socket, &service.to_string().parse::<SocketAddr>().unwrap()).unwrap();
    socket.into()
}

#[test]
fn strangers_cannot_end_the_proof_of_a_relay() {
    let (harness, address) = service(Some(secret(1)));
    // A relay with a slow network: it has connected, and then the strangers come.
    let mut slow = TcpStream::connect(address.to_string()).unwrap();
    slow.set_read_timeout(Some(DEADLINE)).unwrap();
    let _strangers: Vec<TcpStream> = (0..300).map(|_| connect_from([127, 0, 0, 2], &address)).collect();
    await_refused(&harness, 300 + 1 - 256);
    let mut bind = Vec::new();
    encode::bind_service(&mut bind, 1, "EsattoSecretPort").unwrap();
    slow.write_all(&bind).unwrap();
    assert!(slow.read(&mut [0; 64]).unwrap() > 0, "it is still connected");
}
