//! Bytecode of the compiler is that of upstream's generator, byte by byte.

use crate::util::golden;
use esatto_filter::{AllowList, Bytecode, Error, Options, Program, StringField, Version};

const PROTOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filter/protos");
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/proto");

fn shop(options: &Options) -> Result<AllowList, Error> {
    AllowList::from_files(&["shop.proto"], &[PROTOS], "shop.Shop", options)
}

fn assert_golden(list: &AllowList, name: &str) {
    for (version, suffix) in [(Version::V1, "v1"), (Version::V2, "v2"), (Version::V54, "v54")] {
        let Bytecode { bytecode, overlay } = list.bytecode(version).unwrap();
        assert_eq!(bytecode, golden(&format!("{name}.{suffix}")), "{name}.{suffix}");
        match version {
            Version::V2 => assert_eq!(overlay, golden(&format!("{name}.{suffix}.overlay"))),
            _ => assert!(overlay.is_empty()),
        }
        Program::load_with_overlay(&bytecode, &overlay).unwrap();
    }
}

#[test]
fn a_schema_with_everything_in_it() {
    let mut list = shop(&Options::new()).unwrap();
    assert_golden(&list, "shop");
    list.dedupe();
    assert_golden(&list, "shop-deduped");
}

#[test]
fn the_whole_schema_of_traces() {
    let files = ["protos/perfetto/trace/trace.proto"];
    let mut list = AllowList::from_files(&files, &[SCHEMA], "perfetto.protos.Trace", &Options::new()).unwrap();
    let before = list.message_count();
    assert_eq!(list.bytecode(Version::V2).unwrap().bytecode, golden("trace.v2"));
    list.dedupe();
    assert!(list.message_count() < before);
    assert_eq!(list.bytecode(Version::V2).unwrap().bytecode, golden("trace-deduped.v2"));
}

#[test]
fn the_first_message_is_the_root_if_none_is_named() {
    let list = AllowList::from_files(&["shop.proto"], &[PROTOS], "", &Options::new()).unwrap();
    assert_golden(&list, "shop");
}

#[test]
fn options_of_the_compiler_are_exceptions() {
    let options = Options::new()
        .exclude("shop.Order.billing")
        .exclude(".shop.Item")
        .pass("shop.Van")
        .filter_string("shop.Order.pigeon", 2)
        .filter_string_with("shop.Address.city", StringField { pass_in_v1: true, ..StringField::default() });
    let list = shop(&options).unwrap();
    let text = list.to_string();
    let has = |line: &str| text.lines().any(|other| other.split_whitespace().collect::<Vec<_>>().join(" ") == line);
    assert!(!has("20 billing shop.Address") && !has("9 item shop.Item") && !has("shop.Item"), "{text}");
    assert!(has("10 items shop.Order.ItemsEntry") && has("shop.Order.ItemsEntry"), "{text}");
    assert!(has("13 van shop.Van") && !has("shop.Van"), "{text}");
    assert!(has("15 pigeon string, filtered as type 2") && has("2 city string, filtered"), "{text}");
    assert_eq!(list.field_name([3, 20, 2]), "order.20.2");
    assert_eq!(list.field_name([2, 3, 1, 4]), "address.country.code.4");

    let program = Program::load(&list.bytecode(Version::V54).unwrap().bytecode).unwrap();
    let order = program.message_at(&[3]).unwrap();
    assert_eq!(program.action(order, 20), None);
    assert_eq!(program.action(order, 13), Some(esatto_filter::Action::Pass));
}

#[test]
fn merged_messages_are_named_in_the_list() {
    let mut list = shop(&Options::new()).unwrap();
    list.dedupe();
    let text = list.to_string();
    assert!(text.contains("shop.Bike, as shop.Address.Country"), "{text}");
    assert!(text.contains("shop.Nothing, as shop.Empty"), "{text}");
}

#[test]
fn mistakes_are_named() {
    let error = |options: &Options| shop(options).unwrap_err().to_string();
    assert_eq!(
        error(&Options::new().exclude("shop.Order.ids")),
        "`shop.Order.ids` is neither a message nor a field below the root"
    );
    assert_eq!(
        error(&Options::new().filter_string("shop.Order.id", 0)),
        "`shop.Order.id` is not a string field and cannot be filtered as one"
    );
    let root = AllowList::from_files(&["shop.proto"], &[PROTOS], "order", &Options::new()).unwrap_err();
    assert_eq!(root.to_string(), "there is no message `order`, did you mean `shop.Order`?");
    let file = AllowList::from_files(&["shup.proto"], &[PROTOS], "", &Options::new()).unwrap_err();
    assert!(matches!(file, Error::Proto(_)) && file.to_string().contains("shup.proto"), "{file}");
}
