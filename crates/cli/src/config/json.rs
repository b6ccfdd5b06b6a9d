//! Configs in protobuf's JSON mapping ("proto3 JSON").

use prost_reflect::prost::Message as _;
use prost_reflect::{DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions};

use super::finding::Finding;
use esatto_trace::escape;

/// Encodes a JSON text. Reading ends at the first mistake.
pub(crate) fn encode(message: &MessageDescriptor, text: &[u8]) -> Result<Vec<u8>, Box<Finding>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let decoded = DynamicMessage::deserialize_with_options(message.clone(), &mut reader, &options);
    let decoded = decoded.and_then(|decoded| reader.end().map(|()| decoded));
    decoded.map(|decoded| decoded.encode_to_vec()).map_err(|error| {
        let mut told = error.to_string();
        // The place stands at the begin of the report.
        if let Some(at) = told.rfind(" at line ") {
            told.truncate(at);
        }
        if !told.starts_with("unrecognized field") {
            told = format!("this JSON is no TraceConfig: {told}");
        }
        Box::new(Finding { position: Some((error.line(), error.column().max(1))), ..Finding::mistake("", told) })
    })
}

/// Prints an encoded config as JSON. Returns also the number of fields that JSON cannot have,
/// because this version does not know them.
///
/// # Errors
///
/// A reason why the config cannot be JSON.
pub(crate) fn print(message: &MessageDescriptor, encoded: &[u8]) -> Result<(String, usize), String> {
    let decoded = DynamicMessage::decode(message.clone(), encoded).map_err(|error| error.to_string())?;
    let options = SerializeOptions::new();
    let mut text = Vec::new();
    decoded
        .serialize_with_options(&mut serde_json::Serializer::pretty(&mut text), &options)
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    Ok((escape::json(&text) + "\n", unknown_fields(&decoded)))
}

/// Returns the number of unknown fields in a message and the messages in it.
fn unknown_fields(message: &DynamicMessage) -> usize {
    use prost_reflect::Value;
    let inside = message.fields().map(|(_, value)| match value {
        Value::Message(message) => unknown_fields(message),
        Value::List(values) => values.iter().filter_map(Value::as_message).map(unknown_fields).sum(),
        Value::Map(values) => values.values().filter_map(Value::as_message).map(unknown_fields).sum(),
        _ => 0,
    });
    message.unknown_fields().count() + inside.sum::<usize>()
}
