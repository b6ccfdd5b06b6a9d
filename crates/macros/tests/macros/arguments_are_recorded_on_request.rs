use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{arguments, block_on, record};

esatto::categories! {
    static ARGUMENTS = "arguments of functions";
    static OFF = "arguments of functions (off)";
}

#[derive(Debug)]
struct Opaque;

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("shown")
    }
}

#[esatto::trace(ARGUMENTS, args(number, text, maybe, ?debug, %display, debug.len = list.len(), "a b" = ?(1, 2)))]
fn chosen(number: i32, text: &str, maybe: Option<u8>, debug: &[u8], display: Opaque, list: Vec<u8>, unnamed: f64) {
    let _ = (display, list);
    let _ = (debug, unnamed);
}

#[esatto::trace(ARGUMENTS, args(all, ?opaque), skip(secret))]
fn all((a, _): (u8, u8), opaque: Opaque, secret: &str, r#type: String) -> usize {
    let _ = opaque;
    secret.len() + r#type.len() + usize::from(a)
}

#[esatto::trace(ARGUMENTS)]
fn none(_secret: &str) {}

#[esatto::trace(ARGUMENTS, ret)]
fn returning<'a>(text: &'a mut String, by: &str) -> &'a str {
    if by.is_empty() {
        return "early";
    }
    text.push_str(by);
    text
}

struct Method(u8);

impl Method {
    #[esatto::trace(ARGUMENTS, ret(debug), args(self.0 = self.0))]
    fn exclusive(&mut self) -> &mut u8 {
        &mut self.0
    }
}

#[esatto::trace(ARGUMENTS, name = "parse", err, ret)]
fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
    let number: u32 = text.parse()?;
    Ok(number + 1)
}

#[esatto::trace(ARGUMENTS, args(text), err(debug))]
async fn parse_later(text: String) -> Result<u32, Box<dyn std::error::Error>> {
    let number: u32 = text.parse()?;
    Ok(number + 1)
}

#[test]
fn no_other_argument_is_recorded() {
    let trace = record(&ARGUMENTS, || {
        chosen(-3, "text", None, &[1, 2], Opaque, vec![1], 0.5);
        assert_eq!(all((5, 6), Opaque, "secret", "ty".into()), 13);
        none("secret");
    });
    let expected = [
        "number: -3",
        "text: \"text\"",
        "maybe: Empty",
        "debug: \"[1, 2]\"",
        "display: \"shown\"",
        "debug.len: 1",
        "a b: \"(1, 2)\"",
    ];
    assert_eq!(arguments(&trace, "chosen"), expected);
    assert_eq!(arguments(&trace, "all"), ["a: 5", "type: \"ty\"", "opaque: \"Opaque\""]);
    assert!(arguments(&trace, "none").is_empty());
}

#[test]
fn results_are_recorded_at_the_end_of_the_slice() {
    let trace = record(&ARGUMENTS, || {
        let mut text = String::from("long");
        assert_eq!(returning(&mut text, "er"), "longer");
        *Method(4).exclusive() = 5;
    });
    assert_eq!(arguments(&trace, "returning"), ["return: \"longer\""]);
    assert_eq!(arguments(&trace, "exclusive"), ["self.0: 4", "return: \"4\""]);
    let trace = record(&ARGUMENTS, || assert!(parse("x").is_err()));
    assert_eq!(arguments(&trace, "parse"), ["error: \"invalid digit found in string\""]);
    let trace = record(&ARGUMENTS, || assert_eq!(parse("1"), Ok(2)));
    assert_eq!(arguments(&trace, "parse"), ["return: 2"]);
    let trace = record(&ARGUMENTS, || assert!(block_on(parse_later("x".into())).is_err()));
    assert_eq!(arguments(&trace, "parse_later"), ["text: \"x\"", "error: \"ParseIntError { kind: InvalidDigit }\""]);
    let trace = record(&ARGUMENTS, || assert!(block_on(parse_later("1".into())).is_ok()));
    assert_eq!(arguments(&trace, "parse_later"), ["text: \"1\""]);
}

static EVALUATED: AtomicU32 = AtomicU32::new(0);

#[esatto::trace(OFF, args(n = EVALUATED.fetch_add(1, Ordering::Relaxed)))]
fn sync_off() {}

#[esatto::trace(OFF, args(n = EVALUATED.fetch_add(1, Ordering::Relaxed)))]
async fn async_off() {}

#[test]
fn arguments_are_not_evaluated_while_the_category_is_off() {
    sync_off();
    block_on(async_off());
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 0);
    let _trace = record(&OFF, || {
        sync_off();
        block_on(async_off());
    });
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 2);
}

#[derive(Clone, Copy, Debug)]
struct Size(u32, (u8, bool));

#[derive(Debug)]
struct Window {
    size: Size,
}

impl Window {
    #[esatto::trace(ARGUMENTS, args(self.size.0, %self.size.1.0, ?self.size.1, other.size.0), ret)]
    fn is_like(&self, other: Window) -> bool {
        self.size.0 == other.size.0
    }
}

#[test]
fn fields_are_recorded_under_their_paths() {
    let window = |width| Window { size: Size(width, (2, true)) };
    let trace = record(&ARGUMENTS, || assert!(window(7).is_like(window(7))));
    let expected =
        ["self.size.0: 7", "self.size.1.0: \"2\"", "self.size.1: \"(2, true)\"", "other.size.0: 7", "return: true"];
    assert_eq!(arguments(&trace, "is_like"), expected);
}
