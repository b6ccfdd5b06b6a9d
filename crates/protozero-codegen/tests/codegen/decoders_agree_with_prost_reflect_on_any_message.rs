#![allow(deprecated)]

use std::sync::LazyLock;

use esatto_protozero::{HeapBuffer, Message};
use proptest::prelude::*;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::fixture::{EverythingDecoder, EverythingReader};
use crate::pool;

/// One occurrence of a field: its index, its values, and if they are packed.
type Occurrence = (prop::sample::Index, Vec<u64>, bool);

fn occurrences() -> impl Strategy<Value = Vec<Occurrence>> {
    let number = prop_oneof![0..200u64, any::<u64>(), any::<u32>().prop_map(|v| i64::from(v as i32) as u64)];
    let values = prop::collection::vec(number, 1..5);
    prop::collection::vec((any::<prop::sample::Index>(), values, any::<bool>()), 0..40)
}

/// Returns all fields but messages. Of several occurrences of a message our readers take the last
/// one, and prost merges them.
fn fields() -> Vec<FieldDescriptor> {
    EVERYTHING.fields().filter(|field| !matches!(field.kind(), Kind::Message(_))).collect()
}

static EVERYTHING: LazyLock<MessageDescriptor> =
    LazyLock::new(|| pool().get_message_by_name("fixture.Everything").unwrap());

fn write(message: &mut Message<'_>, field: &FieldDescriptor, values: &[u64], packed: bool) {
    let id = field.number();
    let varint = |v: u64| match field.kind() {
        Kind::Int32 | Kind::Sint32 => v as i32 as u64,
        Kind::Uint32 => u64::from(v as u32),
        Kind::Bool => v & 1,
        Kind::Enum(_) if v & 1 == 0 => 3,
        Kind::Enum(target) => target.values().next().map_or(0, |value| value.number() as u64),
        _ => v,
    };
    let packed = packed && field.is_list();
    match field.kind() {
        Kind::String | Kind::Bytes => values.iter().for_each(|v| message.bytes(id, v.to_string().as_bytes())),
        Kind::Fixed32 | Kind::Sfixed32 | Kind::Float if packed => {
            message.packed_fixed32(id, values.iter().map(|v| *v as u32));
        }
        Kind::Fixed64 | Kind::Sfixed64 | Kind::Double if packed => message.packed_fixed64(id, values.iter().copied()),
        _ if packed => message.packed_varints(id, values.iter().map(|v| varint(*v))),
        Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => values.iter().for_each(|v| message.fixed32(id, *v as u32)),
        Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => values.iter().for_each(|v| message.fixed64(id, *v)),
        _ => values.iter().for_each(|v| message.varint(id, varint(*v))),
    }
}

fn encode(occurrences: &[Occurrence]) -> Vec<u8> {
    let fields = fields();
    let mut buffer = HeapBuffer::new();
    let mut message = buffer.message();
    for (index, values, packed) in occurrences {
        write(&mut message, index.get(&fields), values, *packed);
    }
    drop(message);
    buffer.to_vec()
}

/// Asserts that the getters of both readers return the values that prost-reflect has decoded.
macro_rules! assert_same {
    ($reader:ident, $decoder:ident, $get:ident; $($name:literal $getter:ident $value:expr;)*) => {$(
        let theirs = format!("{:?}", $get($name));
        prop_assert_eq!(&format!("{:?}", assert_same!(@ $reader $getter $value)), &theirs, "{}, scanned", $name);
        prop_assert_eq!(&format!("{:?}", assert_same!(@ $decoder $getter $value)), &theirs, "{}, indexed", $name);
    )*};
    (@ $reader:ident $getter:ident $value:expr) => { $reader.$getter().into_iter().map($value).collect::<Vec<_>>() };
}

proptest! {
    #[test]
    fn readers_and_decoders_return_what_was_decoded_by_prost_reflect(occurrences in occurrences()) {
        let bytes = encode(&occurrences);
        let decoded = DynamicMessage::decode(EVERYTHING.clone(), &bytes[..]).unwrap();
        let get = |name: &str| match decoded.get_field_by_name(name).unwrap().into_owned() {
            Value::List(values) => values,
            value if decoded.has_field_by_name(name) => vec![value],
            _ => vec![],
        };
        let text = |bytes: &[u8]| Value::String(String::from_utf8(bytes.to_vec()).unwrap());
        let bytes_of = |bytes: &[u8]| Value::Bytes(bytes.to_vec().into());
        let reader = EverythingReader::parse(&bytes).unwrap();
        let decoder = EverythingDecoder::decode(&bytes);
        assert_same! { reader, decoder, get;
            "a_double" a_double Value::F64;
            "a_float" a_float Value::F32;
            "an_int32" an_int32 Value::I32;
            "an_int64" an_int64 Value::I64;
            "a_uint32" a_uint32 Value::U32;
            "a_uint64" a_uint64 Value::U64;
            "a_sint32" a_sint32 Value::I32;
            "a_sint64" a_sint64 Value::I64;
            "a_fixed32" a_fixed32 Value::U32;
            "a_fixed64" a_fixed64 Value::U64;
            "a_sfixed32" a_sfixed32 Value::I32;
            "a_sfixed64" a_sfixed64 Value::I64;
            "a_bool" a_bool Value::Bool;
            "far_away" far_away Value::U32;
            "a_string" a_string text;
            "some_bytes" some_bytes bytes_of;
            "color" color |color| Value::EnumNumber(color.0);
            "kind" kind |kind| Value::EnumNumber(kind.0);
            "doubles" doubles Value::F64;
            "int32s" int32s Value::I32;
            "sint64s" sint64s Value::I64;
            "fixed32s" fixed32s Value::U32;
            "bools" bools Value::Bool;
            "strings" strings text;
            "byte_strings" byte_strings bytes_of;
            "colors" colors |color| Value::EnumNumber(color.0);
            "packed_doubles" packed_doubles Value::F64;
            "packed_floats" packed_floats Value::F32;
            "packed_int32s" packed_int32s Value::I32;
            "packed_int64s" packed_int64s Value::I64;
            "packed_uint32s" packed_uint32s Value::U32;
            "packed_uint64s" packed_uint64s Value::U64;
            "packed_sint32s" packed_sint32s Value::I32;
            "packed_sint64s" packed_sint64s Value::I64;
            "packed_fixed32s" packed_fixed32s Value::U32;
            "packed_fixed64s" packed_fixed64s Value::U64;
            "packed_sfixed32s" packed_sfixed32s Value::I32;
            "packed_sfixed64s" packed_sfixed64s Value::I64;
            "packed_bools" packed_bools Value::Bool;
            "packed_colors" packed_colors |color| Value::EnumNumber(color.0);
        }
        // prost keeps the last member of a oneof. A reader gives access to all, and names the one
        // that counts.
        let chosen = ["chosen_text", "chosen_number"].into_iter().find(|name| decoded.has_field_by_name(name));
        let number = chosen.map(|name| EVERYTHING.get_field_by_name(name).unwrap().number());
        prop_assert_eq!(reader.choice().map(|field| field.id), number);
        prop_assert_eq!(decoder.choice().map(|field| field.id), number);
        prop_assert_eq!(decoder.unknown_fields().count(), 0);
    }
}
