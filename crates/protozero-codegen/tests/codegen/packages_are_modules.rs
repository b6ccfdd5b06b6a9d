use esatto_protozero::{HeapBuffer, Owned};
use esatto_protozero_codegen::{Config, Layout};

use crate::generated::names::{FieldsReader, FieldsWriter, Option_};
use crate::generated::shapes::{
    FieldsReaderExt as _, FieldsWriterExt as _, Flat, FlatReader, FlatWriter, LineReader, LineWriter, flat,
};
use crate::{FIXTURES, protos};

#[test]
fn case_64_messages_of_different_packages_refer_to_each_other() {
    let mut buffer = HeapBuffer::new();
    let mut w = LineWriter::from(buffer.message());
    w.from_().x(1).y(-2);
    w.to().x(i32::MIN);
    w.option(Option_::NEGATIVE);
    drop(w);
    let bytes = buffer.to_vec();
    let r = LineReader::new(&bytes);
    let from: flat::Point_Reader<'_> = r.from_().unwrap();
    assert_eq!((from.x(), from.y(), r.to().unwrap().x()), (Some(1), Some(-2), Some(i32::MIN)));
    assert_eq!(r.option(), Some(Option_::NEGATIVE));
}

#[test]
fn case_65_types_of_a_publicly_imported_file_are_visible() {
    // `public.proto` declares nothing: it imports `shapes/hidden.proto` publicly.
    let output = Config::new().compile(&["public.proto"], &[protos()]).unwrap();
    let names: Vec<&str> = output.files().keys().map(String::as_str).collect();
    assert_eq!(names, ["mod.rs", "public.rs", "shapes/hidden.rs"]);
    assert!(output.files()["mod.rs"].contains("pub mod flat {\n        pub use super::super::shapes_hidden_proto::*;"));
    let _: Option<flat::Colour> = Some(flat::Colour::RED);
}

#[test]
fn a_message_and_a_package_share_a_module() {
    // `Point` of the message `Flat` and `Point` of the package `flat`, which was declared later.
    let mut buffer = HeapBuffer::new();
    let mut w = FlatWriter::from(buffer.message());
    w.point().to().x(4);
    drop(w);
    let bytes = buffer.to_vec();
    let point: flat::PointReader<'_> = FlatReader::new(&bytes).point().unwrap();
    let to: flat::Point_Reader<'_> = point.to().unwrap();
    assert_eq!(to.x(), Some(4));
    assert_eq!(Flat::decode(&bytes).unwrap().point.unwrap().to.unwrap().x, Some(4));
}

#[test]
fn a_message_is_extended_from_another_package() {
    let mut buffer = HeapBuffer::new();
    FieldsWriter::from(buffer.message()).line().option(Option_::NEGATIVE);
    let bytes = buffer.to_vec();
    assert_eq!(FieldsReader::new(&bytes).line().unwrap().option(), Some(Option_::NEGATIVE));
}

#[test]
fn options_of_the_schema_language_are_no_extensions() {
    let output = Config::new().compile(&["imported.proto"], &[protos()]).unwrap();
    assert!(output.files().contains_key("google/protobuf/timestamp.rs"));
    assert!(!output.files().keys().any(|name| name.contains("descriptor")));
    assert!(!output.bundle().contains("FieldOptions"));
}

#[test]
fn the_flat_layout_has_one_module() {
    let output = Config::new().layout(Layout::Flat).compile(&FIXTURES, &[protos()]).unwrap();
    assert!(!output.files()["mod.rs"].contains("pub mod"));
    assert!(output.files()["imported.rs"].contains("-> super::TimestampWriter<'_>"));
    let output = Config::new().layout(Layout::Flat).root("crate::p").compile(&FIXTURES, &[protos()]).unwrap();
    assert!(output.files()["imported.rs"].contains("-> crate::p::TimestampWriter<'_>"));
}

#[test]
fn paths_are_absolute_if_the_root_is_set() {
    let output = Config::new().root("crate::p").compile(&FIXTURES, &[protos()]).unwrap();
    assert!(output.files()["imported.rs"].contains("-> crate::p::google::protobuf::TimestampWriter<'_>"));
}
