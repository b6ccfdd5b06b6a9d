//! Makes a table of which fields hold messages, text or packed numbers, for all messages that a
//! trace can have.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

const TRACE: &str = "protos/perfetto/trace/trace.proto";
const INCLUDE: &str = "../../../crates/schema/proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={INCLUDE}");
    println!("cargo::rerun-if-changed=build.rs");
    let pool = DescriptorPool::from_file_descriptor_set(protox::compile([TRACE], [INCLUDE])?)?;
    let trace = pool.get_message_by_name("perfetto.protos.Trace").ok_or("the schema has no Trace")?;
    let mut tables = Tables::default();
    let root = tables.number(&trace);
    while let Some(message) = tables.left.pop() {
        tables.message(&message)?;
    }
    writeln!(tables.text, "/// All of a trace.\npub(crate) static TRACE: &Message = &M{root};")?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    Ok(std::fs::write(out.join("tables.rs"), tables.text)?)
}

#[derive(Default)]
struct Tables {
    text: String,
    numbers: HashMap<String, usize>,
    /// Numbered, but not written yet.
    left: Vec<MessageDescriptor>,
}

impl Tables {
    fn number(&mut self, message: &MessageDescriptor) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(message.full_name().to_owned()).or_insert_with(|| {
            self.left.push(message.clone());
            next
        })
    }

    fn message(&mut self, message: &MessageDescriptor) -> Result<(), std::fmt::Error> {
        let mut fields = Vec::<String>::new();
        for field in message.fields() {
            let Some(kind) = self.field(&field) else { continue };
            let at = field.number() as usize;
            if fields.len() <= at {
                fields.resize(at + 1, "Bytes".to_owned());
            }
            fields[at] = kind;
        }
        let number = self.number(message);
        writeln!(
            self.text,
            "/// {}\nstatic M{number}: Message = Message(&[{}]);",
            message.full_name(),
            fields.join(", ")
        )
    }

    /// Kind of a length-delimited field; `None` for plain bytes and for other wire types.
    fn field(&mut self, field: &FieldDescriptor) -> Option<String> {
        let kind = match field.kind() {
            Kind::Message(message) => format!("Nested(&M{})", self.number(&message)),
            Kind::String => "Text".to_owned(),
            Kind::Bytes => return None,
            // Readers take both forms of repeated numbers, with any schema.
            _ if field.cardinality() != Cardinality::Repeated => return None,
            Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => "Packed32".to_owned(),
            Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => "Packed64".to_owned(),
            _ => "PackedVarints".to_owned(),
        };
        Some(kind)
    }
}
