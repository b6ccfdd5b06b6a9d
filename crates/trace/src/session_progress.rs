//! How far a session and its reader have come, as far as the trace tells it.

use esatto_protozero::Fields;
use esatto_schema::trace_packet::field as packet_field;
use esatto_schema::tracing_service_event;

/// Sequence of the packets that the service itself writes (`docs/spec/service.md` §16).
pub(crate) const SERVICE_SEQUENCE: u32 = 1;

/// Progress of the session and of its reader, as far as the trace tells it. The order of the
/// packets in the file counts, not their timestamps.
#[derive(Debug, Default, Clone, Copy)]
pub struct SessionProgress {
    has_started: bool,
    has_ended: bool,
    /// Readings of all that the buffers had.
    readings: u64,
    /// A packet of a program follows the last of these readings.
    is_in_reading: bool,
    /// One of these readings is after the session's end.
    is_end_read: bool,
}

impl SessionProgress {
    /// Notes a packet of a program.
    pub(crate) fn add_packet(&mut self) {
        self.is_in_reading = true;
    }

    /// Notes an encoded `TracePacket`, as it is in a trace.
    pub fn add(&mut self, packet: &[u8]) {
        let (mut is_from_user, mut sequence, mut event) = (false, 0, None);
        for f in Fields::new(packet) {
            match f.id {
                packet_field::TRUSTED_UID => is_from_user = true,
                packet_field::TRUSTED_PACKET_SEQUENCE_ID => sequence = f.as_u32(),
                packet_field::SERVICE_EVENT => event = Some(f.as_bytes()),
                _ => {}
            }
        }
        if is_from_user && sequence > SERVICE_SEQUENCE {
            self.add_packet();
        }
        for f in Fields::new(event.unwrap_or_default()).filter(|f| f.as_bool()) {
            self.add_event(f.id);
        }
    }

    /// Notes an event of the service.
    pub(crate) fn add_event(&mut self, id: u32) {
        use tracing_service_event::field;
        match id {
            field::TRACING_STARTED => self.has_started = true,
            field::TRACING_DISABLED => self.has_ended = true,
            field::READ_TRACING_BUFFERS_COMPLETED => {
                self.readings += 1;
                self.is_in_reading = false;
                self.is_end_read |= self.has_ended;
            }
            _ => {}
        }
    }

    /// Returns whether the trace lacks the session's end, or the rest of a reading. `is_streamed`
    /// says that the service itself wrote the file.
    ///
    /// A program may read a session once while it records, and have all that it wants. If it reads
    /// twice, it collects the whole session. Not every service writes such events: without them,
    /// nothing is known.
    pub fn lacks_end(&self, is_streamed: bool) -> bool {
        match (self.has_started, self.has_ended) {
            (false, _) => false,
            (true, true) => !self.is_end_read,
            (true, false) => is_streamed || self.is_in_reading || self.readings > 1,
        }
    }

    /// Returns whether the session was read more than once.
    pub(crate) fn is_read_again(&self) -> bool {
        self.readings > 1
    }
}
