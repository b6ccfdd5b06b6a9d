//! The texts of test events (`TracePacket.for_testing`) of a trace.

use std::path::Path;

use esatto_protozero::Fields;
use esatto_schema::TracePacketReader;

const FOR_TESTING: u32 = 900;

/// A `TestEvent`: `str` and the texts in `payload`.
fn event(bytes: &[u8]) -> (String, Vec<Vec<u8>>) {
    let (mut name, mut pieces) = (String::new(), Vec::new());
    let mut fields = Fields::new(bytes);
    for field in fields.by_ref() {
        match field.id {
            1 => name = field.as_str().expect("text").to_owned(),
            5 => pieces.extend(Fields::new(field.as_bytes()).map(|piece| piece.as_bytes().to_owned())),
            _ => {}
        }
    }
    assert!(!fields.is_malformed());
    (name, pieces)
}

/// Returns the `TestEvent`s of a trace, in its order. No packet may be lost.
pub(crate) fn test_events(trace: &Path) -> Vec<(String, Vec<Vec<u8>>)> {
    let trace = std::fs::read(trace).expect("the program wrote a trace");
    let mut seen = Vec::new();
    for packet in Fields::new(&trace) {
        let packet = packet.as_bytes();
        assert_eq!(TracePacketReader::new(packet).previous_packet_dropped().filter(|&loss| loss > 1), None);
        if let Some(field) = Fields::new(packet).first(FOR_TESTING) {
            seen.push(event(field.as_bytes()));
        }
    }
    seen
}
