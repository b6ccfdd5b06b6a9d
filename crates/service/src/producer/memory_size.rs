//! Size of the shared memory that the service makes for a producer (`docs/spec/service.md §2`).

use esatto_schema::TraceConfig;

use super::Producer;
use crate::shared_buffer::granted_sizes;

impl Producer {
    /// Returns the bytes of the region and of a page. The session's config decides if it names
    /// them for this producer, otherwise the producer's hint does. If neither names bytes of the
    /// region, they are `default_bytes`.
    pub(crate) fn memory_sizes(&self, config: &TraceConfig, default_bytes: usize) -> (usize, usize) {
        let wish =
            config.producers.iter().find(|wish| wish.producer_name.as_deref().unwrap_or_default() == &*self.name);
        let bytes = |kb: Option<u32>, hint: usize| match kb {
            None | Some(0) => hint,
            Some(kb) => (kb as usize).saturating_mul(1024),
        };
        let region = match bytes(wish.and_then(|wish| wish.shm_size_kb), self.smb_size_hint) {
            0 => default_bytes,
            named => named,
        };
        granted_sizes(region, bytes(wish.and_then(|wish| wish.page_size_kb), self.page_size_hint))
    }
}
