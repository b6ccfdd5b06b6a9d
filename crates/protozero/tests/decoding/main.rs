//! Tests of reading: fields, views with and without an index, packed fields, streams in pieces.
//! Tests named `case_N_…` are the cases of `docs/spec/protozero.md` §16.

mod a_stream_in_pieces_is_the_same_stream;
mod an_index_finds_what_a_scan_finds;
mod arbitrary_bytes_are_read_the_same_in_every_way;
mod fields_come_in_the_order_of_the_bytes;
mod messages_show_their_fields;
mod packed_values_are_delivered_up_to_the_mistake;
mod sample;
mod varints_are_read_back;

use esatto_protozero::{Field, Fields};

/// Returns the only field of a message.
fn only(message: &[u8]) -> Field<'_> {
    let mut fields = Fields::new(message);
    let field = fields.next().expect("a field");
    assert!(fields.next().is_none() && !fields.is_malformed(), "nothing but one field");
    field
}

/// Decodes hexadecimal digits. Spaces do not matter.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
