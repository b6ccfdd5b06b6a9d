//! Traces that are made of traces.

use esatto_edit::{Merge, Redact, Survey};
use esatto_trace::{Engine, packets, write_packet};

/// Cuts, merges and redacts a trace. Every result is a trace.
pub(crate) fn edit(trace: &[u8]) {
    let all: Vec<_> = packets(trace).map_while(Result::ok).map(|packet| packet.bytes).collect();
    let survey = || {
        let mut survey = Survey::default();
        all.iter().for_each(|packet| survey.add(packet).expect("the memory is enough"));
        survey
    };
    let (first, last) = survey().bounds().unwrap_or((0, 1000));
    let middle = first / 2 + last / 2;
    for (from, to) in [(first, middle), (middle, last), (middle, middle), (i64::MIN, i64::MAX)] {
        let mut cut = survey().cut(from, to).expect("the memory is enough");
        let mut part = Vec::new();
        for packet in &all {
            cut.add(packet, |kept| write_packet(&mut part, kept)).expect("a vector takes all");
        }
        read(&part);
    }
    let mut merge = Merge::default();
    let mut redact = Redact::with_patterns(&["a".to_owned()], true).expect("a pattern");
    let (mut merged, mut redacted) = (Vec::new(), Vec::new());
    let mut out = Vec::new();
    for number in 0..2 {
        merge.begin_trace(number);
        for packet in &all {
            if let Ok(Some(packet)) = merge.packet(packet) {
                write_packet(&mut merged, &packet).expect("a vector takes all");
            }
            redact.packet(packet, &mut out);
            write_packet(&mut redacted, &out).expect("a vector takes all");
        }
    }
    read(&merged);
    read(&redacted);
}

/// A result can be read: only a packet that was malformed before may be malformed.
fn read(trace: &[u8]) {
    let torn = packets(trace).filter_map(Result::err).find(|error| error.kind() == "torn" || error.kind() == "garbage");
    assert!(torn.is_none(), "{torn:?}");
    Engine::read(trace);
}
