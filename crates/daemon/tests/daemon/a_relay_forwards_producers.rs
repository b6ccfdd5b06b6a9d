//! A relay between producers and the service of another machine, which in these tests is this one.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use esatto_daemon::{Relay, RelayEndpoints, RelayHandle, RelayOptions};
use esatto_ipc::peer::machine_id;
use esatto_ipc::service::{Kind, Method, Service};
use esatto_ipc::{Address, BlockingClient, Family, Frame, FrameBody, FrameDecoder, Host, HostEvent, Peer};

use esatto_protozero::Owned as _;
use esatto_schema::{InitializeConnectionRequest, InitializeConnectionResponse, TraceConfig, TracePacketReader};

use crate::harness::{DEADLINE, Folder, Harness, Producer, barrier, config, enable, packet, read, tcp_address};

const HINT: &[u8] = b"another machine";

/// A service with a relay endpoint, and a relay to it.
struct TwoMachines {
    relay: RelayHandle,
    guest: Address,
    harness: Harness,
}

fn relay(folder: &Folder, service: Address) -> (RelayHandle, Address) {
    let guest = Address::Path(folder.path("guest"));
    let mut options = RelayOptions::new(guest.clone(), service);
    options.machine_id_hint = HINT.to_vec();
    options.machine_name = b"guest1".to_vec();
    (Relay::bind(options).unwrap().spawn_thread().unwrap(), guest)
}

impl TwoMachines {
    fn start() -> Self {
        let service = tcp_address();
        let harness = Harness::start_with(|options| {
            options.producers.push(service.clone());
            options.relay_endpoints = RelayEndpoints::On(vec![service.clone()]);
        });
        let (relay, guest) = relay(&harness.folder, service);
        Self { relay, guest, harness }
    }

    /// A consumer that records on all machines.
    fn consumer(&self) -> BlockingClient {
        let mut consumer = self.harness.consumer();
        let wish = TraceConfig { trace_all_machines: Some(true), ..config() };
        consumer.send("EnableTracing", &enable(wish), None).unwrap();
        barrier(&mut consumer);
        consumer
    }
}

/// Returns the lengths of the packets of `spec.test` from the guest.
fn guest_packets(packets: &[Vec<u8>]) -> Vec<usize> {
    let packets = packets.iter().map(|packet| TracePacketReader::parse(packet).unwrap());
    let guests = packets.filter(|packet| packet.machine_id() == Some(machine_id(HINT)));
    guests.filter_map(|packet| Some(packet.for_testing()?.str()?.len())).collect()
}

#[test]
fn packets_name_the_user_and_process_of_the_producer() {
    let machines = TwoMachines::start();
    let mut consumer = machines.consumer();
    let mut producer = Producer::connect(&machines.guest);
    assert!(producer.emulated, "the service sees a network");
    producer.await_start();
    producer.commit(&packet(5));
    let packets = read(&mut consumer);
    assert_eq!(guest_packets(&packets), [5]);
    let packet =
        packets.iter().map(|packet| TracePacketReader::new(packet)).find(|packet| packet.for_testing().is_some());
    let (uid, pid) = (rustix::process::geteuid().as_raw() as i32, std::process::id() as i32);
    assert_eq!(packet.map(|packet| (packet.trusted_uid(), packet.trusted_pid())), Some((Some(uid), Some(pid))));
}

/// A service on this machine passes a descriptor whose `close` blocks: other producers are still
/// served.
#[test]
fn a_descriptor_from_the_service_does_not_block_producers() {
    let folder = Folder::create();
    let address = Address::Path(folder.path("service"));
    let service = esatto_ipc::Listener::bind(&address).unwrap();
    let (relay, guest) = relay(&folder, address);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut lingering = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
    let _other_end = tcp.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&lingering, Some(std::time::Duration::from_secs(3600))).unwrap();
    lingering.set_nonblocking(true).unwrap();
    while lingering.write(&[0; 65536]).map_err(|e| assert_eq!(e.kind(), ErrorKind::WouldBlock)).is_ok() {}
    let accept = || loop {
        match service.accept().unwrap() {
            Some(stream) => return stream,
            None => std::thread::yield_now(),
        }
    };
    let read = |stream: &mut UnixStream, bytes: usize| {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.read_exact(&mut vec![0; bytes]).unwrap();
    };
    let _control = accept();
    let mut first = UnixStream::connect(guest.to_string()).unwrap();
    let its_service = accept();
    // The producer does not read, so at some point the relay reads no more. Then the kernel alone
    // holds the passed descriptor, and the process that receives it is the last to close it.
    let (mut sent, mut refused) = (0, 0);
    while refused < 100 {
        match its_service.send(&[0; 4096], None).unwrap() {
            0 => {
                refused += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            bytes => (sent, refused) = (sent + bytes, 0),
        }
    }
    rustix::net::sockopt::set_socket_send_buffer_size(&its_service, 1 << 20).unwrap();
    assert_eq!(its_service.send(b"hello", Some(std::os::fd::AsFd::as_fd(&lingering))).unwrap(), 5);
    std::thread::spawn(move || drop(lingering));
    std::thread::sleep(std::time::Duration::from_millis(10));
    read(&mut first, sent + 5);
    let mut second = UnixStream::connect(guest.to_string()).unwrap();
    accept().send(b"again", None).unwrap();
    read(&mut second, 5);
    drop(relay);
}

