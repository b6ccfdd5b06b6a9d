//! The cases of the group `sdk`, with `tracing-perfetto`: a layer that writes each span to memory
//! when it closes.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bench_harness::{Finished, Options, Program};
use tracing_perfetto::PerfettoLayer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// More than a batch; then the next write starts over.
const CAPACITY: usize = 1 << 20;

static MEMORY: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Memory;

struct Writer(MutexGuard<'static, Vec<u8>>);

impl<'a> MakeWriter<'a> for Memory {
    type Writer = Writer;

    fn make_writer(&'a self) -> Writer {
        Writer(MEMORY.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > CAPACITY {
            self.0.clear();
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start(_: &Options) {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner).reserve(CAPACITY);
    tracing_subscriber::registry().with(PerfettoLayer::new(Memory).with_debug_annotations(true)).init();
}

fn finish() -> Finished {
    let trace = MEMORY.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Finished { events: 0, trace: Some(trace) }
}

fn main() {
    bench_harness::run(&Program { cases: bench_sdk_tracing::CASES, start, finish });
}
