#![allow(deprecated)]

use esatto_protozero::{HeapBuffer, Owned};

use crate::generated::names::{
    self, Fields, FieldsReader, FieldsReaderExt as _, FieldsWriter, FieldsWriterExt as _, Old, Option_, Result_,
    fields, fields_extension,
};

#[test]
fn names_of_the_prelude_and_of_primitives_get_an_underscore() {
    let result = Result_ { option: Some(Option_::Self_), u32: Some(names::u32_::default()), ..Result_::default() };
    assert_eq!(Result_::decode(&result.encode()), Ok(result));
}

#[test]
fn values_of_an_enumeration_may_have_names_of_its_methods() {
    let names = [Option_::name_, Option_::name__, Option_::from_, Option_::Self_, Option_::NEGATIVE, Option_::LARGEST];
    assert_eq!(names.map(Option_::name), ["name", "name_", "from", "Self", "NEGATIVE", "LARGEST"].map(Some));
    assert_eq!(Option_::r#type, Option_::Self_);
    assert_eq!(i32::from(Option_::NEGATIVE), i32::MIN);
}

#[test]
fn a_message_is_not_confused_with_the_reader_of_another() {
    // `LogReader` is the reader of a `Log`. The value of a message `LogReader` has another name,
    // and so have those of `log` and `log.Log`.
    let log = names::Log { text: Some("t".into()), inner: Some(names::log::Log::default()), ..Default::default() };
    let value = names::LogReader_ { log: Some(log), ..Default::default() };
    assert_eq!(names::LogReader_Reader::new(&value.encode()).log().unwrap().text(), Some(&b"t"[..]));
    let lower = names::log_::default();
    assert_eq!(lower.encode(), b"");
}

#[test]
fn fields_get_underscores_if_their_methods_would_have_equal_names() {
    let mut buffer = HeapBuffer::new();
    let mut w = FieldsWriter::from(buffer.message());
    w.message_(1).message__(2).fields(3).new(4).crate_(9).super_(10).Self_(11).self_(12).r#fn(13).r#async(14);
    w.Foo(15).foo(16).lazy_raw(b"").lazy_raw_(b"raw").map_entry("k", 1).map_entry_(21).into_(24);
    drop(w);
    let bytes = buffer.to_vec();
    let r = FieldsReader::new(&bytes);
    assert_eq!([r.message(), r.message__(), r.fields_(), r.new_()], [Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!([r.crate_(), r.super_(), r.Self_(), r.self_()], [Some(9), Some(10), Some(11), Some(12)]);
    assert_eq!([r.r#fn(), r.r#async(), r.Foo(), r.foo(), r.map_entry_()], [13, 14, 15, 16, 21].map(Some));
    let value = Fields::decode(&bytes).unwrap();
    assert!(value.unknown_fields.is_empty());
    assert_eq!(value.lazy, Some(names::Log::default()));
    assert_eq!([fields::field::FOO, fields::field::FOO_, fields::field::CRATE], [15, 16, 9]);
}

#[test]
fn an_extension_may_have_the_name_of_a_field_of_the_message() {
    let mut buffer = HeapBuffer::new();
    let mut w = FieldsWriter::from(buffer.message());
    w.foo(1).foo_(2);
    w.message_text("m");
    drop(w);
    let bytes = buffer.to_vec();
    let r = FieldsReader::new(&bytes);
    assert_eq!((r.foo(), r.foo_(), r.message_text()), (Some(1), Some(2), Some(&b"m"[..])));
    assert_eq!(fields_extension::FOO_, 1001);
}

#[test]
fn deprecation_is_an_attribute() {
    let old = Old { old: Some(Old::default().into()), ..Old::default() };
    assert_eq!(old.encode(), b"\x0a\x00");
    let code = &crate::checked_in_code_is_what_is_generated::output().files()["names.rs"].clone();
    assert!(code.contains("#[deprecated]\n    pub old: "), "the field of the value");
    assert!(code.contains("/// Deprecated as a whole.\n    #[deprecated]\n    writer OldWriter;"));
    assert_eq!(code.matches("#[deprecated]").count(), 8);
}

#[test]
fn values_have_a_rust_name_unless_another_value_has_it() {
    // `name` has got the name that `name_` would have, and `Self` is no name.
    let rust = [Option_::Name, Option_::From, Option_::Type, Option_::Negative];
    assert_eq!(rust, [Option_::name_, Option_::from_, Option_::r#type, Option_::NEGATIVE]);
    let is_first = |value| matches!(value, Option_::Name);
    assert!(is_first(Option_::name_) && !is_first(Option_::name__));
    assert_eq!(format!("{:?}", Option_::Negative), "NEGATIVE", "the name of the schema is shown");
}

#[test]
fn rust_names_of_values_can_be_switched_off() {
    let config = esatto_protozero_codegen::Config::new().rust_values(false);
    let output = config.compile(&crate::FIXTURES, &[crate::protos()]).unwrap();
    assert!(output.files()["shop.rs"].contains("STATE_PAID = 1") && !output.files()["shop.rs"].contains(" Paid = 1"));
}
