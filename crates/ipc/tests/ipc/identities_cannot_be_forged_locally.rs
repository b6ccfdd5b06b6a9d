//! wire-protocol.md §7 and §22 rows 13 to 16.

use std::sync::Arc;

use esatto_ipc::frame::{PeerIdentity, encode};
use esatto_ipc::peer::machine_id;
use esatto_ipc::{Family, Frame, Host, HostEvent, Peer, Stream};
use esatto_ports::producer_port;

fn claim(host: &mut Host, identity: &PeerIdentity<'_>) -> bool {
    let mut frame = Vec::new();
    encode::set_peer_identity(&mut frame, identity).unwrap();
    let mut out = Vec::new();
    let event = host.handle(&Frame::parse(&frame[4..]).unwrap(), &mut out);
    assert!(out.is_empty(), "there is no reply");
    matches!(event, Some(HostEvent::PeerIdentity))
}

fn host(peer: Peer) -> Host {
    Host::new(Arc::from([&producer_port::SERVICE]), peer)
}

const HINT: &[u8] = b"5224bdf8-ec6a-4015-af44-94aca6fba747";

#[test]
fn a_claim_on_a_unix_socket_is_ignored() {
    let mut host = host(Peer::local(1000, Some(42)));
    assert!(!claim(&mut host, &PeerIdentity { pid: Some(1), uid: Some(0), machine_id_hint: HINT, machine_name: b"x" }));
    let peer = host.peer();
    assert_eq!((peer.uid, peer.pid, peer.machine_id), (1000, Some(42), 0));
}

#[test]
fn the_first_claim_on_tcp_wins() {
    let mut host = host(Peer::remote(Family::Inet, "127.0.0.1".into()));
    let first = PeerIdentity { pid: Some(9001), uid: Some(5), machine_id_hint: HINT, machine_name: b"guest1" };
    assert!(claim(&mut host, &first));
    assert!(!claim(&mut host, &PeerIdentity { pid: Some(1), uid: Some(0), ..PeerIdentity::default() }));
    let peer = host.peer();
    assert_eq!((peer.uid, peer.pid, peer.machine_id), (5, Some(9001), 1_011_363_979));
    assert_eq!(peer.machine_name, b"guest1");
}

#[test]
fn a_remote_peer_without_claim_is_uid_0_without_pid_on_machine_0() {
    let peer = Peer::remote(Family::Inet, "127.0.0.1".into());
    assert_eq!((peer.uid, peer.pid, peer.machine_id), (0, None, 0));
}

#[test]
fn an_empty_hint_is_replaced_by_the_local_address() {
    let mut host = host(Peer::remote(Family::Inet, "10.0.0.1".into()));
    assert!(claim(&mut host, &PeerIdentity::default()));
    assert_eq!(host.peer().machine_id, machine_id(b"10.0.0.1"));
}

#[test]
fn negative_claims_survive_the_wire() {
    let mut host = host(Peer::remote(Family::Inet6, String::new()));
    assert!(claim(&mut host, &PeerIdentity { pid: Some(-1), uid: Some(i32::MIN), ..PeerIdentity::default() }));
    assert_eq!((host.peer().uid, host.peer().pid), (i32::MIN, Some(-1)));
}

#[test]
fn a_machine_id_is_never_0() {
    assert_eq!(machine_id(HINT), 1_011_363_979);
    // The low half of the offset basis.
    assert_eq!(machine_id(b""), 0x8422_2325);
}

#[test]
fn credentials_of_a_unix_peer_come_from_the_kernel() {
    let (a, _b) = Stream::pair().unwrap();
    let peer = Peer::of(&a);
    assert_eq!(peer.uid, rustix::process::geteuid().as_raw() as i32);
    assert_eq!(peer.pid, Some(std::process::id() as i32));
}
