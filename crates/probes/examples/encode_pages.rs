//! Encodes recorded pages again and again. Run it under `perf stat` or callgrind to see the cost of
//! an event: `encode_pages FOLDER PAGES compact|full ROUNDS`.

use std::sync::Arc;
use std::{env, fs};

use esatto::producer::shm::abi::PageSize;
use esatto::producer::shm::{Arbiter, ExhaustedPolicy, Memory, Outgoing, PrivateRegion, ServiceRegion};
use esatto_probes::fuzzing::ftrace::PageEncoder;

fn main() {
    let args: Vec<String> = env::args().collect();
    let [_, folder, pages, kind, rounds] = &args[..] else { panic!("usage: encode_pages FOLDER PAGES KIND ROUNDS") };
    let format = |name: &str| fs::read(format!("{folder}/{name}.format")).expect("a format");
    let (switch, waking) = (format("sched_switch"), format("sched_waking"));
    let events = [("sched", "sched_switch", &switch[..]), ("sched", "sched_waking", &waking[..])];
    let pages = fs::read(pages).expect("pages");
    let mut encoder = PageEncoder::new(events, 4096, kind == "compact", false);

    let page_size = PageSize::new(32 * 1024).expect("a size");
    let memory: Arc<dyn Memory> = Arc::new(PrivateRegion::new(2 << 20));
    let arbiter = Arbiter::with_options(memory.clone(), page_size, Arc::new(()), Default::default()).expect("memory");
    let service = ServiceRegion::new(memory, page_size).expect("whole pages");
    let mut writer = arbiter.create_writer(1, ExhaustedPolicy::Drop);
    let mut taken = Vec::new();
    for _ in 0..rounds.parse().expect("a number") {
        for batch in pages.chunks(32 * 4096) {
            encoder.encode(0, batch, &mut writer);
            while let Some(outgoing) = arbiter.poll_outgoing() {
                if let Outgoing::Commit(request) = outgoing {
                    for chunk in request.moves {
                        taken.clear();
                        let _ = service.take_chunk(chunk.page, chunk.chunk, &mut taken);
                    }
                }
            }
        }
    }
    writer.flush();
    println!("{} bytes", writer.written());
}
