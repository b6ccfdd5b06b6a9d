//! [`GenericEvent`]: the description of an event that the schema does not have.

use esatto_protozero::append_to;

use super::field_copy::FieldCopy;
use super::schema::FieldType;

/// Number of the first event that the schema does not have, in `FtraceEvent`.
pub(crate) const FIRST_GENERIC_NUMBER: u32 = 65536;

/// Description of an event that the schema does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GenericEvent {
    /// Encoded `FtraceEventBundle.GenericEventDescriptor`.
    pub(crate) descriptor: Box<[u8]>,
    /// Names of the fields, for the older encoding.
    pub(crate) field_names: Box<[Box<str>]>,
}

impl GenericEvent {
    pub(crate) fn new(group: &str, name: &str, number: u32, fields: &[(&str, FieldCopy)]) -> Self {
        let mut descriptor = Vec::new();
        append_to(&mut descriptor, |mut message| {
            message.varint(1, u64::from(number));
            message.string(3, group);
            // DescriptorProto
            let mut event = message.begin(2);
            event.string(1, name);
            for (name, copy) in fields {
                // FieldDescriptorProto
                let mut field = event.begin(2);
                field.string(1, name);
                field.varint(3, u64::from(copy.number));
                field.varint(5, descriptor_type(copy.kind.generic_type()));
            }
        });
        let field_names = fields.iter().map(|(name, _)| (*name).into()).collect();
        Self { descriptor: descriptor.into(), field_names }
    }
}

/// Returns the number of `FieldDescriptorProto.Type`.
const fn descriptor_type(field_type: FieldType) -> u64 {
    match field_type {
        FieldType::Int64 => 3,
        FieldType::Uint64 => 4,
        FieldType::Int32 => 5,
        FieldType::String => 9,
        FieldType::Bytes => 12,
        FieldType::Uint32 => 13,
    }
}
