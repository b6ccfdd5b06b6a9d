//! Table of the central buffers of all sessions.

use esatto_map::Map;
use esatto_schema::TraceConfig;
use esatto_schema::trace_config::buffer_config::FillPolicy as ConfigFillPolicy;

use super::{CentralBuffer, FillPolicy};
use crate::ids::{BufferId, next_free};

/// The central buffers of all sessions, and the counters of data that no buffer accepted.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// Boxed, so that removing an entry moves only pointers.
    pub(crate) by_id: Map<BufferId, Box<CentralBuffer>>,
    last: u16,
    /// Limit of all buffers together; see
    /// [`Service::limit_buffers`](crate::Service::limit_buffers).
    pub(crate) max_bytes: u64,
    pub(crate) discarded: Discarded,
    /// Rings whose writers have to write their names again, if the service asks them to.
    pub(crate) names: Option<RingNames>,
    /// Space for a chunk on its way from shared memory into a buffer.
    pub(crate) scratch: Vec<u8>,
}

/// How often the writers of rings are asked for their names
/// (see [`Service::keep_names`](crate::Service::keep_names)).
#[derive(Debug)]
pub(crate) struct RingNames {
    /// The shortest time between two requests.
    pub(crate) interval_ns: u64,
    /// Rings that need names, each once.
    pub(crate) due: Vec<BufferId>,
}

/// A ring has so many parts. Writers are asked for their names once for each.
const NAMED_PARTS: u64 = 8;

impl RingNames {
    /// Notes a buffer if its writers have to write their names again.
    pub(crate) fn note(&mut self, id: BufferId, buffer: &mut CentralBuffer) {
        if buffer.begins_to_need_names(NAMED_PARTS) {
            self.due.push(id);
        }
    }
}

/// Chunks and patches that were refused before they reached a buffer, of all sessions together.
#[derive(Debug, Default)]
pub(crate) struct Discarded {
    pub(crate) chunks: u64,
    pub(crate) patches: u64,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            by_id: Map::new(),
            last: 0,
            max_bytes: u64::MAX,
            discarded: Discarded::default(),
            names: None,
            scratch: Vec::new(),
        }
    }
}

impl Buffers {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: BufferId) -> Option<&CentralBuffer> {
        self.by_id.get(&id).map(|buffer| &**buffer)
    }

    pub(crate) fn get_mut(&mut self, id: BufferId) -> Option<&mut CentralBuffer> {
        self.by_id.get_mut(&id).map(|buffer| &mut **buffer)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CentralBuffer> {
        self.by_id.values().map(|buffer| &**buffer)
    }

    /// Sums up the bytes that sessions have asked for, filled or not.
    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(|buffer| buffer.size_bytes() as u64).sum()
    }

    /// Sums up the work that these buffers have done.
    pub(crate) fn work_of(&self, ids: &[BufferId]) -> u64 {
        ids.iter().filter_map(|&id| self.get(id)).map(CentralBuffer::work).sum()
    }

    /// Allocates all buffers of a config, or none, each with at least this size.
    ///
    /// # Errors
    ///
    /// A text for the consumer, if there is no memory for one of them.
    pub(crate) fn allocate(&mut self, config: &TraceConfig, min_kb: u32) -> Result<Vec<BufferId>, String> {
        let mut ids = Vec::with_capacity(config.buffers.len());
        for buffer in &config.buffers {
            let policy = match buffer.fill_policy {
                Some(ConfigFillPolicy::DISCARD) => FillPolicy::Discard,
                _ => FillPolicy::Ring,
            };
            let size_kb = buffer.size_kb.unwrap_or(0).max(min_kb);
            let allocated = CentralBuffer::new(size_kb, policy).ok();
            let Some(id) = allocated.and_then(|buffer| self.insert(buffer)) else {
                for id in ids {
                    self.by_id.remove(&id);
                }
                return Err(format!("there is no memory for a buffer of {size_kb} KiB"));
            };
            ids.push(id);
        }
        Ok(ids)
    }

    /// Adds a buffer under a new number. Returns `None` if no number is free.
    pub(crate) fn insert(&mut self, buffer: CentralBuffer) -> Option<BufferId> {
        let id = next_free(self.last, |id| self.by_id.contains_key(&BufferId(id)))?;
        self.last = id;
        self.by_id.insert(BufferId(id), Box::new(buffer));
        Some(BufferId(id))
    }

    /// Puts a buffer in place of the one that has this number.
    pub(crate) fn replace(&mut self, id: BufferId, buffer: CentralBuffer) {
        self.by_id.insert(id, Box::new(buffer));
    }

    pub(crate) fn remove(&mut self, id: BufferId) -> Option<Box<CentralBuffer>> {
        self.by_id.remove(&id)
    }
}
