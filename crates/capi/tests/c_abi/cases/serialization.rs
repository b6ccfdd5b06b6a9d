use esatto_tests::Skip;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};

use crate::run::Run;

/// The schema of the message that the program writes, for prost-reflect.
const SCHEMA: &str = r#"
    syntax = "proto2";
    enum Kind { NONE = 0; ONE = 1; TWO = 2; }
    message Every {
        optional int32 int32 = 1;
        optional int64 int64 = 2;
        optional uint32 uint32 = 3;
        optional uint64 uint64 = 4;
        optional sint32 sint32 = 5;
        optional sint64 sint64 = 6;
        optional fixed32 fixed32 = 7;
        optional fixed64 fixed64 = 8;
        optional sfixed32 sfixed32 = 9;
        optional sfixed64 sfixed64 = 10;
        optional float float = 11;
        optional double double = 12;
        optional bool bool = 13;
        optional Kind kind = 14;
        optional string text = 15;
        optional bytes data = 16;
        repeated Every nested = 17;
        repeated int32 packed_varints = 18 [packed = true];
        repeated fixed32 packed_fixed32 = 19 [packed = true];
        repeated fixed64 packed_fixed64 = 20 [packed = true];
    }
"#;

fn parse(bytes: &[u8]) -> DynamicMessage {
    let folder = tempfile("every.proto", SCHEMA);
    let files = protox::compile(["every.proto"], [&folder]).expect("a schema");
    let pool = DescriptorPool::from_file_descriptor_set(files).expect("descriptors");
    let every = pool.get_message_by_name("Every").expect("is there");
    let message = DynamicMessage::decode(every, bytes).expect("whole messages");
    assert_eq!(message.unknown_fields().count(), 0);
    message
}

fn tempfile(name: &str, content: &str) -> std::path::PathBuf {
    // Several tests write the same file at once.
    let thread = std::thread::current().name().unwrap_or_default().replace("::", "-");
    let folder = crate::build::file_in_tmp(&thread);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(name), content).expect("a file");
    folder
}

fn get(message: &DynamicMessage, name: &str) -> Value {
    message.get_field_by_name(name).expect("a field").into_owned()
}

fn nested(message: &DynamicMessage) -> Vec<DynamicMessage> {
    let list = get(message, "nested");
    list.as_list().expect("a list").iter().map(|value| value.as_message().expect("a message").clone()).collect()
}

fn assert_scalars(message: &DynamicMessage) {
    for (name, value) in [
        ("int64", Value::I64(i64::MIN)),
        ("uint32", Value::U32(u32::MAX)),
        ("uint64", Value::U64(u64::MAX)),
        ("sint32", Value::I32(i32::MIN)),
        ("sint64", Value::I64(i64::MIN)),
        ("fixed32", Value::U32(0xffff_fffe)),
        ("fixed64", Value::U64(u64::MAX - 1)),
        ("sfixed32", Value::I32(-4)),
        ("sfixed64", Value::I64(i64::MIN)),
        ("float", Value::F32(3.25)),
        ("double", Value::F64(-1.5)),
        ("bool", Value::Bool(true)),
        ("kind", Value::EnumNumber(2)),
        ("text", Value::String("a text".into())),
        ("data", Value::Bytes(b"\0\xff\x80".to_vec().into())),
    ] {
        assert_eq!(get(message, name), value, "{name}");
    }
}

pub(super) fn every_message_is_what_another_parser_reads(run: &Run) -> Result<(), Skip> {
    let message = parse(&run.bytes("every_type"));
    assert_scalars(&message);
    assert_eq!(get(&message, "int32"), Value::I32(-7));
    let [first, empty] = &nested(&message)[..] else { panic!("two messages in it") };
    assert_scalars(first);
    assert_eq!(get(first, "int32"), Value::I32(5), "the last one");
    let [innermost] = &nested(first)[..] else { panic!("one message in it") };
    assert_eq!(get(innermost, "text"), Value::String("innermost".into()));
    assert_eq!(empty.fields().count(), 0);
    let list = |values: &[Value]| Value::List(values.to_vec());
    assert_eq!(get(&message, "packed_varints"), list(&[Value::I32(1), Value::I32(300), Value::I32(-1)]));
    assert_eq!(get(&message, "packed_fixed32"), Value::List((0..3).map(Value::U32).collect()));
    assert_eq!(get(&message, "packed_fixed64"), Value::List((0..3000).map(Value::U64).collect()));

    let message = parse(&run.bytes("over_slices"));
    let outer = nested(&message);
    assert_eq!(outer.len(), 40);
    for (number, outer) in (0..).zip(&outer) {
        assert_eq!(get(outer, "uint32"), Value::U32(number));
        let inner = nested(outer);
        assert_eq!(inner.len(), 20);
        for (i, inner) in (0..).zip(&inner) {
            assert_eq!(get(inner, "uint32"), Value::U32(i));
            let len = (number * 7 + i * 13) % 300;
            assert_eq!(get(inner, "text"), Value::String("x".repeat(len as usize)));
        }
    }

    let message = parse(&run.bytes("one_large_piece"));
    assert_eq!(get(&nested(&message)[0], "text"), Value::String("y".repeat(100_000)));
    assert_eq!(get(&message, "uint32"), Value::U32(1));
    assert!(run.bytes("nothing").is_empty());
    Ok(())
}
