//! Calls between client and host over a real socket, with the parts that an event loop and a
//! command use.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use esatto_ipc::frame::encode;
use esatto_ipc::{Address, BlockingClient, Connection, Error, Host, HostEvent, Limits, Listener, Peer};
use esatto_ports::consumer_port;
use esatto_ports::consumer_port::method::{QueryCapabilities, ReadBuffers};
use esatto_schema::{
    QueryCapabilitiesRequest, QueryCapabilitiesResponse, ReadBuffersRequest, TracingServiceCapabilities,
};

use crate::listeners_do_not_steal_sockets::{Scratch, accept};

const SOON: Option<Duration> = Some(Duration::from_secs(10));

/// Serves one connection of a consumer socket until it closes: echoes, streams, rejects, or sends
/// nothing.
fn serve(address: &Address) -> JoinHandle<Result<(), Error>> {
    let listener = Listener::bind(address).unwrap();
    thread::spawn(move || {
        let stream = accept(&listener);
        let mut host = Host::new(Arc::from([&consumer_port::SERVICE]), Peer::of(&stream));
        let mut connection = Connection::new(stream, Limits::CLIENT);
        while !connection.is_closed() {
            connection.wait(None)?;
            while let Some((frame, io)) = connection.next_frame()? {
                let out = io.out.buffer();
                let Some(HostEvent::Invoke(call)) = host.handle(&frame, out) else { continue };
                let id = call.request_id;
                match call.method.name {
                    "GetTraceStats" => host.reply_ok(id, call.args, false, out)?,
                    "QueryCapabilities" => {
                        let reply = QueryCapabilitiesResponse {
                            capabilities: Some(TracingServiceCapabilities {
                                has_clone_session: Some(true),
                                ..Default::default()
                            }),
                            ..Default::default()
                        };
                        host.reply_ok(id, &esatto_protozero::Owned::encode(&reply), false, out)?;
                    }
                    "ReadBuffers" => {
                        for n in 0..20_u8 {
                            host.reply_ok(id, &vec![n; 100_000], n < 19, out)?;
                        }
                    }
                    "EnableTracing" => {
                        if let Some(fd) = io.fd.take() {
                            File::from(fd.into_owned()).write_all(b"trace").unwrap();
                            host.reply_ok(id, b"", false, out)?;
                        }
                    }
                    "Attach" => host.reply_rejected(id, out),
                    "Detach" => encode::request_error(out, id),
                    "FreeBuffers" => return Ok(()),
                    _ => {}
                }
            }
            if let Err(e) = connection.flush_writes() {
                return if connection.is_closed() { Ok(()) } else { Err(e) };
            }
        }
        Ok(())
    })
}

fn connect(address: &Address) -> BlockingClient {
    BlockingClient::connect(address, "ConsumerPort", SOON.unwrap()).unwrap()
}

#[test]
fn with_replies_streams_rejections_and_descriptors() {
    let scratch = Scratch::new("calls");
    let address = scratch.address("consumer");
    let server = serve(&address);
    let mut client = connect(&address);
    assert!(client.has_method("CloneSession") && !client.has_method("NoSuchMethod"));

    let reply = client.call("GetTraceStats", b"\x08\x07", SOON).unwrap();
    assert_eq!((reply.success, reply.has_more, reply.body.as_slice()), (true, false, &b"\x08\x07"[..]));

    let reply = client.call_message::<QueryCapabilities>(&QueryCapabilitiesRequest::default(), SOON).unwrap();
    assert_eq!(reply.capabilities.unwrap().has_clone_session, Some(true));

    let mut bodies = Vec::new();
    let done = client.call_stream::<ReadBuffers, _>(&ReadBuffersRequest::default(), SOON, |body| {
        assert_eq!(body.len(), 100_000);
        bodies.push(body[0]);
        Ok::<(), Error>(())
    });
    assert!(done.unwrap());
    assert!(bodies.into_iter().eq(0..20));

    assert!(!client.call("Attach", b"", SOON).unwrap().success);
    assert!(!client.call("Detach", b"", SOON).unwrap().success, "a request error counts as rejected");
    assert!(matches!(client.call("NoSuchMethod", b"", SOON), Err(Error::NoSuchMethod(m)) if m == "NoSuchMethod"));

    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let request = client.send("EnableTracing", b"", Some(write)).unwrap();
    assert!(client.wait_reply(request, SOON).unwrap().success);
    assert_eq!(std::io::read_to_string(File::from(read)).unwrap(), "trace");

    drop(client);
    server.join().unwrap().unwrap();
}

#[test]
fn with_replies_out_of_order_and_some_that_never_come() {
    let scratch = Scratch::new("order");
    let address = scratch.address("consumer");
    let server = serve(&address);
    let mut client = connect(&address);
    // A Flush without a session is never answered, so clients need a timeout.
    assert!(matches!(client.call("Flush", b"", Some(Duration::from_millis(10))), Err(Error::Timeout)));
    assert!(matches!(client.try_reply(), Ok(None)));
    let first = client.send("GetTraceStats", b"\x08\x01", None).unwrap();
    let second = client.send("GetTraceStats", b"\x08\x02", None).unwrap();
    client.send_one_way("Attach", b"").unwrap();
    assert_eq!(client.wait_reply(second, SOON).unwrap().body, b"\x08\x02");
    assert_eq!(client.next_reply(SOON).unwrap().request_id, first);
    // The service ends.
    client.send("FreeBuffers", b"", None).unwrap();
    assert!(matches!(client.next_reply(SOON), Err(Error::Disconnected)));
    assert!(matches!(client.try_reply(), Err(Error::Disconnected)));
    server.join().unwrap().unwrap();
}

#[test]
fn with_the_wrong_socket() {
    let scratch = Scratch::new("wrong");
    let address = scratch.address("consumer");
    let server = serve(&address);
    let error = BlockingClient::connect(&address, "ProducerPort", SOON.unwrap()).unwrap_err();
    assert!(matches!(error, Error::NoSuchService(name) if name == "ProducerPort"));
    server.join().unwrap().unwrap();
}
