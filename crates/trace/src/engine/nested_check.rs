//! Check of the messages inside packets.
//!
//! Readers of a message take the fields before the first malformed one, and cannot tell that others
//! are missing. This check finds damage inside all messages that the schema knows.

use std::sync::OnceLock;

use esatto_protozero::{Fields, Value};
use hashbrown::HashMap;

use super::proto_descriptors::message_fields;

/// Deepest nesting of messages that is checked.
const MAX_CHECKED_DEPTH: usize = 64;
/// Numbers of fields that are looked up in an array.
const DIRECT: usize = 128;

/// The fields of a message that are messages, and their positions in the list of messages.
#[derive(Debug, Default)]
struct Shape {
    direct: Vec<u16>,
    others: Vec<(u32, u16)>,
}

impl Shape {
    fn child(&self, id: u32) -> Option<usize> {
        let child = match usize::try_from(id).unwrap_or(usize::MAX) {
            id if id < DIRECT => self.direct.get(id).copied().unwrap_or(0),
            _ => match self.others.binary_search_by_key(&id, |(id, _)| *id) {
                Ok(place) => self.others[place].1,
                Err(_) => 0,
            },
        };
        // Position 0 is that of packets, which are in no message that is checked.
        (child > 0).then_some(child.into())
    }
}

/// Returns all messages that can be in a packet. The packet is the first one.
fn shapes() -> &'static [Shape] {
    static SHAPES: OnceLock<Vec<Shape>> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let mut shapes = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        places.insert("TracePacket".to_owned(), 0);
        let mut names = vec!["TracePacket".to_owned()];
        while let Some(name) = names.get(shapes.len()).cloned() {
            let mut shape = Shape::default();
            let mut fields = message_fields(&name);
            fields.sort();
            for (id, message) in fields {
                let next = names.len();
                let place = *places.entry(message.clone()).or_insert(next);
                if place == next {
                    names.push(message);
                }
                let Ok(place) = u16::try_from(place) else { continue };
                match usize::try_from(id) {
                    Ok(id) if id < DIRECT => {
                        shape.direct.resize(shape.direct.len().max(id + 1), 0);
                        shape.direct[id] = place;
                    }
                    _ => shape.others.push((id, place)),
                }
            }
            shapes.push(shape);
        }
        shapes
    })
}

/// Returns the offset of the first byte in a packet that is malformed, also in messages inside.
pub(super) fn malformed_at(packet: &[u8]) -> Option<usize> {
    in_message(packet, 0, 0)
}

fn in_message(bytes: &[u8], shape: usize, depth: usize) -> Option<usize> {
    let known = &shapes()[shape];
    let mut fields = Fields::new(bytes);
    while let Some(f) = fields.next() {
        let Value::Bytes(inner) = f.value else { continue };
        let Some(child) = known.child(f.id).filter(|_| depth < MAX_CHECKED_DEPTH) else { continue };
        if let Some(at) = in_message(inner, child, depth + 1) {
            return Some(fields.offset() - inner.len() + at);
        }
    }
    fields.is_malformed().then(|| fields.offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found_where_it_is() {
        // An event of the kernel in a bundle: its pid, and a switch with a name.
        let switch = [0x0a, 2, b'a', b'b', 0x10, 5];
        let event = [&[0x10, 1, 0x22, 6][..], &switch].concat();
        let bundle = [&[0x08, 0, 0x12, 10][..], &event].concat();
        let packet = [&[0x0a, 14][..], &bundle].concat();
        assert_eq!(malformed_at(&packet), None);
        let switch_at = packet.len() - switch.len();
        let mut damaged = packet.clone();
        damaged[switch_at + 4..].fill(0);
        assert_eq!(malformed_at(&damaged), Some(switch_at + 4));
        // A text may have any bytes.
        let mut text = packet.clone();
        text[switch_at + 2..switch_at + 4].fill(0);
        assert_eq!(malformed_at(&text), None);
        damaged = packet.clone();
        damaged[3] = 0x80;
        assert!(malformed_at(&damaged).is_some());
    }

    #[test]
    fn messages_inside_themselves_end() {
        let wrap = |tag: u8, message: &[u8]| {
            let mut outer = vec![tag];
            let mut length = message.len();
            while length >= 0x80 {
                outer.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
                length >>= 7;
            }
            outer.push(u8::try_from(length).unwrap());
            outer.extend(message);
            outer
        };
        // `track_event { debug_annotations { dict_entries { … } } }`, the innermost one damaged.
        let nested = |depth: usize| {
            let message = (0..depth).fold(vec![0], |message, _| wrap(0x5a, &message));
            wrap(0x5a, &wrap(0x22, &message))
        };
        let shallow = nested(20);
        assert_eq!(malformed_at(&shallow), Some(shallow.len() - 1));
        assert_eq!(malformed_at(&nested(1000)), None, "it is deeper than what is checked");
    }
}
