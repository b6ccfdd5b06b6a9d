//! A little sensor log: written with typed writers, read back with typed readers.
//!
//! ```sh
//! cargo run -p esatto-example-own-schema
//! ```

#![forbid(unsafe_code)]

use std::error::Error;

use esatto_protozero::{HeapBuffer, Owned};

/// What `build.rs` has generated: a module for each package.
mod protos {
    include!(concat!(env!("OUT_DIR"), "/protos.rs"));
}

use protos::sensors::{Fault, LogReader, LogWriter, Started};

fn main() -> Result<(), Box<dyn Error>> {
    let mut buffer = HeapBuffer::new();
    write(&mut LogWriter::from(buffer.message()));
    println!("{} bytes", buffer.len());
    print(LogReader::parse(buffer.as_slice())?)
}

/// Fields are encoded where they will stay, in the order of the calls; nothing is kept in between.
fn write(log: &mut LogWriter<'_>) {
    {
        let mut entry = log.entries();
        entry.time().seconds(1_700_000_000);
        // The entry cannot be written to while `started` is there: that would not compile.
        let mut started = entry.started();
        started.name("boiler").settings_entry("unit", "°C").settings_entry("range", "0…120");
    } // Here the lengths of `started` and of `entry` are filled in.

    let mut entry = log.entries();
    entry.time().seconds(1_700_000_001).nanos(500_000_000);
    entry.reading().sensor(7).interval_ms(20).values([20, 21, -1]);
    drop(entry);

    log.entries().fault(Fault::FAULT_OVERHEATED);
    // A number without a name, as a newer program may write.
    log.entries().fault(Fault(17));
}

/// Readers are views: nothing is copied, and what is not asked for is passed over.
fn print(log: LogReader<'_>) -> Result<(), Box<dyn Error>> {
    for entry in log.entries() {
        if let Some(time) = entry.time() {
            let (seconds, nanos) = (time.seconds().unwrap_or_default(), time.nanos().unwrap_or_default());
            print!("{seconds}.{:03} ", nanos / 1_000_000);
        }
        if let Some(started) = entry.started() {
            // A value, to keep: `owned` in build.rs asks for it.
            let Started { name, settings, .. } = Started::decode(started.as_bytes())?;
            println!("{} started with {settings:?}", name.unwrap_or_default());
        } else if let Some(reading) = entry.reading() {
            println!("sensor {}: {:?}", reading.sensor().unwrap_or_default(), reading.values().collect::<Vec<_>>());
        } else if let Some(fault) = entry.fault() {
            println!("fault {fault:?}");
        }
    }
    Ok(())
}
