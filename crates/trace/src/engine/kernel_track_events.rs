//! Kernel events that describe their own tracks.
//!
//! By a convention of the tracer, an event of any name is a slice, an instant or the value of a
//! counter if it has fields of certain names. Drivers use it to draw tracks of their own.

use super::context::Context;
use super::generic_event::{Content, Scope, TrackFields};
use super::kernel_event::{Event, Place};
use super::slices::PENDING;
use super::tracks::{Dimension, TrackSpec};

impl Context {
    /// Imports an event that describes its own track.
    pub(super) fn import_kernel_track_event(&mut self, place: Place, id: u32, event: Event<'_>) {
        let Some(generic) = self.generic_events.get(&(place.machine, id)) else { return };
        let Some(fields) = generic.track else { return };
        let tracepoint = generic.name.clone();
        if self.add_to_own_track(place, event, fields, &tracepoint).is_none() {
            self.stats.count("kernel_trackevent_format_error");
        }
    }

    /// Returns `None` if a field is missing or has no meaning.
    fn add_to_own_track(
        &mut self,
        place: Place,
        event: Event<'_>,
        fields: TrackFields,
        tracepoint: &str,
    ) -> Option<()> {
        let tracepoint = self.symbol(tracepoint);
        let title = match fields.track_name {
            Some(id) => self.tables.strings.add(event.field(id)?.as_bytes()),
            None => tracepoint,
        };
        let is_counter = matches!(fields.content, Content::Counter { .. });
        let (kinds, owner) = match fields.scope {
            None => {
                let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
                (["kernel_trackevent_thread_slice", "kernel_trackevent_thread_counter"], Dimension::Thread(utid))
            }
            Some((scope, id)) => {
                let field = event.field(id)?;
                match scope {
                    Scope::Process => {
                        let upid = self.processes.process(&mut self.tables, place.machine, field.as_i64());
                        let kinds = ["kernel_trackevent_process_slice", "kernel_trackevent_process_counter"];
                        (kinds, Dimension::Process(upid))
                    }
                    Scope::Cpu => {
                        self.list_cpu(place.machine, field.as_u32());
                        let kinds = ["kernel_trackevent_cpu_slice", "kernel_trackevent_cpu_counter"];
                        (kinds, Dimension::Cpu(field.as_u32()))
                    }
                    Scope::Custom => {
                        let kinds = ["kernel_trackevent_custom_slice", "kernel_trackevent_custom_counter"];
                        (kinds, Dimension::Number("scope", field.as_i64()))
                    }
                }
            }
        };
        let dimensions = [owner, Dimension::Symbol("tracepoint", tracepoint), Dimension::Symbol("name", title)];
        let machine = self.processes.machine_row(place.machine);
        let spec = TrackSpec {
            machine,
            is_counter,
            ..TrackSpec::new(kinds[usize::from(is_counter)], Some(title), &dimensions)
        };
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        match fields.content {
            Content::Counter { value } => {
                let value = event.field(value)?.as_i64() as f64;
                self.add_counter(track, place.ts, value);
            }
            Content::Slice { phase, name } => {
                let (phase, name) = (event.field(phase)?.as_i64(), event.field(name)?);
                let name = String::from_utf8_lossy(name.as_bytes());
                match u8::try_from(phase & 0xff) {
                    Ok(b'B') => self.add_kernel_slice(place.ts, track, PENDING, None, &name, &mut Vec::new()),
                    Ok(b'E') => self.end_kernel_slice(place.ts, track, None, None, &[]),
                    Ok(b'I') => self.add_kernel_slice(place.ts, track, 0, None, &name, &mut Vec::new()),
                    _ => return None,
                }
            }
        }
        Some(())
    }
}
