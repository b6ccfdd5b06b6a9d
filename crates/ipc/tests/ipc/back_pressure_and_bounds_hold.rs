//! wire-protocol.md §21: the memory that a peer can make a connection keep is bounded, and nothing
//! is lost below the bound.

use esatto_ipc::frame::{MAX_FRAME, encode};
use esatto_ipc::{Connection, Error, FrameBody, Limits, Stream};

fn pair(limits: Limits) -> (Connection, Connection) {
    let (a, b) = Stream::pair().unwrap();
    (Connection::new(a, limits), Connection::new(b, Limits::CLIENT))
}

const SMALL: Limits = Limits { max_queued: 1 << 20, pause_reading_at: 1 << 16 };

#[test]
fn a_peer_that_does_not_read_its_replies_is_not_read_from() {
    let (mut service, mut client) = pair(SMALL);
    let body = vec![1; 4000];
    let mut sent = 0;
    let mut handled = 0;
    // Send requests without reading replies.
    for _ in 0..2000 {
        if client.queued() == 0 {
            encode::bind_service(client.out().buffer(), sent, "x").unwrap();
            sent += 1;
        }
        client.flush_writes().unwrap();
        if service.wants_read() {
            service.on_readable().unwrap();
        }
        while let Some((frame, io)) = service.next_frame().unwrap() {
            assert_eq!(frame.request_id, handled);
            handled += 1;
            encode::reply_ok(io.out.buffer(), frame.request_id, &body, false).unwrap();
        }
        service.flush_writes().unwrap();
    }
    assert!(!service.wants_read() && service.wants_write() && !service.has_work());
    assert!(service.queued() < SMALL.pause_reading_at + 2 * body.len(), "{}", service.queued());
    // Now the peer reads: all its requests are answered, in order.
    let mut answered = 0;
    while answered < sent {
        client.on_readable().unwrap();
        while let Some((frame, _)) = client.next_frame().unwrap() {
            assert_eq!(frame.request_id, answered);
            answered += 1;
        }
        client.flush_writes().unwrap();
        service.flush_writes().unwrap();
        if service.wants_read() {
            service.on_readable().unwrap();
        }
        while let Some((frame, io)) = service.next_frame().unwrap() {
            encode::reply_ok(io.out.buffer(), frame.request_id, &body, false).unwrap();
        }
        service.flush_writes().unwrap();
    }
    assert_eq!(service.queued(), 0);
    assert!(service.wants_read());
}

#[test]
fn a_queue_beyond_the_limit_closes_the_connection() {
    let (mut service, _client) = pair(SMALL);
    let body = vec![1; 100_000];
    let error = loop {
        encode::reply_ok(service.out().buffer(), 1, &body, true).unwrap();
        if let Err(error) = service.flush_writes() {
            break error;
        }
    };
    assert!(matches!(error, Error::PeerNotReading { queued, limit } if queued > limit && limit == 1 << 20), "{error}");
    assert!(service.queued() < SMALL.max_queued + 2 * body.len());
}

#[test]
fn a_queue_that_never_becomes_empty_frees_written_bytes() {
    let (mut service, mut client) = pair(SMALL);
    let body = vec![1; 4000];
    let mut sent = 0;
    let mut most = 0;
    while sent < 64 << 20 {
        // More bytes come before all of them are read.
        while service.queued() < 512 << 10 {
            encode::reply_ok(service.out().buffer(), 1, &body, true).unwrap();
            sent += body.len();
        }
        service.flush_writes().unwrap();
        if service.wants_write() {
            most = most.max(service.out().buffer().capacity());
            client.on_readable().unwrap();
            while client.next_frame().unwrap().is_some() {}
        }
    }
    assert!(most <= 2 * SMALL.max_queued, "{most} bytes of memory for a queue of 516 KiB");
}

#[test]
fn one_wake_up_reads_a_bounded_amount() {
    let (a, mut service) = {
        let (a, b) = Stream::pair().unwrap();
        (a, Connection::new(b, SMALL))
    };
    rustix::net::sockopt::set_socket_send_buffer_size(&a, 4 << 20).unwrap();
    let mut frame = Vec::new();
    encode::bind_service(&mut frame, 1, "ProducerPort").unwrap();
    let flood = frame.repeat((1 << 20) / frame.len());
    let sent = a.send(&flood, None).unwrap();
    let mut total = 0;
    let mut wake_ups = 0;
    while total < sent / frame.len() {
        service.on_readable().unwrap();
        assert!(service.decoder().buffered() <= MAX_FRAME);
        while service.next_frame().unwrap().is_some() {
            total += 1;
        }
        wake_ups += 1;
    }
    assert!(wake_ups >= sent / MAX_FRAME);
}

#[test]
fn frames_before_the_end_of_the_stream_are_handled() {
    let (a, b) = Stream::pair().unwrap();
    let mut service = Connection::new(b, SMALL);
    let mut bytes = Vec::new();
    for id in 0..10 {
        encode::bind_service(&mut bytes, id, "ProducerPort").unwrap();
    }
    bytes.extend_from_slice(&[9, 0, 0, 0, 1, 2]); // and half a frame
    a.send(&bytes, None).unwrap();
    drop(a);
    let mut frames = 0;
    while !service.is_closed() || service.has_work() {
        service.on_readable().unwrap();
        while let Some((frame, _)) = service.next_frame().unwrap() {
            assert!(matches!(frame.body, FrameBody::BindService { .. }));
            frames += 1;
        }
    }
    assert_eq!(frames, 10);
    assert!(!service.wants_read());
    encode::request_error(service.out().buffer(), 1);
    assert!(matches!(service.flush_writes(), Err(Error::Disconnected)), "and no SIGPIPE");
}

#[test]
fn large_messages_cross_a_small_socket_buffer_in_pieces() {
    let (mut service, mut client) = pair(SMALL);
    rustix::net::sockopt::set_socket_send_buffer_size(service.stream(), 4096).unwrap();
    let body: Vec<u8> = (0..120_000_u32).map(|i| i as u8).collect();
    encode::reply_ok(service.out().buffer(), 7, &body, false).unwrap();
    let mut rounds = 0;
    loop {
        service.flush_writes().unwrap();
        client.on_readable().unwrap();
        rounds += 1;
        if let Some((frame, _)) = client.next_frame().unwrap() {
            assert!(matches!(frame.body, FrameBody::InvokeMethodReply { body: b, .. } if b == body));
            break;
        }
    }
    assert!(rounds > 1, "it did not fit at once");
}
