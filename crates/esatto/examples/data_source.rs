//! A custom data source: a thread samples the memory of this process while a session records it.
//!
//! Prints the trace. With `Tracing::builder().system()`, `esatto record` and Perfetto's tools can
//! record the data source `com.example.memory` in the same way.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esatto::schema::{DataSourceConfig, TraceConfig, TracePacketReader, trace_config};
use esatto::{Backend, DataSource, Field, Flush, Session, Setup, Source, Stop, Tracing};
use esatto_protozero::{Fields, Value};

/// One instance, with the session's config.
struct Memory {
    /// The time between samples.
    period: Duration,
    /// Samples to write when there are enough of them, or at a flush.
    kept: Mutex<Vec<u64>>,
    running: AtomicBool,
    /// The end of the session, which waits for the last sample.
    stop: Mutex<Option<Stop>>,
}

static MEMORY: Source<Memory> = Source::new("com.example.memory").on_flush(Memory::write_kept);

impl DataSource for Memory {
    // The field `for_testing` of the schema. A program would have its own message, in a field from
    // 2000 on.
    type Config = Field<esatto::schema::TestConfig, 1001>;
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(setup: &Setup<'_, Self::Config>) -> Self {
        let samples_per_second = setup.config().max_messages_per_second.unwrap_or(10).max(1);
        Self {
            period: Duration::from_secs(1) / samples_per_second,
            kept: Mutex::default(),
            running: AtomicBool::new(true),
            stop: Mutex::default(),
        }
    }

    fn start(&self) {
        // The thread finds the instance by itself.
        for (number, memory) in MEMORY.instances() {
            if core::ptr::eq(&*memory, self) {
                std::thread::spawn(move || memory.sample(number));
            }
        }
    }

    fn stop(&self, stop: Stop) {
        *self.stop.lock().unwrap() = Some(stop);
        self.running.store(false, Ordering::Relaxed);
    }
}

impl Memory {
    fn sample(&self, instance: usize) {
        while self.running.load(Ordering::Relaxed) {
            self.kept.lock().unwrap().push(resident_kb());
            std::thread::sleep(self.period);
        }
        self.write(instance);
        // This thread has written the last packet, so it hands it over before the session ends.
        MEMORY.trace(|context| context.flush());
        drop(self.stop.lock().unwrap().take());
    }

    /// Handles a flush: the service wants everything.
    fn write_kept(&self, flush: Flush) {
        self.write(flush.instance());
    }

    fn write(&self, instance: usize) {
        let samples = std::mem::take(&mut *self.kept.lock().unwrap());
        MEMORY.trace(|context| {
            // The body runs for each instance.
            if context.instance() == instance {
                for sample in &samples {
                    let now = context.now_ns();
                    context.packet(|packet| {
                        packet.timestamp(now);
                        packet.for_testing().str(format!("{sample} KiB"));
                    });
                }
            }
        });
    }
}

fn resident_kb() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4
}

fn main() -> Result<(), esatto::Error> {
    let _tracing = Tracing::builder().in_process().start()?;
    MEMORY.register()?;

    let mut source = DataSourceConfig { name: Some(MEMORY.name().into()), ..Default::default() };
    source.for_testing.get_or_insert_default().max_messages_per_second = Some(100);
    let config = TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(256), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    };
    let session = Session::start(Backend::InProcess, config)?;
    std::thread::sleep(Duration::from_millis(100));
    let trace = session.stop()?;

    for field in Fields::new(&trace) {
        if let Value::Bytes(packet) = field.value {
            if let Some(sample) = TracePacketReader::new(packet).for_testing().and_then(|test| test.str()) {
                println!("{}", String::from_utf8_lossy(sample));
            }
        }
    }
    Ok(())
}