#[test]
fn the_trace_has_the_machine_and_clocks_of_the_relay() {
    let machines = TwoMachines::start();
    let mut consumer = machines.consumer();
    let (mut info, mut clocks) = (None, None);
    // The relay sends these by itself; each trace has the readings that were known at its begin.
    while info.is_none() || clocks.is_none() {
        for packet in read(&mut consumer) {
            let packet = TracePacketReader::parse(&packet).unwrap();
            if packet.machine_id() == Some(machine_id(HINT)) {
                if let Some(told) = packet.system_info() {
                    info = told.machine_name().map(<[u8]>::to_vec);
                }
                if let Some(sync) = packet.remote_clock_sync() {
                    let client_clocks = sync.synced_clocks().filter_map(|each| each.client_clocks());
                    clocks = Some(client_clocks.map(|snapshot| snapshot.clocks().count()).collect::<Vec<_>>());
                }
            }
        }
    }
    // Not every architecture has a cycle counter.
    let each = if cfg!(target_arch = "x86_64") { 7 } else { 6 };
    assert_eq!((info, clocks), (Some(b"guest1".to_vec()), Some(vec![each, each])));
}

#[test]
fn the_last_commits_of_an_ended_producer_arrive() {
    let machines = TwoMachines::start();
    let mut consumer = machines.consumer();
    let mut producer = Producer::connect(&machines.guest);
    producer.await_start();
    for _ in 0..300 {
        producer.send(&packet(3000));
    }
    // Written, but not answered.
    while producer.client.connection().queued() > 0 {
        producer.client.try_reply().unwrap();
    }
    drop(producer);
    let mut found = 0;
    // The relay reports the end of the producer after its last bytes.
    while found < 300 {
        found += guest_packets(&read(&mut consumer)).len();
    }
    assert_eq!(found, 300);
}

