//! A producer without the library's thread: the program drives the connection to the service itself.
//!
//! ```sh
//! cargo build --release -p esatto --example own_event_loop
//! esatto record -c CONFIG -o trace.pftrace -- target/release/examples/own_event_loop
//! ```
//! where the config names the data source `com.example.loop`.

use std::time::Duration;

use esatto::BufferExhausted;
use esatto::producer::{Endpoint, Event};
use esatto::schema::{DataSourceConfigReader, DataSourceDescriptor, TracePacketWriter};

fn main() -> Result<(), esatto::Error> {
    let mut endpoint = Endpoint::builder("own_event_loop").connect()?;
    endpoint.register(&DataSourceDescriptor {
        name: Some("com.example.loop".into()),
        will_notify_on_start: Some(true),
        will_notify_on_stop: Some(true),
        ..Default::default()
    });
    let mut instances = Vec::new();
    loop {
        // A program with a loop polls the endpoint's descriptors there, and calls `pump`.
        for event in endpoint.wait(Some(Duration::from_millis(100)))? {
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
        for (_, writer) in &mut instances {
            let mut packet = writer.new_packet();
            packet.typed::<TracePacketWriter<'_>>().for_testing().str("another round");
        }
    }
}
