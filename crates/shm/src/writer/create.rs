//! Creation of writers for the buffers of an arbiter.

use std::sync::Arc;

use super::trace_writer::TraceWriter;
use crate::{
    arbiter::{Arbiter, ExhaustedPolicy},
    commit::Target,
};

impl Arbiter {
    /// Makes a writer for a buffer of the service (global id, 1 to 65535). Allocates.
    ///
    /// The writer drops everything ([`TraceWriter::is_null`]) if the buffer is 0, the arbiter was
    /// shut down, or 32767 writers are alive.
    pub fn create_writer(self: &Arc<Self>, target_buffer: u16, policy: ExhaustedPolicy) -> TraceWriter {
        if target_buffer == 0 {
            return TraceWriter::null();
        }
        create(self, Target::Buffer(target_buffer), policy)
    }

    /// Makes a writer whose buffer is not known yet (§14). It drops packets if the memory is full.
    ///
    /// Until [`bind_reservation`](Self::bind_reservation) or
    /// [`abort_reservation`](Self::abort_reservation) is called with this number (1 to 65535, the
    /// caller's choice), *nothing* is committed for the whole arbiter.
    pub fn create_startup_writer(self: &Arc<Self>, reservation: u16) -> TraceWriter {
        if reservation == 0 {
            return TraceWriter::null();
        }
        create(self, Target::Reservation(reservation), ExhaustedPolicy::Drop)
    }
}

fn create(arbiter: &Arc<Arbiter>, target: Target, policy: ExhaustedPolicy) -> TraceWriter {
    match arbiter.add_writer(target) {
        Some(writer) => TraceWriter::new(Arc::clone(arbiter), writer, policy),
        None => TraceWriter::null(),
    }
}