#[test]
fn producers_are_disconnected_while_there_is_no_service() {
    let service = tcp_address();
    let folder = Folder::create();
    let (_relay, guest) = relay(&folder, service.clone());
    let mut stream = UnixStream::connect(guest.as_path().unwrap()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed");

    let _lab = Harness::start_with(|options| options.producers.push(service));
    Producer::connect(&guest);
}

#[test]
fn memory_that_a_producer_offers_is_not_used() {
    let machines = TwoMachines::start();
    let mut producer = BlockingClient::connect(&machines.guest, "ProducerPort", DEADLINE).unwrap();
    let region = esatto_shm::MappedRegion::create(16 << 10).unwrap();
    let request = InitializeConnectionRequest {
        producer_name: Some("test".into()),
        producer_provided_shmem: Some(true),
        shared_memory_page_size_hint_bytes: Some(4096),
        ..InitializeConnectionRequest::default()
    };
    let fd = region.fd().try_clone_to_owned().unwrap();
    let call = producer.send("InitializeConnection", &request.encode(), Some(fd)).unwrap();
    let response: InitializeConnectionResponse = producer.wait_reply(call, Some(DEADLINE)).unwrap().decode().unwrap();
    assert_eq!((response.using_shmem_provided_by_producer, response.use_shmem_emulation), (Some(false), Some(true)));
}

#[test]
fn the_socket_file_is_removed_at_the_end() {
    let machines = TwoMachines::start();
    let path = machines.guest.as_path().unwrap().to_owned();
    let mut producer = UnixStream::connect(&path).unwrap();
    producer.set_read_timeout(Some(DEADLINE)).unwrap();
    let second = Relay::bind(RelayOptions::new(machines.guest.clone(), tcp_address()));
    assert!(second.is_err(), "a live socket is not stolen");
    drop(machines.relay);
    assert!(!path.exists());
    // The relay may or may not have accepted this connection before it ended.
    match producer.read(&mut [0]) {
        Ok(0) => {}
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_relay_to_itself_is_refused() {
    let address = Address::Abstract(b"esatto-relay-to-itself".to_vec());
    let error = Relay::bind(RelayOptions::new(address.clone(), address)).unwrap_err().to_string();
    assert!(error.contains("@esatto-relay-to-itself"), "{error}");
}

/// A service that implements the protocol only as far as a test needs it.
struct FakeService(TcpListener);

impl FakeService {
    fn bind() -> (Self, Address) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string().parse().unwrap();
        (Self(listener), address)
    }

    fn accept(&self) -> Conversation {
        let (stream, _) = self.0.accept().unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Conversation { stream, decoder: FrameDecoder::new() }
    }

    /// Accepts the next connection of a producer. It skips the relay's own connection, whose first
    /// call binds the relay port.
    fn accept_producer(&self) -> Conversation {
        loop {
            let mut conversation = self.accept();
            conversation.next(|frame| assert!(matches!(frame.body, FrameBody::SetPeerIdentity(_)), "{frame:?}"));
            if !conversation.next(|frame| matches!(frame.body, FrameBody::BindService { service_name: b"RelayPort" })) {
                return conversation;
            }
        }
    }
}

struct Conversation {
    stream: TcpStream,
    decoder: FrameDecoder,
}

impl Conversation {
    /// Passes the next frame to `look`.
    fn next<T>(&mut self, look: impl FnOnce(&Frame<'_>) -> T) -> T {
        while !self.decoder.has_frame() {
            let mut bytes = [0; 4096];
            let n = self.stream.read(&mut bytes).unwrap();
            assert_ne!(n, 0, "the relay has closed");
            assert_eq!(self.decoder.push(&bytes[..n]), n);
        }
        look(&self.decoder.next_frame().unwrap().unwrap())
    }
}

#[test]
fn an_old_service_gets_only_clocks() {
    let (service, address) = FakeService::bind();
    let folder = Folder::create();
    let (_relay, _) = relay(&folder, address);
    let mut control = service.accept();
    // The port of v43 to v49.
    static PORT: Service = Service {
        name: "RelayPort",
        methods: &[Method { name: "SyncClock", full_name: "RelayPort.SyncClock", kind: Kind::Unary, trace: None }],
    };
    let mut host = Host::new([&PORT].into(), Peer::remote(Family::Inet, "127.0.0.1".to_owned()));
    let mut calls = Vec::new();
    while calls.len() < 2 {
        let mut out = Vec::new();
        let call = control.next(|frame| match host.handle(frame, &mut out) {
            Some(HostEvent::Invoke(invoke)) => {
                let phase = esatto_schema::SyncClockRequestReader::parse(invoke.args).unwrap().phase();
                Some((invoke.request_id, invoke.method.name, phase.map(|phase| phase.0)))
            }
            _ => None,
        });
        if let Some((request_id, method, phase)) = call {
            host.reply_ok(request_id, &[], false, &mut out).unwrap();
            calls.push((method, phase));
        }
        control.stream.write_all(&out).unwrap();
    }
    assert_eq!(calls, [("SyncClock", Some(1)), ("SyncClock", Some(2))]);
    assert_eq!((host.peer().machine_id, &*host.peer().machine_name), (machine_id(HINT), &b"guest1"[..]));
}

#[test]
fn a_service_without_a_relay_port_is_tried_again() {
    let (service, address) = FakeService::bind();
    let folder = Folder::create();
    let (_relay, _) = relay(&folder, address);
    for _ in 0..2 {
        let mut control = service.accept();
        let mut host = Host::new([].into(), Peer::remote(Family::Inet, "127.0.0.1".to_owned()));
        for _ in 0..2 {
            let mut out = Vec::new();
            control.next(|frame| host.handle(frame, &mut out).is_some());
            control.stream.write_all(&out).unwrap();
        }
    }
}

#[test]
fn a_slow_service_slows_down_the_producer() {
    let (service, address) = FakeService::bind();
    let folder = Folder::create();
    let (_relay, guest) = relay(&folder, address);
    let mut producer = UnixStream::connect(guest.as_path().unwrap()).unwrap();
    // `accept_producer` recognizes the connection by this frame.
    producer.write_all(b"\x02\0\0\0\x10\x07").unwrap();
    let mut conversation = service.accept_producer();
    producer.set_nonblocking(true).unwrap();
    let mut sent = 0_u64;
    let mut refused = 0;
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 16).collect();
    // The way is full when nothing is taken for a while: the sockets have buffers of their own.
    while refused < 100 {
        match producer.write(&bytes[(sent % 256) as usize..]) {
            Ok(n) => {
                sent += n as u64;
                refused = 0;
                assert!(sent < 1 << 30, "the bytes are kept without bound");
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::WouldBlock);
                refused += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
    drop(producer);
    let mut received = conversation.decoder.buffered() as u64;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = conversation.stream.read(&mut buffer).unwrap();
        if n == 0 {
            break;
        }
        let expected = (received..).map(|at| at as u8);
        assert!(buffer[..n].iter().copied().eq(expected.take(n)), "in their order");
        received += n as u64;
    }
    assert_eq!(received, sent, "everything, although the producer is gone");
}
