//! Descriptors of tracks (`docs/spec/track-event.md` §7).

use std::borrow::Cow;

use esatto_schema::TrackDescriptorWriter;

use super::{Kind, Track};
use crate::os::process_info::{self, Pid};

impl Track {
    /// Writes the descriptor, for a service that knows this process by `pid`.
    pub(crate) fn describe(&self, pid: &Pid, out: &mut TrackDescriptorWriter<'_>) {
        out.uuid(self.uuid());
        let parent = self.parent_uuid();
        let names_parent = match self.kind {
            Kind::Process => false,
            // The thread's track is a child of the process.
            Kind::Thread(_) => {
                out.parent_uuid(crate::track_uuid::process_uuid());
                false
            }
            _ => parent != 0,
        };
        if names_parent {
            out.parent_uuid(parent);
        }
        match &self.name {
            name if name.is_empty() => {}
            // Processes and threads have their own name field.
            _ if matches!(self.kind, Kind::Process | Kind::Thread(_)) => {}
            Cow::Borrowed(name) => drop(out.static_name(name)),
            Cow::Owned(name) => drop(out.name(name)),
        }
        match &self.kind {
            Kind::Events => {}
            Kind::Process => process_info::describe(&self.name, pid, &mut out.process()),
            Kind::Thread(tid) => {
                let thread = tid.map_or_else(process_info::Thread::current, process_info::Thread::of_tid);
                thread.describe(&self.name, pid, &mut out.thread());
            }
            Kind::Counter(counter) => counter.write(&mut out.counter()),
            Kind::State => drop(out.state()),
        }
        self.appearance.write(out);
    }
}
