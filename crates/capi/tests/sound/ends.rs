//! Libraries that are unloaded, processes and threads that end, and signals.

use std::process::Command;

use crate::build::{library_folder, linked, program, succeed};

#[test]
fn a_closed_library_stays_loaded_and_two_libraries_are_independent() {
    let [v58, v59] = ["libperfetto_c.so", "libperfetto_c_v59.so"].map(|name| library_folder().join(name));
    succeed(Command::new(program("unloaded.c", &["-ldl"])).arg(v58).arg(v59));
}

#[test]
fn processes_and_threads_end_while_they_trace() {
    let program = linked("ends.c");
    for mode in 0..8 {
        println!("mode {mode}");
        succeed(Command::new(&program).arg(mode.to_string()));
    }
}

#[test]
fn trace_points_of_signal_handlers_record_or_do_nothing() {
    succeed(&mut Command::new(linked("signals.c")));
}
