//! Paths of fields, such as `data_sources[1].config.name`.

use esatto_text_format::Places;
use prost_reflect::MessageDescriptor;

use crate::trace_config;

/// Returns the index of the place of a field, or of the innermost message around it that the text
/// has.
pub(crate) fn find(places: &Places, path: &str) -> Option<usize> {
    let mut message: Option<MessageDescriptor> = trace_config::message().ok();
    let mut found = None;
    for step in path.split('.') {
        let (name, index) = parts(step);
        let Some(field) = message.as_ref().and_then(|message| message.get_field_by_name(name)) else { break };
        let Some(place) = places.find(found, field.number(), index) else { break };
        found = Some(place);
        message = field.kind().as_message().cloned();
    }
    found
}

/// Returns the name and the index of a step; without an index it is 0.
fn parts(step: &str) -> (&str, usize) {
    let Some((name, index)) = step.split_once('[') else { return (step, 0) };
    (name, index.trim_end_matches(']').parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_or_the_message_around_it_is_found() {
        let text = "duration_ms: 5\nbuffers { size_kb: 1 }\nbuffers { size_kb: 2 }\n";
        let parser = esatto_text_format::Parser::new(trace_config::message().unwrap());
        let (_, places) = parser.parse_with_places(text).unwrap();
        let value = |path: &str| find(&places, path).map(|index| &text[places[index].value.clone()]);
        assert_eq!(value("buffers[1].size_kb"), Some("2"));
        assert_eq!(value("buffers[0].fill_policy"), Some("{ size_kb: 1 }"));
        assert_eq!(value("buffers"), Some("{ size_kb: 1 }"));
        assert_eq!(value("duration_ms"), Some("5"));
        assert_eq!((value("flush_period_ms"), value(""), value("no.such[7].field")), (None, None, None));
    }
}
