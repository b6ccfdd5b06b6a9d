//! One test, because the table is installed once per process. The connection number distinguishes
//! the calls of other tests.

use std::sync::{Arc, Mutex};

use esatto_ipc::hooks::{self, Hooks};
use esatto_ipc::{Client, FrameDecoder, Host, HostEvent, Peer};
use esatto_ports::producer_port;

static SEEN: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

fn note(connection: u64, text: String) {
    SEEN.lock().unwrap().push((connection, text));
}

fn seen(connection: u64) -> Vec<String> {
    SEEN.lock().unwrap().iter().filter(|(c, _)| *c == connection).map(|(_, text)| text.clone()).collect()
}

#[test]
fn of_the_client_and_of_the_host() {
    let mut table = Hooks::none();
    table.request_sent = |r| note(r.connection, format!("sent {} {} {}", r.method, r.request_id, r.size));
    table.reply_received = |r| note(r.connection, format!("received {} {} {}", r.request_id, r.success, r.size));
    table.invoke_begin = |r| note(r.connection, format!("begin {} {} {}", r.method, r.request_id, r.drop_reply));
    table.reply_sent = |r| note(r.connection, format!("replied {} {} {}", r.request_id, r.success, r.has_more));
    hooks::install(table).unwrap();
    assert!(hooks::install(Hooks::none()).is_err(), "once per process");

    let mut host = Host::new(Arc::from([&producer_port::SERVICE]), Peer::local(0, None));
    let mut client = Client::new();
    assert_ne!(host.connection(), client.connection());
    let (mut to_host, mut to_client) = (FrameDecoder::new(), FrameDecoder::new());
    let mut out = Vec::new();
    client.bind("ProducerPort", &mut out).unwrap();
    for round in 0..2 {
        to_host.push(&out);
        out.clear();
        while let Some(frame) = to_host.next_frame().unwrap() {
            if let Some(HostEvent::Invoke(call)) = host.handle(&frame, &mut out) {
                match call.method {
                    "Sync" => host.reply_ok(call.request_id, b"", false, &mut out).unwrap(),
                    _ => host.reply_rejected(call.request_id, &mut out),
                }
            }
        }
        to_client.push(&out);
        out.clear();
        while let Some(frame) = to_client.next_frame().unwrap() {
            assert!(client.handle(&frame).is_some());
        }
        if round == 0 {
            client.invoke("Sync", b"", false, &mut out).unwrap();
            client.invoke("CommitData", b"\x18\x01", false, &mut out).unwrap();
        }
    }
    assert_eq!(
        seen(client.connection()),
        ["sent Sync 2 0", "sent CommitData 3 2", "received 2 true 0", "received 3 false 0"]
    );
    assert_eq!(
        seen(host.connection()),
        ["begin Sync 2 false", "replied 2 true false", "begin CommitData 3 false", "replied 3 false false"]
    );
}
