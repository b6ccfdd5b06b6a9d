//! The command `esatto-filter`, from a `.proto` to a filtered file.

use crate::util::{Folder, Message, complaint, golden, run, run_ok};
use std::path::Path;

const PROTOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filter/protos");

#[test]
fn from_a_proto_to_a_filtered_file() {
    let folder = Folder::new("whole");
    let (filter, overlay) = (folder.path("shop.filter"), folder.path("shop.overlay"));
    run_ok(&["compile", "-I", PROTOS, "shop.proto", "-r", "shop.Shop", "-o", &filter, "--overlay-out", &overlay]);
    assert_eq!(std::fs::read(&filter).unwrap(), golden("shop.v2"));
    assert_eq!(std::fs::read(&overlay).unwrap(), golden("shop.v2.overlay"));

    let order = Message::default().varint(1, 7).bytes(4, b"for anna").bytes(99, b"new");
    let message = Message::default().bytes(1, b"corner").message(3, order);
    let (input, output) = (folder.path("in"), folder.path("out"));
    std::fs::write(&input, &message.0).unwrap();
    let rule = ["--rule", "1", "", "for (.*)"];
    let args = ["apply", "-f", &filter, "--overlay", &overlay, "--usage", &input, &output];
    let usage = run_ok(&[&args[..], &rule[..]].concat());
    let order = Message::default().varint(1, 7).bytes(4, b"for P60R");
    let expected = Message::default().bytes(1, b"corner").tag(3, esatto_protozero::wire::WireType::LengthDelimited);
    let expected = expected.raw_varint(order.0.len() as u64).raw(&order.0);
    assert_eq!(std::fs::read(&output).unwrap(), expected.0);
    let usage = String::from_utf8(usage).unwrap();
    assert!(usage.contains("1 3.4\n") && usage.contains("-1 3.99\n"), "{usage}");

    let shown = String::from_utf8(run_ok(&["show", "-f", &filter, "--overlay", &overlay])).unwrap();
    assert!(shown.starts_with("message 0\n  1 is a filtered string\n"), "{shown}");
    let listed = String::from_utf8(run_ok(&["list", "-I", PROTOS, "shop.proto", "--exclude", "shop.Item"])).unwrap();
    assert!(listed.contains("note          string, filtered") && !listed.contains("shop.Item\n"), "{listed}");
}

#[test]
fn a_filter_can_be_written_as_part_of_a_config() {
    let text = run_ok(&["compile", "-I", PROTOS, "shop.proto", "--text", "--dedupe"]);
    let text = String::from_utf8(text).unwrap();
    let escaped = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:03o}")).collect::<String>();
    let (bytecode, overlay) = (escaped(&golden("shop-deduped.v2")), escaped(&golden("shop-deduped.v2.overlay")));
    let expected =
        format!("trace_filter {{\n  bytecode_v2: \"{bytecode}\"\n  bytecode_overlay_v54: \"{overlay}\"\n}}\n");
    assert_eq!(text, expected);
    let text = run_ok(&["compile", "-I", PROTOS, "shop.proto", "--text", "--target", "v1"]);
    assert!(String::from_utf8(text).unwrap().starts_with("trace_filter {\n  bytecode: \""));
}

#[test]
fn a_result_needs_a_file_and_text_is_no_message() {
    let folder = Folder::new("nothing");
    let (filter, input) = (folder.path("shop.filter"), folder.path("my.cfg"));
    run_ok(&["compile", "-I", PROTOS, "shop.proto", "--target", "v1", "-o", &filter]);
    std::fs::write(&input, "buffers { size_kb: 64 }\n").unwrap();
    let output = run(&["apply", "-f", &filter, &input]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("<OUTPUT>"), "{said}");
    for files in [[&filter, &input], [&input, &input]] {
        let output = run(&["apply", "--usage", "-f", files[0], files[1]]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("my.cfg: ") && said.contains("the file is text"), "{said}");
    }
}

#[test]
fn version_1_says_what_becomes_of_strings() {
    let output = run(&["compile", "-I", PROTOS, "shop.proto", "--target", "v1"]);
    assert!(output.status.success() && output.stdout == golden("shop.v1"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("version 1 has no string rules: `shop.Shop.name` is not allowed"), "{said}");
    assert!(said.contains("`shop.Order.note` passes unchanged"), "{said}");
}

#[test]
fn a_schema_may_have_an_absolute_path() {
    let proto = Path::new(PROTOS).join("shop.proto");
    let listed = run_ok(&["list", proto.to_str().unwrap()]);
    assert_eq!(listed, run_ok(&["list", "-I", PROTOS, "shop.proto"]));
    assert_eq!(listed, run_ok(&["list", "-I", "tests", proto.to_str().unwrap()]));
}

#[test]
fn mistakes_are_reported() {
    assert!(
        complaint(&["compile", "-I", PROTOS, "shop.proto", "-r", "shop.order"]).contains("did you mean `shop.Order`")
    );
    assert!(complaint(&["compile", "-I", PROTOS, "shop.proto"]).contains("--overlay-out"));
    assert!(complaint(&["show", "-f", "/nowhere/at/all"]).contains("/nowhere/at/all"));
    let proto = Path::new(PROTOS).join("shop.proto");
    assert!(complaint(&["show", "-f", proto.to_str().unwrap()]).contains("checksum"));
    assert!(complaint(&["apply", "-f", "x", "--rule", "9", "", "(", "in", "out"]).contains("unknown string policy 9"));
}
