//! Reads a trace into tables: `bench-read FILE`. Prints the seconds of the import, and the rows of
//! `slice`, `counter` and `sched`.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;

use esatto_trace::Engine;
use esatto_trace::tables::Table as _;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("bench-read: no file");
        return ExitCode::FAILURE;
    };
    let begin = Instant::now();
    let file = match File::open(&path) {
        Ok(file) => BufReader::with_capacity(1 << 20, file),
        Err(error) => {
            eprintln!("bench-read: {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    };
    let engine = Engine::read(file);
    let seconds = begin.elapsed().as_secs_f64();
    let tables = &engine.tables;
    println!("{seconds} {} {} {}", tables.slice.rows(), tables.counter.rows(), tables.sched.rows());
    if let Some(error) = engine.errors.first() {
        eprintln!("bench-read: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
