use std::path::Path;

use esatto_protozero::Fields;
use esatto_schema::TracePacketReader;

use crate::build::{file, run};

const FOR_TESTING: u32 = 900;

/// `TestEvent`: `str` and the texts in `payload`.
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

/// The `TestEvent`s of a trace, in its order. No packet may have been lost.
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

#[test]
fn what_the_program_writes_with_its_own_encoder_in_order_and_whole() {
    let path = file("data_source.pftrace");
    run("data_source.c", "data_source", &[], &[&path]);
    let seen = test_events(&path);
    let expected = |name: &str, pieces: usize, size: usize| {
        (name.to_owned(), (0..pieces).map(|i| vec![b'a' + (i % 26) as u8; size]).collect::<Vec<_>>())
    };
    let by_name = |name: &str| seen.iter().filter(|(other, _)| other == name).cloned().collect::<Vec<_>>();
    for (name, pieces, size) in [
        ("small", 1, 5),
        ("large", 40, 1000),
        ("one large piece", 1, 30000),
        ("behind", 2, 5),
        ("after break", 1, 5),
        ("other thread", 1, 10),
        ("while stopping", 1, 10),
    ] {
        assert_eq!(by_name(name), [expected(name, pieces, size)], "{name}");
    }
    assert_eq!(seen.len(), 7, "neither before, nor after, nor what was not ended");
}
