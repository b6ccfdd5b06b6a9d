//! Bytecode that breaks a rule does not load.

use crate::util::{Message, build, case_71};
use esatto_filter::{
    Action, Bytecode, Error, Filter, MAX_BYTECODE_SIZE, MessageId, Program, SemanticType, StringField, Version,
};

/// `words` as bytecode, with the checksum that the specification describes.
pub(crate) fn encode(words: &[u32]) -> Vec<u8> {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    let words = words.iter().copied().chain([hash as u32]);
    words.fold(Message::default(), |bytes, word| bytes.raw_varint(word.into())).0
}

const fn word(field: u32, opcode: u32) -> u32 {
    field << 3 | opcode
}

/// Loads words and an overlay, which may be empty.
fn load(words: &[u32], overlay: &[u32]) -> Result<Program, Error> {
    let overlay = if overlay.is_empty() { Vec::new() } else { encode(overlay) };
    Program::load_with_overlay(&encode(words), &overlay)
}

macro_rules! refused {
    ($words:expr, $overlay:expr, $error:pat) => {
        match load(&$words, &$overlay) {
            Err($error) => {}
            other => panic!("{} instead: {other:?}", stringify!($error)),
        }
    };
}

#[test]
fn case_77_wrong_bytecode_does_not_load_and_nothing_passes() {
    refused!([word(0, 1), 0], [], Error::FieldZero { word: 0 });
    refused!([word(1, 3)], [], Error::Operand { word: 0 });
    refused!([word(1, 2)], [], Error::Operand { word: 0 });
    refused!([word(1, 1), word(2, 5)], [], Error::Operand { word: 1 });
    let unsorted = [0, word(2, 1), 0, 0, word(1, 1), 0];
    refused!([0], unsorted, Error::OverlayOrder { word: 3, message: MessageId(0), field: 1 });

    let mut wrong = encode(&[word(1, 1), 0]);
    *wrong.last_mut().unwrap() ^= 1;
    let error = Program::load(&wrong).unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
    // A program that continues with the default allows nothing.
    let program = Program::load(&wrong).unwrap_or_default();
    assert_eq!(Filter::new(program).filter_to_vec(b"\x08\x01").unwrap(), b"");
}

#[test]
fn every_rule_of_bytecode_is_checked() {
    assert!(matches!(Program::load(b""), Err(Error::Empty)));
    assert!(matches!(Program::load(&[0xff; 3]), Err(Error::Varint { offset: 0 })));
    assert!(matches!(Program::load(&[1, 0x80]), Err(Error::Varint { offset: 1 })));
    assert!(matches!(
        Program::load(&vec![0; MAX_BYTECODE_SIZE + 1]),
        Err(Error::TooLong { max: MAX_BYTECODE_SIZE, .. })
    ));
    refused!([word(1, 6), 0], [], Error::Opcode { word: 0, opcode: 6 });
    refused!([word(1, 1)], [], Error::Unfinished);
    refused!([0, word(1, 1)], [], Error::Unfinished);
    refused!([word(200, 1), word(200, 1), 0], [], Error::Overlap { message: MessageId(0), field: 200 });
    refused!([0, word(200, 2), 5, word(204, 1), 0], [], Error::Overlap { message: MessageId(1), field: 204 });
    refused!([word(300, 1), word(200, 1), 0], [], Error::Overlap { field: 200, .. });
    refused!([word(1, 3), 2, 0, 0], [], Error::NoSuchMessage { message: MessageId(2), messages: 2 });
}

#[test]
fn every_rule_of_overlays_is_checked() {
    refused!([0], [0, word(1, 1)], Error::OverlaySize { words: 2 });
    refused!([0], [0, word(1, 3), 0], Error::Opcode { word: 1, opcode: 3 });
    refused!([0], [0, word(0, 1), 0], Error::FieldZero { word: 1 });
    refused!([0], [0, word(1, 1), 0, 0, word(1, 4), 0], Error::OverlayOrder { word: 3, .. });
    refused!([0, 0], [1, word(1, 1), 0, 0, word(1, 4), 0], Error::OverlayOrder { word: 3, .. });
    refused!([0], [1, word(1, 1), 0], Error::OverlayLeft { message: MessageId(1) });
    assert!(matches!(Program::load_with_overlay(&encode(&[0]), &[7]), Err(Error::Checksum { .. })));
}

