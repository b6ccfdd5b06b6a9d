//! Parts of small traces that are made for the tests.

use esatto_edit::Survey;
use esatto_protozero::append_to;
use esatto_trace::write_packet;

mod slices_are_matched_by_time;
mod state_of_sequences;

/// An encoded message, written field by field.
#[derive(Default, Clone)]
struct Proto(Vec<u8>);

impl Proto {
    fn int(mut self, field: u32, value: u64) -> Self {
        append_to(&mut self.0, |mut message| message.varint(field, value));
        self
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        append_to(&mut self.0, |mut message| message.bytes(field, value));
        self
    }

    fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }
}

/// Returns the trace of these packets.
fn trace(packets: &[Proto]) -> Vec<u8> {
    let mut trace = Vec::new();
    packets.iter().for_each(|packet| write_packet(&mut trace, &packet.0).expect("memory is enough"));
    trace
}

/// Returns the part of the trace in an interval.
fn cut(packets: &[Proto], from: i64, to: i64) -> Vec<u8> {
    let mut survey = Survey::default();
    packets.iter().for_each(|packet| survey.add(&packet.0).expect("memory is enough"));
    let mut cut = survey.cut(from, to).expect("memory is enough");
    let mut trace = Vec::new();
    for packet in packets {
        cut.add(&packet.0, |kept| write_packet(&mut trace, kept)).expect("memory is enough");
    }
    trace
}
