//! Hand-made messages and programs; folders, and the command.

use esatto_filter::{Builder, Bytecode, Error, MessageId, Program, Version};
use esatto_protozero::wire::{self, WireType};
use std::path::PathBuf;
use std::process::{Command, Output};

/// Bytes of a `.tsv` file.
pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    assert_eq!(text.len() % 2, 0, "pairs of digits: {text}");
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("a hexadecimal digit");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Reads a file of `tests/filter/golden`.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filter/golden/").to_owned() + name;
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Reads the lines of a `.tsv` file of it, split into fields.
pub(crate) fn golden_lines(name: &str) -> Vec<Vec<String>> {
    let text = String::from_utf8(golden(name)).expect("text");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Loads the bytecode that `write` builds, for the newest version.
pub(crate) fn program(write: impl FnOnce(&mut Builder) -> Result<(), Error>) -> Program {
    let Bytecode { bytecode, overlay } = build(Version::V54, write);
    Program::load_with_overlay(&bytecode, &overlay).expect("own bytecode")
}

pub(crate) fn build(version: Version, write: impl FnOnce(&mut Builder) -> Result<(), Error>) -> Bytecode {
    let mut builder = Builder::new(version);
    write(&mut builder).expect("fields in order");
    builder.build().expect("complete bytecode")
}

/// The program of case 71: 1, 3, 6 (a message with 2 and 5) and 11 to 20.
pub(crate) fn case_71() -> Program {
    program(|builder| {
        builder.pass(1)?.pass(3)?.nested(6, MessageId(1))?.pass_range(11..=20)?.end_message();
        builder.pass(2)?.pass(5)?.end_message();
        Ok(())
    })
}

/// Message that is written field by field.
#[derive(Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn varint(self, field: u32, value: u64) -> Self {
        self.tag(field, WireType::Varint).raw_varint(value)
    }

    pub(crate) fn fixed32(self, field: u32, value: u32) -> Self {
        self.tag(field, WireType::Fixed32).raw(&value.to_le_bytes())
    }

    pub(crate) fn fixed64(self, field: u32, value: u64) -> Self {
        self.tag(field, WireType::Fixed64).raw(&value.to_le_bytes())
    }

    pub(crate) fn bytes(self, field: u32, value: &[u8]) -> Self {
        self.tag(field, WireType::LengthDelimited).raw_varint(value.len() as u64).raw(value)
    }

    pub(crate) fn message(self, field: u32, value: Self) -> Self {
        self.bytes(field, &value.0)
    }

    pub(crate) fn tag(self, field: u32, wire_type: WireType) -> Self {
        self.raw_varint(wire::tag(field, wire_type).into())
    }

    pub(crate) fn raw_varint(self, value: u64) -> Self {
        let mut bytes = [0; wire::MAX_VARINT_SIZE];
        let size = wire::encode_varint(value, &mut bytes);
        self.raw(&bytes[..size])
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Folder that is removed with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esatto-filter-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of text").to_owned()
    }

    /// Writes a file. Returns its path.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> String {
        std::fs::write(self.0.join(name), content).expect("the folder is ours");
        self.path(name)
    }

    /// Returns the sorted names of all files, hidden ones included.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the folder is ours");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_esatto-filter")).args(args).output().expect("it starts")
}

pub(crate) fn run_ok(args: &[&str]) -> Vec<u8> {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn complaint(args: &[&str]) -> String {
    let output = run(args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).expect("text")
}