#[test]
fn an_overlay_adds_fields_and_replaces_their_actions() {
    let base = [word(1, 1), word(3, 4), word(5, 3), 1, word(200, 1), 0, word(2, 1), 0];
    let overlay = [
        [0, word(2, 1), 9],
        [0, word(3, 5), 7],
        [0, word(5, 4), 0],
        [0, word(199, 5), 0x1_0002],
        [0, word(200, 5), 3],
        [1, word(1, 4), 0],
        [1, word(300, 1), 0],
    ];
    let program = load(&base, overlay.as_flattened()).unwrap();
    let string = |number| Action::FilterString(SemanticType(number));
    let fields: Vec<_> = program.fields(MessageId(0)).map(|(range, action)| (*range.start(), action)).collect();
    let expected = [(1, Action::Pass), (3, string(7)), (5, string(0)), (199, string(2)), (200, string(3))];
    assert_eq!(fields, expected, "1 and 2 are neighbours");
    assert_eq!(program.action(MessageId(0), 2), Some(Action::Pass));
    assert_eq!(program.action(MessageId(1), 1), Some(string(0)));
    assert_eq!(program.action(MessageId(1), 300), Some(Action::Pass));
}

#[test]
fn versions_treat_filtered_strings_differently() {
    let string = |number, pass_in_v1, untyped_in_v2| StringField {
        semantic_type: SemanticType(number),
        pass_in_v1,
        untyped_in_v2,
    };
    let built = |version| {
        build(version, |builder| {
            builder.pass(1)?;
            for (field, pass_in_v1, untyped_in_v2) in [(2, false, false), (4, true, false), (6, false, true)] {
                builder.string(field, string(0, pass_in_v1, untyped_in_v2))?;
                builder.string(field + 1, string(9, pass_in_v1, untyped_in_v2))?;
            }
            builder.end_message();
            Ok(())
        })
    };
    let (v1, v2, v54) = (built(Version::V1), built(Version::V2), built(Version::V54));
    assert_eq!(v1, Bytecode { bytecode: encode(&[word(1, 1), word(4, 1), word(5, 1), 0]), overlay: vec![] });
    let words = [word(1, 1), word(2, 4), word(4, 4), word(6, 4), word(7, 4), 0];
    let overlay = [[0, word(3, 5), 9], [0, word(5, 5), 9], [0, word(7, 5), 9]];
    assert_eq!(v2, Bytecode { bytecode: encode(&words), overlay: encode(overlay.as_flattened()) });
    let words = [1, 4, 5, 4, 5, 4, 5].into_iter().zip(1..).map(|(opcode, field)| word(field, opcode));
    let words: Vec<u32> =
        words.flat_map(|word| [word, 9].into_iter().take(if word & 7 == 5 { 2 } else { 1 })).collect();
    assert_eq!(v54, Bytecode { bytecode: encode(&[&words[..], &[0]].concat()), overlay: vec![] });
    // The overlay turns the one into the other.
    let (with_overlay, whole) =
        (Program::load_with_overlay(&v2.bytecode, &v2.overlay).unwrap(), Program::load(&v54.bytecode).unwrap());
    assert_eq!(with_overlay.to_string(), whole.to_string());
}

#[test]
fn bytecode_that_upstream_accepts_is_accepted() {
    // No words at all, fields below 128 that come twice (the last counts), empty ranges, semantic
    // types over 16 bits.
    assert_eq!(load(&[], &[]).unwrap().message_count(), 0);
    let program = load(&[word(3, 1), word(3, 4), word(9, 2), 0, word(2, 5), 0x1_0005, 0], &[]).unwrap();
    assert_eq!(program.to_string(), "message 0\n  2 is a filtered string of type 5\n  3 is a filtered string\n");
    let words = encode(&[word(1, 1), 0]);
    let padded = [&[word(1, 1) as u8 | 0x80, 0x80, 0x00][..], &words[1..]].concat();
    assert_eq!(Program::load(&padded).unwrap().to_string(), "message 0\n  1\n");
}

#[test]
fn a_range_of_everything_takes_no_room() {
    let program = load(&[word(1, 2), u32::MAX - 1, 0], &[]).unwrap();
    assert_eq!(program.to_string(), "message 0\n  1 to 536870911\n");
    assert_eq!(case_71().fields(MessageId(7)).count(), 0);
}
