//! Names and types of fields, from the schema's own descriptors.

use std::sync::OnceLock;

use esatto_protozero::{Field, Fields};
use esatto_schema::FILE_DESCRIPTOR_SET;
use hashbrown::HashMap;

use crate::string_table::Strings;
use crate::tables::ArgValue;

// The field numbers of google/protobuf/descriptor.proto that this module needs.
const SET_FILE: u32 = 1;
const FILE_MESSAGE: u32 = 4;
const MESSAGE_NAME: u32 = 1;
const MESSAGE_FIELD: u32 = 2;
const FIELD_NAME: u32 = 1;
const FIELD_NUMBER: u32 = 3;
const FIELD_TYPE: u32 = 5;
const FIELD_TYPE_NAME: u32 = 6;

/// A field of a message.
#[derive(Debug, Clone)]
pub(crate) struct FieldInfo {
    pub(crate) name: String,
    /// The type, as a number of `FieldDescriptorProto.Type`.
    kind: i32,
    /// The name of a message's type, without its package.
    pub(crate) message: String,
}

pub(crate) type MessageInfo = HashMap<u32, FieldInfo>;

/// Returns the messages of the schema that are not nested in others, by name.
pub(crate) fn messages() -> &'static HashMap<String, MessageInfo> {
    static MESSAGES: OnceLock<HashMap<String, MessageInfo>> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        let files = Fields::new(FILE_DESCRIPTOR_SET).filter(|f| f.id == SET_FILE);
        let messages = files.flat_map(|file| Fields::new(file.as_bytes()).filter(|f| f.id == FILE_MESSAGE));
        messages.map(|message| read_message(message.as_bytes())).collect()
    })
}

/// Returns the kernel events of the schema, by the numbers of their fields in `FtraceEvent`.
pub(crate) fn kernel_events() -> &'static MessageInfo {
    static EVENTS: OnceLock<&'static MessageInfo> = OnceLock::new();
    static NONE: OnceLock<MessageInfo> = OnceLock::new();
    EVENTS.get_or_init(|| messages().get("FtraceEvent").unwrap_or_else(|| NONE.get_or_init(MessageInfo::new)))
}

/// Reads a `DescriptorProto`: its name and its fields.
pub(crate) fn read_message(bytes: &[u8]) -> (String, MessageInfo) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut name, mut fields) = (String::new(), MessageInfo::new());
    for f in Fields::new(bytes) {
        match f.id {
            MESSAGE_NAME => name = text(f.as_bytes()),
            MESSAGE_FIELD => {
                let mut number = 0;
                let mut info = FieldInfo { name: String::new(), kind: 0, message: String::new() };
                for f in Fields::new(f.as_bytes()) {
                    match f.id {
                        FIELD_NAME => info.name = text(f.as_bytes()),
                        FIELD_NUMBER => number = f.as_u32(),
                        FIELD_TYPE => info.kind = f.as_i32(),
                        FIELD_TYPE_NAME => {
                            let full = text(f.as_bytes());
                            info.message = full.rsplit('.').next().unwrap_or_default().to_owned();
                        }
                        _ => {}
                    }
                }
                fields.insert(number, info);
            }
            _ => {}
        }
    }
    (name, fields)
}

impl FieldInfo {
    /// Returns whether its values are plain varints.
    pub(crate) fn is_varint(&self) -> bool {
        matches!(self.kind, 3 | 4 | 5 | 13)
    }

    /// Returns whether its values are texts.
    pub(crate) fn is_text(&self) -> bool {
        self.kind == 9
    }

    /// Returns a value of the field as an argument; `None` for messages.
    pub(crate) fn argument(&self, f: &Field<'_>, strings: &mut Strings) -> Option<ArgValue> {
        Some(match self.kind {
            1 => ArgValue::Real(f.as_f64()),
            2 => ArgValue::Real(f64::from(f.as_f32())),
            3 | 5 | 14..=16 => ArgValue::Int(f.as_i64()),
            17 | 18 => ArgValue::Int(esatto_protozero::wire::unzigzag(f.as_u64())),
            4 | 6 | 7 | 13 => ArgValue::Uint(f.as_u64()),
            8 => ArgValue::Bool(f.as_bool()),
            9 | 12 => ArgValue::Text(Some(strings.add(f.as_bytes()))),
            _ => return None,
        })
    }
}
