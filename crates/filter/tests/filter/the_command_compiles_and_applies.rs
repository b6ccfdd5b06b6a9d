//! The command `esatto-filter`, from a `.proto` to a filtered file.

use crate::util::{Message, golden};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROTOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filter/protos");

/// Folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esatto-filter-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esatto-filter")).args(args).output().expect("it starts")
}

fn run_ok(args: &[&str]) -> Vec<u8> {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn complaint(args: &[&str]) -> String {
    let output = run(args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).expect("text")
}

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
fn mistakes_are_reported() {
    assert!(
        complaint(&["compile", "-I", PROTOS, "shop.proto", "-r", "shop.order"]).contains("did you mean `shop.Order`")
    );
    assert!(complaint(&["compile", "-I", PROTOS, "shop.proto"]).contains("--overlay-out"));
    assert!(complaint(&["show", "-f", "/nowhere/at/all"]).contains("/nowhere/at/all"));
    let proto = Path::new(PROTOS).join("shop.proto");
    assert!(complaint(&["show", "-f", proto.to_str().unwrap()]).contains("checksum"));
    assert!(complaint(&["apply", "-f", "x", "--rule", "9", "", "(", "in"]).contains("unknown string policy 9"));
}
