//! Adoption: a session takes over what startup tracing records, if both configs want the same
//! (`docs/spec/client-library.md` §12).

use std::collections::BinaryHeap;

use esatto_map::Set;
use esatto_protozero::Fields;
use esatto_schema::{DataSourceConfigReader, TrackEventConfigReader};

/// Fields of `DataSourceConfig` that do not affect the recorded data: `target_buffer`,
/// `trace_duration_ms`, `tracing_session_id`, `enable_extra_guardrails`, `stop_timeout_ms`,
/// `session_initiator`.
const OF_THE_SESSION: [u32; 6] = [2, 3, 4, 6, 7, 8];

/// Returns the fields of a `DataSourceConfig` that affect what is recorded, in a fixed order: equal
/// for configs that want the same.
pub(crate) fn canonical(config: &[u8]) -> Vec<(u32, &[u8])> {
    // A heap sorts in little code. Positions are included, because the order of repeated fields has
    // a meaning.
    let mut kept = BinaryHeap::new();
    let mut fields = Fields::new(config);
    while let Some((field, encoded)) = fields.next_with_bytes() {
        if !OF_THE_SESSION.contains(&field.id) {
            kept.push((field.id, kept.len(), encoded));
        }
    }
    kept.into_sorted_vec().into_iter().map(|(id, _, encoded)| (id, encoded)).collect()
}

/// Returns true if a session with the config `session` may take over the track events that were
/// recorded for the config `startup`.
pub(super) fn can_adopt_track_events(startup: &[u8], session: &[u8]) -> bool {
    match (wishes(startup), wishes(session)) {
        (Some(startup), Some(session)) => startup == session,
        _ => false,
    }
}

/// The parts of two configs that must agree if events of one are to serve the other
#[derive(PartialEq)]
struct Wishes<'a> {
    patterns: [Set<&'a [u8]>; 4],
    filters: [bool; 2],
}

/// Returns `None` if there is no config for track events.
fn wishes(config: &[u8]) -> Option<Wishes<'_>> {
    let bytes = DataSourceConfigReader::new(config).track_event_config()?.as_bytes();
    if bytes.is_empty() {
        return None;
    }
    let config = TrackEventConfigReader::new(bytes);
    Some(Wishes {
        patterns: [
            config.enabled_categories().collect(),
            config.disabled_categories().collect(),
            config.enabled_tags().collect(),
            config.disabled_tags().collect(),
        ],
        filters: [
            config.filter_debug_annotations().unwrap_or(false),
            config.filter_dynamic_event_names().unwrap_or(false),
        ],
    })
}

#[cfg(test)]
mod tests {
    use esatto_protozero::Owned;
    use esatto_schema::{DataSourceConfig, TestConfig};

    use super::*;

    fn config() -> DataSourceConfig {
        DataSourceConfig {
            name: Some("x".into()),
            for_testing: Some(TestConfig { message_count: Some(5), ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn fields_of_the_session_do_not_affect_equality() {
        let mut other = config();
        other.target_buffer = Some(7);
        other.tracing_session_id = Some(9);
        other.stop_timeout_ms = Some(5000);
        assert_eq!(canonical(&config().encode()), canonical(&other.encode()));
        other.legacy_config = Some("y".into());
        assert_ne!(canonical(&config().encode()), canonical(&other.encode()));
    }
}
