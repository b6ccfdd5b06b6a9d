//! `esatto-whole ENDING [FILE [LOSS]]`: a program that traces itself from beginning to end, and
//! ends in one of the ways that programs have.
//!
//! Without FILE the environment says where to, or that not at all. LOSS happens to the file before
//! the end: it is `removed`, `replaced`, `renamed`, `emptied` or `overwritten`.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

esatto::categories! {
    static APP = "app";
    static DETAIL = "app.detail";
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let ending = args.next().unwrap_or_default();
    let started = args.next().map_or_else(esatto::trace_from_env, esatto::trace_to_file);
    let trace = match started {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("esatto-whole: {error}");
            return ExitCode::FAILURE;
        }
    };
    esatto::instant!(APP, "first");
    let _open = esatto::slice!(APP, "main");
    // One that is still there at the end, and has done its part.
    let (said, heard) = std::sync::mpsc::channel();
    let idler = thread::spawn(move || {
        esatto::instant!(DETAIL, "in another thread");
        said.send(()).expect("heard");
        thread::park();
    });
    heard.recv().expect("said");
    esatto::instant!(APP, "last");
    if let Some(loss) = args.next() {
        lose(&loss, trace.path().expect("a file"));
    }
    match &*ending {
        "return" => {}
        "finish" => {
            if let Err(error) = trace.finish() {
                eprintln!("esatto-whole: {error}");
                return ExitCode::FAILURE;
            }
        }
        "exit" => std::process::exit(0),
        "exit-elsewhere" => drop(thread::spawn(|| std::process::exit(0)).join()),
        "panic" => panic!("on purpose"),
        "killed" => {
            await_last_event(trace.path().expect("a file"));
            let me = std::process::id().to_string();
            let _ = Command::new("kill").args(["-KILL", &me]).status();
        }
        other => eprintln!("esatto-whole: no such ending: {other}"),
    }
    drop(idler);
    ExitCode::SUCCESS
}

/// Waits for the trace file so far, which the periodic flush writes within about a second.
fn await_last_event(path: &Path) {
    while !fs::read(path).is_ok_and(|bytes| bytes.windows(4).any(|bytes| bytes == b"last")) {
        thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Does to the file what other programs do by mistake.
fn lose(loss: &str, path: &Path) {
    await_last_event(path);
    let done = match loss {
        "removed" => fs::remove_file(path),
        "replaced" => fs::remove_file(path).and_then(|()| fs::write(path, "another file")),
        "renamed" => fs::rename(path, path.with_extension("old")),
        "emptied" => fs::write(path, ""),
        "overwritten" => fs::write(path, vec![0x0a; 1 << 20]),
        other => panic!("no such loss: {other}"),
    };
    done.expect("the file can be changed");
}
