//! Random messages and programs, compared with a simple model.

use crate::util::{Message, program};
use esatto_filter::{Action, Filter, MessageId, Outcome, Program, SemanticType, StringFilter};
use esatto_filter::{EcmaScript, Policy, Rule};
use esatto_protozero::wire::{self, WireType};
use proptest::prelude::*;

/// Field as a tree.
#[derive(Clone, Debug)]
enum Field {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Vec<u8>),
    Message(Vec<(u32, Self)>),
}

fn encode(fields: &[(u32, Field)]) -> Message {
    fields.iter().fold(Message::default(), |message, (id, field)| match field {
        Field::Varint(value) => message.varint(*id, *value),
        Field::Fixed32(value) => message.fixed32(*id, *value),
        Field::Fixed64(value) => message.fixed64(*id, *value),
        Field::Bytes(bytes) => message.bytes(*id, bytes),
        Field::Message(fields) => message.message(*id, encode(fields)),
    })
}

/// Writes the allowed fields of a tree. Nested messages keep the size of their length field.
fn model(fields: &[(u32, Field)], program: &Program, id: MessageId, strings: &StringFilter) -> Message {
    fields.iter().fold(Message::default(), |message, (number, field)| {
        let action = program.action(id, *number);
        match (action, field) {
            (Some(Action::Pass), _) => message.raw(&encode(&[(*number, field.clone())]).0),
            (Some(Action::Enter(inner)), Field::Message(fields)) if !fields.is_empty() => {
                let old = encode(fields).0.len() as u64;
                let new = model(fields, program, inner, strings).0;
                message
                    .tag(*number, WireType::LengthDelimited)
                    .raw(&padded(new.len(), wire::varint_size(old)))
                    .raw(&new)
            }
            // A message without fields is the same as no bytes.
            (Some(Action::Enter(_)), Field::Message(_)) => message.bytes(*number, b""),
            (Some(Action::FilterString(_)), Field::Message(_) | Field::Bytes(_)) => {
                let mut text = match field {
                    Field::Message(fields) => encode(fields).0,
                    Field::Bytes(bytes) => bytes.clone(),
                    _ => unreachable!("by the pattern"),
                };
                strings.filter(&mut text, SemanticType(0));
                message.bytes(*number, &text)
            }
            _ => message,
        }
    })
}

fn padded(mut value: usize, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for left in (0..size).rev() {
        bytes.push(value as u8 & 0x7f | if left > 0 { 0x80 } else { 0 });
        value >>= 7;
    }
    bytes
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 1u32..10, 1 => 120u32..140, 1 => 1u32..1 << 29]
}

/// Bytes fields are no messages, because the model would not know the content of an entered one.
/// They begin with an invalid tag, and are for fields that are not entered.
fn fields() -> impl Strategy<Value = Vec<(u32, Field)>> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Field::Varint),
        (0u64..300).prop_map(Field::Varint),
        any::<u32>().prop_map(Field::Fixed32),
        any::<u64>().prop_map(Field::Fixed64),
    ];
    let field =
        leaf.prop_recursive(5, 60, 8, |inner| prop::collection::vec((number(), inner), 0..8).prop_map(Field::Message));
    let bytes = prop::collection::vec(any::<u8>(), 0..200).prop_map(Field::Bytes);
    // From 200000000 on, no program enters.
    let plain = (200_000_000u32..200_000_004, bytes);
    prop::collection::vec(prop_oneof![4 => (number(), field), 1 => plain], 0..12)
}

fn programs() -> impl Strategy<Value = Program> {
    let message = prop::collection::btree_map(number(), 0u32..8, 0..8);
    prop::collection::vec((message, any::<bool>()), 1..5).prop_map(|messages| {
        let count = messages.len() as u32;
        program(|builder| {
            for (fields, high) in &messages {
                let mut after = 0;
                for (field, kind) in fields.iter().filter(|(field, _)| **field < 200_000_000) {
                    if *field <= after {
                        continue;
                    }
                    after = *field;
                    match kind {
                        0..=3 => builder.nested(*field, MessageId(kind % count))?,
                        4 => builder.string(*field, Default::default())?,
                        5 => {
                            after = field + 3;
                            builder.pass_range(*field..=after)?
                        }
                        _ => builder.pass(*field)?,
                    };
                }
                if *high {
                    builder.pass(200_000_001)?.string(200_000_002, Default::default())?;
                }
                builder.end_message();
            }
            Ok(())
        })
    })
}

fn strings() -> StringFilter {
    let mut strings = StringFilter::new();
    strings.add(Rule::new(&EcmaScript, Policy::MatchRedactGroups, b"[^]{3}([^]*)").unwrap()).unwrap();
    strings
}

/// `message` cut at the places that `cuts` gives, in any order.
fn split<'a>(message: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (message.len() + 1)).collect();
    cuts.sort_unstable();
    let (mut pieces, mut start) = (Vec::new(), 0);
    for cut in cuts {
        pieces.push(&message[start..cut]);
        start = cut;
    }
    pieces.push(&message[start..]);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_come_out_as_from_the_model(fields in fields(), program in programs(), cuts in prop::collection::vec(any::<usize>(), 0..6)) {
        let strings = strings();
        let message = encode(&fields).0;
        let expected = model(&fields, &program, MessageId::ROOT, &strings).0;
        let mut filter = Filter::new(program).with_strings(strings);
        let mut out = Vec::new();
        prop_assert!(filter.filter(&split(&message, &cuts), &mut out).is_ok());
        prop_assert_eq!(&out, &expected);
        prop_assert!(out.len() <= message.len());
        prop_assert!(out.capacity() <= message.len().max(8), "allocated once");
        // Filtering the result again changes nothing, except that strings may change again.
        let mut again = Vec::new();
        prop_assert!(filter.filter(&[&out], &mut again).is_ok());
        prop_assert_eq!(again.len() <= out.len(), true);
    }

    #[test]
    fn any_bytes_come_out_the_same_in_every_split(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..0x40], 0..120),
        program in programs(),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        let mut filter = Filter::new(program).with_strings(strings());
        let (mut whole, mut pieces, mut single) = (Vec::new(), Vec::new(), Vec::new());
        let verdict = filter.filter(&[&bytes], &mut whole).is_ok();
        prop_assert_eq!(filter.filter(&split(&bytes, &cuts), &mut pieces).is_ok(), verdict);
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(filter.filter(&bytewise, &mut single).is_ok(), verdict);
        prop_assert_eq!(&pieces, &whole);
        prop_assert_eq!(&single, &whole);
        prop_assert!(whole.len() <= bytes.len());
        prop_assert!(verdict || whole.is_empty());
    }

    #[test]
    fn any_bytecode_loads_or_not(bytes in prop::collection::vec(any::<u8>(), 0..60), overlay in prop::collection::vec(any::<u8>(), 0..30)) {
        if let Ok(program) = Program::load_with_overlay(&bytes, &overlay) {
            let _ = (program.to_string(), Filter::new(program).filter_to_vec(&bytes));
        }
    }

    #[test]
    fn a_string_keeps_its_length_and_changes_only_with_an_outcome(text in prop::collection::vec(any::<u8>(), 0..64)) {
        let strings = strings();
        let mut filtered = text.clone();
        let outcome = strings.filter(&mut filtered, SemanticType(0));
        prop_assert_eq!(filtered.len(), text.len());
        prop_assert_eq!(outcome == Outcome::Redacted, text.len() >= 3);
        prop_assert_eq!(&filtered[..text.len().min(3)], &text[..text.len().min(3)]);
        prop_assert!(outcome != Outcome::Kept || filtered == text);
    }
}
