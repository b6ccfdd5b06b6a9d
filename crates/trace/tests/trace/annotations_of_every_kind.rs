use esatto_protozero::Message;
use esatto_trace::{Annotation, AnnotationValue as Value};

use crate::common::Maker;

fn read(fill: impl FnOnce(&mut Message<'_>)) -> (Vec<Annotation>, esatto_trace::Summary) {
    let maker = Maker::default().packet(|packet| {
        packet.varint(8, 100);
        packet.varint(13, 1);
        {
            let mut event = packet.begin(11);
            event.varint(9, 3);
            fill(&mut event);
        }
        let mut interned = packet.begin(12);
        for (table, name) in [(3, "key"), (27, ".a.Type"), (29, "value")] {
            let mut entry = interned.begin(table);
            entry.varint(1, 1);
            entry.string(2, name);
        }
    });
    (maker.trace().events.remove(0).annotations, maker.summary())
}

fn named(name: &str, value: Value) -> Annotation {
    let (mut list, _) = read(|event| {
        let mut annotation = event.begin(4);
        annotation.string(10, name);
    });
    let mut annotation = list.remove(0);
    annotation.value = value;
    annotation
}

#[test]
fn every_value() {
    let (list, summary) = read(|event| {
        let scalars: [fn(&mut Message<'_>); 10] = [
            |m| m.bool(2, true),
            |m| m.varint(3, u64::MAX),
            |m| m.int(4, -5),
            |m| m.double(5, 0.5),
            |m| m.string(6, "text"),
            |m| m.varint(17, 1),
            |m| m.varint(7, 255),
            |m| m.string(9, "{}"),
            |m| {
                m.varint(13, 1);
                m.bytes(14, b"\x08\x01");
            },
            |_| {},
        ];
        for scalar in scalars {
            let mut annotation = event.begin(4);
            annotation.varint(1, 1);
            scalar(&mut annotation);
        }
    });
    let values: Vec<_> = list.iter().map(|annotation| annotation.value.clone()).collect();
    assert_eq!(
        values,
        [
            Value::Bool(true),
            Value::Uint(u64::MAX),
            Value::Int(-5),
            Value::Double(0.5),
            Value::String("text".to_owned()),
            Value::String("value".to_owned()),
            Value::Pointer(255),
            Value::Json("{}".to_owned()),
            Value::Proto { type_name: ".a.Type".to_owned(), bytes: b"\x08\x01".to_vec() },
            Value::Empty,
        ]
    );
    assert!(list.iter().all(|annotation| annotation.name == "key"));
    assert_eq!((summary.annotations, summary.arguments), (10, 1), "they share one name, the last value counts");
}

#[test]
fn dictionaries_and_arrays() {
    let (list, summary) = read(|event| {
        let mut outer = event.begin(4);
        outer.string(10, "outer");
        {
            let mut entry = outer.begin(11);
            entry.string(10, "list");
            for value in [1, 2] {
                entry.begin(12).varint(3, value);
            }
        }
        let mut entry = outer.begin(11);
        entry.string(10, "flag");
        entry.bool(2, false);
    });
    let expected = Value::Dict(vec![
        named("list", Value::Array(vec![Value::Uint(1), Value::Uint(2)])),
        named("flag", Value::Bool(false)),
    ]);
    assert_eq!(list[0].value, expected);
    assert_eq!((summary.annotations, summary.arguments), (1, 3));
}

#[test]
fn the_older_form_of_dictionaries() {
    let (list, _) = read(|event| {
        let mut annotation = event.begin(4);
        annotation.string(10, "old");
        let mut nested = annotation.begin(8);
        nested.varint(1, 1);
        nested.string(2, "a");
        nested.begin(3).int(5, -3);
        nested.string(2, "b");
        let mut array = nested.begin(3);
        array.varint(1, 2);
        array.begin(4).string(8, "x");
    });
    let array = Value::Array(vec![Value::String("x".to_owned())]);
    assert_eq!(list[0].value, Value::Dict(vec![named("a", Value::Int(-3)), named("b", array)]));
}

#[test]
fn annotations_without_names_are_counted() {
    let (list, summary) = read(|event| {
        event.begin(4).bool(2, true);
        let mut annotation = event.begin(4);
        annotation.varint(1, 99);
        annotation.varint(17, 99);
    });
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].name.as_str(), &list[0].value), ("", &Value::String(String::new())));
    assert_eq!(summary.problems["annotations_without_name"], 1);
    assert_eq!(summary.problems["unresolved_annotation_names"], 1);
    assert_eq!(summary.problems["unresolved_strings"], 1);
}

#[test]
fn depth_is_bounded() {
    let mut value = Vec::new();
    for _ in 0..1000 {
        let mut buffer = esatto_protozero::HeapBuffer::new();
        buffer.message().bytes(12, &value);
        value = buffer.to_vec();
    }
    let (list, _) = read(|event| {
        let mut annotation = event.begin(4);
        annotation.string(10, "deep");
        annotation.raw(&value);
    });
    let mut depth = 0;
    let mut at = &list[0].value;
    while let Value::Array(values) = at {
        at = &values[0];
        depth += 1;
    }
    assert!(depth < 100);
}
