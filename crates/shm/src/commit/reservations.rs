//! Targets of writers: buffers, and reservations for buffers that are not known yet.

use esatto_map::Map;

/// Destination of a writer's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A buffer of the service. Chunks for buffer 0 are discarded.
    Buffer(u16),
    /// A reservation for a buffer that is not known yet (§14). Never sent.
    Reservation(u16),
}

impl Target {
    pub(crate) fn buffer(self) -> u16 {
        match self {
            Self::Buffer(id) => id,
            // Nothing is sent while a reservation is unresolved. The service would discard a chunk
            // for buffer 0.
            Self::Reservation(_) => 0,
        }
    }
}

/// Reservations of startup tracing (§14).
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    known: Map<u16, Reservation>,
    unresolved: usize,
}

#[derive(Debug)]
enum Reservation {
    /// Writers that were made for it.
    Open(Vec<u16>),
    Resolved(u16),
}

impl Reservations {
    /// Returns true while nothing may be sent.
    pub(crate) fn hold(&self) -> bool {
        self.unresolved > 0
    }

    /// Adds a writer to a reservation. Returns its buffer if that is known already.
    pub(crate) fn add_writer(&mut self, reservation: u16, writer_id: u16) -> Option<u16> {
        let unresolved = &mut self.unresolved;
        let entry = self.known.get_or_insert_with(reservation, || {
            *unresolved += 1;
            Reservation::Open(Vec::new())
        });
        match entry {
            Reservation::Open(writers) => {
                writers.push(writer_id);
                None
            }
            Reservation::Resolved(buffer) => Some(*buffer),
        }
    }

    pub(crate) fn remove_writer(&mut self, reservation: u16, writer_id: u16) {
        if let Some(Reservation::Open(writers)) = self.known.get_mut(&reservation) {
            writers.retain(|id| *id != writer_id);
        }
    }

    /// Returns the target, with the buffer in place of a resolved reservation.
    pub(crate) fn resolved(&self, target: Target) -> Target {
        match target {
            Target::Reservation(number) => match self.known.get(&number) {
                Some(Reservation::Resolved(buffer)) => Target::Buffer(*buffer),
                _ => target,
            },
            Target::Buffer(_) => target,
        }
    }

    /// Resolves a reservation and returns its writers. Returns `None` if it was resolved before.
    pub(crate) fn resolve(&mut self, reservation: u16, buffer: u16) -> Option<Vec<u16>> {
        match self.known.insert(reservation, Reservation::Resolved(buffer)) {
            Some(Reservation::Open(writers)) => {
                self.unresolved -= 1;
                Some(writers)
            }
            Some(Reservation::Resolved(before)) => {
                self.known.insert(reservation, Reservation::Resolved(before));
                None
            }
            None => Some(Vec::new()),
        }
    }
}
