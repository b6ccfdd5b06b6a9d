use crate::common::config;
use esatto_text_format::{Parser, parse, to_text};
use prost_reflect::MessageDescriptor;

/// A small generator of pseudo-random numbers (splitmix64): the same texts in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

const PIECES: &[&str] = &[
    "buffers",
    "size_kb",
    "fill_policy",
    "DISCARD",
    "data_sources",
    "config",
    "duration_ms",
    "nested",
    "one",
    "raw",
    "packed",
    "f",
    "map",
    "key",
    "value",
    "Pair",
    "a",
    "[test.extra]",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ":",
    ":",
    ":",
    ";",
    ",",
    " ",
    " ",
    "\n",
    "# x\n",
    "1",
    "-",
    ".5",
    "0x1f",
    "1e5",
    "inf",
    "true",
    "\"",
    "\"x\"",
    "'y'",
    "\\",
    "\\377",
    "\u{e4}",
    "\0",
    "[a/b]",
    "policies",
    "i32",
];

/// Parses a text. If that succeeds, the printed message must mean the same.
fn check(message: &MessageDescriptor, text: &[u8]) {
    match parse(message, text) {
        Ok(bytes) => {
            let printed = to_text(message, &bytes);
            let again = parse(message, &printed).unwrap_or_else(|errors| panic!("{errors}\nof\n{printed}"));
            assert_eq!(to_text(message, &again), printed);
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            let _ = errors.to_string();
        }
    }
    let _ = Parser::new(message.clone()).lossy(true).parse(text);
    let _ = to_text(message, text);
}

#[test]
fn texts_of_random_pieces() {
    let (message, mut random) = (config(), Random(1));
    for _ in 0..3000 {
        let text: String = (0..random.next(40)).map(|_| PIECES[random.next(PIECES.len())]).collect();
        check(&message, text.as_bytes());
    }
}

#[test]
fn random_bytes() {
    let (message, mut random) = (config(), Random(2));
    for _ in 0..3000 {
        let bytes: Vec<u8> = (0..random.next(60)).map(|_| random.next(256) as u8).collect();
        check(&message, &bytes);
    }
}

#[test]
fn a_valid_text_with_one_byte_changed() {
    let text = "buffers { size_kb: 4 fill_policy: DISCARD name: 'x' }\ndata_sources: [{ filter: \"a\\n\" }]\npacked: [1, 0x2]\nd: -1.5e3 Pair { a: 1 }";
    let (message, mut random) = (config(), Random(3));
    for at in 0..text.len() {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] = random.next(256) as u8;
        check(&message, &bytes);
        check(&message, &text.as_bytes()[..at]);
    }
}
