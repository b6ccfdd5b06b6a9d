//! The producer of the group `service`, the same for every service. It speaks the producer port
//! itself and writes with `esatto-shm`, so that only the service differs between two runs.
//!
//! ```text
//! bench-producer flood  [OPTION VALUE]...    as many packets as fast as it can
//! bench-producer delay  [OPTION VALUE]...    one full chunk at a time: how long until it is free again
//!
//!   --producers N    connections (1)                 --smb-kb N    size of their memory each (0: the service's choice)
//!   --packet N       bytes of a packet (512)         --mib N       of packets, all producers together (1024)
//!   --policy stall|drop                              what to do without a free chunk (stall)
//!   --commit half|chunk|thread                       when to tell the service: half of the memory is full; each chunk; a
//!                                                    thread of its own does, as soon as it can (half)
//!   --rounds N       of `delay` (1000)               --source NAME to register (bench.write)
//! ```
//!
//! When every data source is started, it prints `{"started": N}` and waits for a line on stdin.
//! Then it works, waits until the service has everything, prints its result in one line, and ends
//! with its stdin.

#![forbid(unsafe_code)]

mod link;
mod options;

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use esatto_protozero::HeapBuffer;
use esatto_schema::TracePacketWriter;

use link::Link;
use options::{Mode, Options};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-producer: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut links = (0..options.producers).map(|_| Link::connect(&options)).collect::<Result<Vec<_>, _>>()?;
    for link in &mut links {
        link.await_start(&options)?;
    }
    let mut stdin = std::io::stdin().lock();
    let mut line = String::new();
    say(&format!("{{\"started\": {}}}", links.len()));
    stdin.read_line(&mut line).map_err(|error| format!("stdin: {error}"))?;
    match options.mode {
        Mode::Flood => flood(&mut links, &options)?,
        Mode::Delay => delay(&mut links, &options)?,
    }
    // Until the runner has measured the memory of the service.
    while stdin.read_line(&mut line).map_err(|error| format!("stdin: {error}"))? != 0 {}
    Ok(())
}

/// Producers take turns; each writes half of its memory, which is when it has something to commit.
fn flood(links: &mut [Link], options: &Options) -> Result<(), String> {
    let packet = packet(options.packet_bytes);
    let total = options.total_bytes / packet.len() as u64;
    let begin = Instant::now();
    let (mut written, mut lost) = (0, 0);
    while written < total {
        for link in &mut *links {
            let turn = (link.memory_bytes() / 2 / packet.len()).max(1) as u64;
            for _ in 0..turn.min(total - written) {
                lost += u64::from(!link.write(&packet)?);
                written += 1;
            }
        }
    }
    let wall = begin.elapsed();
    for link in links {
        link.finish()?;
    }
    say(&format!(
        "{{\"packets\": {written}, \"bytes\": {}, \"lost\": {lost}, \"wall_ns\": {}}}",
        written * packet.len() as u64,
        wall.as_nanos()
    ));
    Ok(())
}

/// The time from the release of a full chunk until its page is free, one at a time.
fn delay(links: &mut [Link], options: &Options) -> Result<(), String> {
    let link = links.first_mut().ok_or("no producer")?;
    let packet = packet(link.page_bytes() - 32);
    let mut delays = Vec::with_capacity(options.rounds);
    for _ in 0..options.rounds {
        delays.push(link.release_one(&packet)?.as_nanos());
        // The service goes to sleep, if it has nothing else to do.
        std::thread::sleep(Duration::from_micros(500));
    }
    say(&format!("{{\"delays_ns\": {delays:?}}}"));
    Ok(())
}

/// A packet of so many bytes; of one less where a length in it would not fit otherwise.
fn packet(bytes: usize) -> Vec<u8> {
    let of = |text: usize| {
        let mut buffer = HeapBuffer::new();
        let mut packet = TracePacketWriter::from(buffer.message());
        packet.timestamp(1 << 40);
        packet.for_testing().str("x".repeat(text));
        drop(packet);
        buffer.to_vec()
    };
    (0..=bytes).rev().map(of).find(|packet| packet.len() <= bytes).unwrap_or_default()
}

fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // The end of the runner also ends stdin.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}
