//! The work that an input may cost. It depends on the input's bytes, on its outputs and on the
//! state that it is about, never on the state of other clients.

use esatto_service::Step;
use esatto_service::{Input, Output};

use crate::memory::Seen;
use crate::world::{World, trace};

/// Work units that any input may cost: it makes, moves or ends a few things.
const BASE: u64 = 200;

/// Work units per byte of a call: the least chunk in a frame has some 20 bytes, and finding its
/// place takes a few searches.
const PER_BYTE: u64 = 8;

/// Work units per output: a command, a timer, a reply.
const PER_OUTPUT: u64 = 16;

/// Output bytes per work unit: each byte is copied a few times. A byte taken from shared memory may
/// be a fragment, and is copied.
const OUTPUT_BYTES: u64 = 8;

/// Work units of one turn of reading, for any content of the buffers, and of the packet with which
/// the turn ends.
const PER_READ: u64 = (1 << 17) + (1 << 16);

/// Work units per session, of which there are few.
const PER_SESSION: u64 = 8;

/// Work units per instance, registration or writer of the sessions that an input is about.
const PER_THING: u64 = 8;

/// Work units of scraping a producer: each page of the largest memory is looked at.
const PER_SCRAPE: u64 = 8192;

/// Work units of a clone per buffer that is copied: the largest buffer here, and the state of its
/// sequences.
const PER_COPY: u64 = 2 * (512 << 10) / 64;

/// Work units per chunk that is overwritten: its own input was charged for it.
const PER_OVERWRITTEN: u64 = 8;

/// Chunks that are overwritten per input byte: a record takes 16 bytes, and takes up to 32 chunks
/// with it.
const OVERWRITTEN_PER_BYTE: u64 = 2;

/// The state that an input is about, beside the content of its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum About {
    /// Only the content of a producer's call.
    #[default]
    Itself,
    /// Whole sessions: they begin, have flushed, are read or reported, or end. A producer that
    /// leaves or unregisters something may be the last one that they wait for.
    Sessions,
}

impl About {
    pub(crate) fn of(input: &Input<'_>) -> Self {
        use esatto_service::ProducerCall::{
            ActivateTriggers, CommitData, NotifyDataSourceStarted, NotifyDataSourceStopped, UnregisterDataSource,
        };
        match input {
            // The last answer that sessions wait for, or the first trigger.
            Input::ProducerCall {
                method:
                    ActivateTriggers(_) | NotifyDataSourceStarted(_) | NotifyDataSourceStopped(_) | UnregisterDataSource(_),
                ..
            } => Self::Sessions,
            Input::ProducerCall { method: CommitData(request), .. } if request.flush_request_id().is_some() => {
                Self::Sessions
            }
            Input::ProducerCall { .. }
            | Input::RelayCall { .. }
            | Input::RelayConnected { .. }
            | Input::RelayDisconnected(_)
            | Input::MachineNamed { .. }
            | Input::ProducerConnected { .. }
            | Input::ConsumerConnected { .. } => Self::Itself,
            _ => Self::Sessions,
        }
    }
}

/// Returns the number of output bytes.
pub(crate) fn bytes_of<'a>(outputs: impl IntoIterator<Item = &'a Output>) -> u64 {
    let bytes = outputs.into_iter().map(|output| match output {
        Output::Reply(reply) => reply.body.as_bytes().len(),
        Output::WriteFile { bytes, .. } => bytes.len(),
        _ => 0,
    });
    bytes.sum::<usize>() as u64
}

impl World {
    /// Checks that the last input cost no more than it may, after any earlier inputs.
    pub(crate) fn check_work(&self, outputs: &[Output], seen: &[Seen]) {
        let bytes = self.input_bytes as u64;
        let shared_bytes: u64 = seen
            .iter()
            .map(|seen| match seen {
                Seen::Took(_, Some(chunk)) | Seen::Scraped(_, chunk) => chunk.payload.len() as u64,
                Seen::Step(_) | Seen::Took(..) | Seen::ScrapeBegins(_) => 0,
            })
            .sum();
        let scrapes = seen.iter().filter(|seen| matches!(seen, Seen::ScrapeBegins(_))).count() as u64;
        let is_copy = |seen: &&Seen| matches!(seen, Seen::Step(Step::CloneTakes { .. }));
        let copies = seen.iter().filter(is_copy).count() as u64;
        let out_bytes = bytes_of(outputs);
        let is_read = |seen: &&Seen| matches!(seen, Seen::Step(Step::Read { .. }));
        let reads = seen.iter().filter(is_read).count() as u64;
        let sessions = self.model.sessions.values();
        let asks_for_names = seen.iter().any(|seen| matches!(seen, Seen::Step(Step::AsksForNames)));
        let things: usize = match self.about {
            About::Itself if asks_for_names => sessions.map(|session| session.instances.len()).sum(),
            About::Itself => 0,
            About::Sessions => {
                let producers = self.model.producers.values().map(|producer| 1 + producer.writers.len());
                let registrations = (0..self.clients.len()).map(|index| self.registrations(index));
                sessions.map(|session| session.instances.len()).sum::<usize>()
                    + producers.sum::<usize>()
                    + registrations.sum::<usize>()
            }
        };
        let allowed = BASE
            + PER_BYTE * bytes
            + PER_OUTPUT * outputs.len() as u64
            + out_bytes / OUTPUT_BYTES
            + 4 * shared_bytes
            + PER_OVERWRITTEN * self.model.overwritten.min(BASE + OVERWRITTEN_PER_BYTE * (bytes + shared_bytes))
            + PER_READ * reads
            + PER_SCRAPE * scrapes
            + PER_COPY * copies
            + PER_SESSION * self.model.sessions.len() as u64
            + PER_THING * things as u64;
        let work = self.work;
        assert!(
            work <= allowed,
            "work: {work} units, at most {allowed} are allowed: {bytes} bytes, {} outputs of {out_bytes} bytes, {:?}, {things} things",
            outputs.len(),
            self.about
        );
        if work > allowed / 2 {
            trace!(self, "work: {work} of {allowed}");
        }
    }

    /// Returns the most data sources that a client can have registered.
    fn registrations(&self, index: usize) -> usize {
        self.clients[index].registered
    }
}
