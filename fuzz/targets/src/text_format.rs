//! Configs in text format.

use std::sync::OnceLock;

use esatto_text_format::{Parser, parse, to_text};
use prost_reflect::{DescriptorPool, MessageDescriptor};

/// A trace config as text, parsed, printed and parsed again.
pub fn text_format(bytes: &[u8]) {
    let message = trace_config();
    match parse(message, bytes) {
        Ok(encoded) => {
            let printed = to_text(message, &encoded);
            let again = parse(message, &printed).unwrap_or_else(|errors| panic!("{errors}\nof\n{printed}"));
            assert_eq!(to_text(message, &again), printed);
            let placed = Parser::new(message.clone()).parse_with_places(bytes);
            let (same, places) = placed.unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(same, encoded);
            for (index, place) in places.iter().enumerate() {
                assert!(place.name.end <= place.value.start && place.value.end <= bytes.len(), "{place:?}");
                assert!(place.parent.is_none_or(|parent| parent < index), "{place:?}");
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            let _ = errors.to_string();
        }
    }
    let _ = Parser::new(message.clone()).lossy(true).parse(bytes);
    let _ = to_text(message, bytes);
}

fn trace_config() -> &'static MessageDescriptor {
    static MESSAGE: OnceLock<MessageDescriptor> = OnceLock::new();
    MESSAGE.get_or_init(|| {
        let pool = DescriptorPool::decode(esatto_schema::FILE_DESCRIPTOR_SET).expect("our own descriptors");
        pool.get_message_by_name("perfetto.protos.TraceConfig").expect("a message of ours")
    })
}
