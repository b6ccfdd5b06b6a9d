//! Configs of instances: the config of an entry, with the fields that the service sets
//! (`docs/spec/service.md §6, §8`).

use std::sync::Arc;

use esatto_protozero::Fields;
use esatto_schema::trace_config::buffer_config::FillPolicy;
use esatto_schema::{DataSourceConfigReader, RING_BYTES_FIELD};

use super::{Session, config_check};
use crate::context::Context;
use crate::ids::BufferId;

/// The data source of track events.
const TRACK_EVENT: &[u8] = b"track_event";

impl Session {
    /// Returns the config of an entry's instances, which is made once.
    pub(crate) fn config_of(&mut self, entry: usize, buffer: BufferId, cx: &mut Context<'_>) -> Arc<[u8]> {
        if let Some(made) = self.entries.instance_configs.get(&entry) {
            return Arc::clone(made);
        }
        let config = self.entries.configs.get(entry).map_or(&[][..], Vec::as_slice);
        let made: Arc<[u8]> = instance_config(self, config, buffer).into();
        cx.charge_bytes(made.len());
        self.entries.instance_configs.insert(entry, Arc::clone(&made));
        made
    }
}

/// Makes the config of an instance: the entry's, byte for byte, with the fields that the service
/// sets.
fn instance_config(session: &Session, entry_config: &[u8], buffer: BufferId) -> Vec<u8> {
    let overwritten = [2, 3, 4, 6, 7, 8, 122, RING_BYTES_FIELD];
    let prefers_suspend_clock = session.config.prefer_suspend_clock_for_duration;
    let mut out = Vec::with_capacity(entry_config.len() + 64);
    let mut fields = Fields::new(entry_config);
    let mut copied_to = 0;
    while let Some((field, bytes)) = fields.next_with_bytes() {
        if overwritten.contains(&field.id) && (field.id != 122 || prefers_suspend_clock.is_some()) {
            let end = fields.offset();
            out.extend_from_slice(&entry_config[copied_to..end - bytes.len()]);
            copied_to = end;
        }
    }
    out.extend_from_slice(&entry_config[copied_to..fields.offset()]);

    let mut own = esatto_protozero::HeapBuffer::new();
    let mut config = esatto_schema::DataSourceConfigWriter::from(own.message());
    config.target_buffer(buffer.0.into());
    config.trace_duration_ms(session.config.duration_ms.unwrap_or(0));
    config.tracing_session_id(session.id.0);
    config.enable_extra_guardrails(config_check::is_guarded(&session.config));
    config.stop_timeout_ms(session.stop_timeout_ms());
    if let Some(prefers) = prefers_suspend_clock {
        config.prefer_suspend_clock_for_duration(prefers);
    }
    config.session_initiator(esatto_schema::data_source_config::SessionInitiator::SESSION_INITIATOR_UNSPECIFIED);
    if let Some(bytes) = ring_bytes(session, entry_config, buffer) {
        config.message().varint(RING_BYTES_FIELD, bytes);
    }
    drop(config);
    out.extend_from_slice(own.as_slice());
    out
}

/// Returns the size of the ring that a data source of track events writes into. Programs with
/// Esatto's SDK send the names of their events often enough for it. With a `clear_period_ms` of 0,
/// they shall not.
fn ring_bytes(session: &Session, entry_config: &[u8], buffer: BufferId) -> Option<u64> {
    let clears = session.config.incremental_state_config.as_ref().and_then(|clears| clears.clear_period_ms);
    if DataSourceConfigReader::new(entry_config).name() != Some(TRACK_EVENT) || clears == Some(0) {
        return None;
    }
    let index = session.buffers.iter().position(|id| *id == buffer)?;
    let config = session.config.buffers.get(index)?;
    let is_ring = config.fill_policy != Some(FillPolicy::DISCARD);
    config.size_kb.filter(|_| is_ring).map(|kb| u64::from(kb) * 1024)
}

/// Returns the raw config of each `data_sources` entry of an encoded TraceConfig, in order.
pub(crate) fn raw_source_configs(config: esatto_schema::TraceConfigReader<'_>) -> Vec<Vec<u8>> {
    config
        .data_sources()
        .map(|source| {
            source.config().map_or_else(Vec::new, |config: DataSourceConfigReader<'_>| config.as_bytes().to_vec())
        })
        .collect()
}
