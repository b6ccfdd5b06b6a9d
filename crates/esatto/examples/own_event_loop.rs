//! A server with its own event loop that records itself without a second thread.
//!
//! Use an endpoint if the program must not have the library's thread: it is sandboxed to one
//! thread, or its own loop already waits for all sockets and timers. Here the loop waits for
//! datagrams. It pumps the endpoint between them, and one packet per request goes into the trace.
//!
//! ```sh
//! cargo build --release -p esatto --example own_event_loop
//! esatto record -c CONFIG -o trace.pftrace -- target/release/examples/own_event_loop
//! ```
//!
//! The config names the data source `com.example.loop`.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use esatto::BufferExhausted;
use esatto::producer::{Endpoint, Event, TraceWriter};
use esatto::schema::{DataSourceConfigReader, DataSourceDescriptor, TracePacketWriter};

/// A loop that can poll several descriptors also polls [`Endpoint`], as `AsFd`, and
/// [`Endpoint::waker`]. This one waits for one socket, at most this long.
const TICK: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    println!("own_event_loop: serving {}", socket.local_addr()?);
    let mut endpoint = Endpoint::builder("own_event_loop").connect()?;
    endpoint.register(&DataSourceDescriptor {
        name: Some("com.example.loop".into()),
        will_notify_on_start: Some(true),
        will_notify_on_stop: Some(true),
        ..Default::default()
    });
    let mut instances = Vec::new();
    let mut request = [0; 1500];
    loop {
        let due = endpoint.deadline().map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
        // A time-out of 0 would mean none.
        socket.set_read_timeout(Some(due.clamp(Duration::from_millis(1), TICK)))?;
        match socket.recv_from(&mut request) {
            Ok((len, client)) => {
                socket.send_to(&request[..len], client)?;
                for (_, writer) in &mut instances {
                    record(writer, len);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
        // Never blocks: it sends finished chunks of the writers, and receives commands of the
        // service.
        for event in endpoint.pump()? {
            handle(event, &mut endpoint, &mut instances);
        }
    }
}

/// Writes one packet for a request.
fn record(writer: &mut TraceWriter, len: usize) {
    let mut packet = writer.new_packet();
    packet.typed::<TracePacketWriter<'_>>().for_testing().str(format!("a request of {len} bytes"));
}

/// Carries out the commands of the service.
fn handle(event: Event, endpoint: &mut Endpoint, instances: &mut Vec<(u64, TraceWriter)>) {
    match event {
        Event::Connected => eprintln!("own_event_loop: connected"),
        Event::Start { id, config } => {
            let buffer = DataSourceConfigReader::new(&config).target_buffer().unwrap_or(0);
            let buffer = u16::try_from(buffer).unwrap_or(0);
            instances.push((id, endpoint.create_writer(buffer, BufferExhausted::Drop)));
            endpoint.notify_started(id);
        }
        Event::Flush { request, .. } => {
            instances.iter_mut().for_each(|(_, writer)| writer.flush());
            endpoint.acknowledge_flush(request);
        }
        Event::Stop { id } => {
            // Dropping a writer flushes it.
            instances.retain(|&(instance, _)| instance != id);
            endpoint.notify_stopped(id);
        }
        _ => {}
    }
}
