//! A little sensor log: written with typed writers, read back with typed readers.
//!
//! ```sh
//! cargo run -p esatto-example-own-schema
//! ```

#![forbid(unsafe_code)]

use std::error::Error;

use esatto_protozero::{HeapBuffer, Owned};

/// Code that `build.rs` generated: one module per package.
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

/// Writes four entries. Each call encodes its field in place; no message is kept in memory.
fn write(log: &mut LogWriter<'_>) {
    {
        let mut entry = log.entries();
        entry.time().seconds(1_700_000_000);
        // While `started` exists, writing to `entry` does not compile.
        let mut started = entry.started();
        started.name("boiler").settings_entry("unit", "°C").settings_entry("range", "0…120");
    } // The end of the scope fills in the lengths of `started` and `entry`.

    let mut entry = log.entries();
    entry.time().seconds(1_700_000_001).nanos(500_000_000);
    entry.reading().sensor(7).interval_ms(20).values([20, 21, -1]);
    drop(entry);

    log.entries().fault(Fault::FAULT_OVERHEATED);
    // A number without a name, which a newer program may write.
    log.entries().fault(Fault(17));
}

/// Prints the entries. Readers are views: they copy nothing and skip unused fields.
fn print(log: LogReader<'_>) -> Result<(), Box<dyn Error>> {
    for entry in log.entries() {
        if let Some(time) = entry.time() {
            let (seconds, nanos) = (time.seconds().unwrap_or_default(), time.nanos().unwrap_or_default());
            print!("{seconds}.{:03} ", nanos / 1_000_000);
        }
        if let Some(started) = entry.started() {
            // An owned value: `owned` in build.rs asks for it.
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
