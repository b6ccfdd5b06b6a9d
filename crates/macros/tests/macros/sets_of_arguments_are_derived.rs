use std::fmt::Debug;

use esatto::TraceArgs;

use super::{arguments, record};

esatto::categories! { static SETS = "sets of arguments"; }

#[derive(TraceArgs)]
struct Request<'a, T: ?Sized> {
    id: u64,
    #[esatto(rename = "verb")]
    method: &'a str,
    size: Size,
    #[esatto(skip)]
    _secret: *const dyn Debug,
    #[esatto(debug)]
    range: std::ops::Range<u8>,
    #[esatto(display)]
    shown: char,
    #[esatto(flatten)]
    origin: Option<Origin>,
    r#type: &'a T,
}

#[derive(TraceArgs)]
struct Origin {
    host: &'static str,
    port: Port,
}

#[derive(TraceArgs)]
struct Port(u16);

#[derive(TraceArgs)]
struct Size(u32, #[esatto(skip)] (), u32);

#[derive(TraceArgs)]
struct Empty;

#[derive(TraceArgs)]
enum Color {
    Red,
    #[esatto(rename = "blau")]
    Blue,
}

#[derive(TraceArgs)]
#[esatto(tag = "kind")]
enum Shape<T> {
    Point,
    Circle {
        radius: T,
    },
    Line(T, #[esatto(debug)] (u8, u8)),
    #[esatto(skip)]
    Polygon(#[allow(dead_code, reason = "it is skipped")] Vec<(T, T)>),
}

/// A bound on `Option<&'a Tree<'a, T>>` would be infinite.
#[derive(TraceArgs)]
struct Tree<'a, T> {
    value: T,
    left: Option<&'a Self>,
}

#[derive(TraceArgs)]
#[allow(dead_code, reason = "that it compiles is what counts")]
enum Never {}

#[test]
fn structs_have_an_argument_per_field() {
    let trace = record(&SETS, || {
        let request = Request {
            id: 7,
            method: "GET",
            size: Size(3, (), 4),
            _secret: &"s",
            range: 1..5,
            shown: 'x',
            origin: Some(Origin { host: "localhost", port: Port(80) }),
            r#type: "text",
        };
        let slice = esatto::slice!(SETS, "as many", |event| event.args(&request));
        drop(slice);
        let _slice = esatto::slice!(SETS, "as one", request = &request, empty = Empty);
    });
    let entries = [
        "id: 7",
        "verb: \"GET\"",
        "size: {0: 3, 2: 4}",
        "range: \"1..5\"",
        "shown: \"x\"",
        "host: \"localhost\"",
        "port: 80",
        "type: \"text\"",
    ];
    assert_eq!(arguments(&trace, "as many"), entries);
    assert_eq!(arguments(&trace, "as one"), [format!("request: {{{}}}", entries.join(", ")), "empty: Empty".into()]);
}

#[test]
fn enums_have_their_variant_and_its_fields() {
    let trace = record(&SETS, || {
        let shapes = [Shape::Point, Shape::Circle { radius: 0.5 }, Shape::Line(1.5, (2, 3)), Shape::Polygon(vec![])];
        let _slice = esatto::slice!(SETS, "as one", colors = [Color::Red, Color::Blue], shapes = &shapes);
        for shape in &shapes {
            let _slice = esatto::slice!(SETS, "as many", |event| event.args(shape));
        }
        let _slice = esatto::slice!(SETS, "color", |event| event.args(&Color::Blue));
    });
    let shapes = [
        "{kind: \"Point\"}",
        "{kind: \"Circle\", radius: 0.5}",
        "{kind: \"Line\", 0: 1.5, 1: \"(2, 3)\"}",
        "{kind: \"Polygon\"}",
    ];
    assert_eq!(
        arguments(&trace, "as one"),
        ["colors: [\"Red\", \"blau\"]".to_owned(), format!("shapes: [{}]", shapes.join(", "))]
    );
    assert_eq!(arguments(&trace, "as many"), ["kind: \"Point\""]);
    assert_eq!(arguments(&trace, "color"), ["variant: \"blau\""]);
}

#[test]
fn recursive_types_are_derived() {
    let trace = record(&SETS, || {
        let leaf = Tree { value: 1_u8, left: None };
        let _slice = esatto::slice!(SETS, "tree", tree = Tree { value: 2, left: Some(&leaf) });
    });
    assert_eq!(arguments(&trace, "tree"), ["tree: {value: 2, left: {value: 1, left: Empty}}"]);
}
