//! `esatto-whole ENDING [FILE]`: a program that traces itself from beginning to end, and ends in
//! one of the ways that programs have.
//!
//! Without FILE the environment says where to, or that not at all.

#![forbid(unsafe_code)]

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
    match &*ending {
        "return" => {}
        "finish" => trace.finish().expect("the file is whole"),
        "exit" => std::process::exit(0),
        "exit-elsewhere" => drop(thread::spawn(|| std::process::exit(0)).join()),
        "panic" => panic!("on purpose"),
        "killed" => {
            // The trace file so far, written by the periodic flush within about a second.
            let path = trace.path().expect("a file");
            while !std::fs::read(path).is_ok_and(|bytes| bytes.windows(4).any(|bytes| bytes == b"last")) {
                thread::sleep(std::time::Duration::from_millis(50));
            }
            let me = std::process::id().to_string();
            let _ = Command::new("kill").args(["-KILL", &me]).status();
        }
        other => eprintln!("esatto-whole: no such ending: {other}"),
    }
    drop(idler);
    ExitCode::SUCCESS
}
