//! Owners of tracks, and their labels.

use esatto_trace::tables::{Row, Tables};

/// Kind of the track on which the slices of a thread nest.
const OWN_THREAD_TRACK: &str = "thread_execution";

/// Owner of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The track is that of the thread itself.
    OwnThread(Row),
    /// A further track of the thread.
    Thread(Row),
    Process(Row),
    Machine,
}

pub(crate) fn owner_of_track(tables: &Tables, track: Row) -> Owner {
    let index = track.index();
    match (tables.track.utid[index], tables.track.upid[index]) {
        (Some(thread), _) if tables.strings.get(tables.track.r#type[index]) == OWN_THREAD_TRACK => {
            Owner::OwnThread(thread)
        }
        (Some(thread), _) => Owner::Thread(thread),
        (None, Some(process)) => Owner::Process(process),
        (None, None) => Owner::Machine,
    }
}

/// Returns the name of a process and its pid.
pub(crate) fn process_label(tables: &Tables, process: Row) -> String {
    let index = process.index();
    let name = tables.process.name[index].map_or("", |name| tables.strings.get(name));
    label(name, "process", tables.process.pid[index])
}

/// Returns the name of a thread and its tid.
pub(crate) fn thread_label(tables: &Tables, thread: Row) -> String {
    let index = thread.index();
    let name = tables.thread.name[index].map_or("", |name| tables.strings.get(name));
    label(name, "thread", tables.thread.tid[index])
}

fn label(name: &str, kind: &str, id: i64) -> String {
    let name = if name.is_empty() { kind } else { name };
    format!("{name} {id}")
}
