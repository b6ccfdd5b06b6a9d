//! The methods of a service, as the printer of its bindings needs them.

use std::collections::HashSet;

use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, ServiceDescriptor};

use crate::error::Error;
use crate::names::RESERVED_TYPES;
use crate::{options_proto, position};
use esatto_rust_text::identifiers;

/// Functions that every client has in addition to those of its methods.
const CLIENT_FUNCTIONS: &[&str] = &["new", "clone", "channel"];

/// Numbers of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    One,
    Stream,
    None,
}

/// One method.
#[derive(Debug)]
pub(crate) struct RpcMethod {
    /// The name in the schema.
    pub(crate) name: String,
    /// The number of the method: its position, from 1.
    pub(crate) id: usize,
    /// The type that stands for the method.
    pub(crate) marker: String,
    /// The function of clients and of the traits for servers.
    pub(crate) function: String,
    pub(crate) replies: Replies,
    /// The category of its traced calls.
    pub(crate) trace: Option<Trace>,
    pub(crate) descriptor: MethodDescriptor,
}

/// The traced calls of a method.
#[derive(Debug, PartialEq)]
pub(crate) struct Trace {
    pub(crate) category: String,
    /// Fields of the request whose values are recorded.
    pub(crate) request: Vec<Recorded>,
    /// Fields of the replies whose values are recorded.
    pub(crate) reply: Vec<Recorded>,
}

/// A field whose value traced calls record.
#[derive(Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) number: u32,
    pub(crate) name: String,
    /// The kind, as the RPC library names it.
    pub(crate) kind: &'static str,
}

impl RpcMethod {
    /// Returns the methods of a service, if the RPC library supports all of them.
    pub(crate) fn all(service: &ServiceDescriptor, traced: bool) -> Result<Vec<Self>, Error> {
        let mut markers = HashSet::new();
        let mut functions: HashSet<String> = CLIENT_FUNCTIONS.iter().map(|&name| name.to_owned()).collect();
        let method = |(index, method): (usize, MethodDescriptor)| {
            Ok(Self {
                name: method.name().to_owned(),
                id: index + 1,
                marker: free(method.name(), &mut markers, |name| RESERVED_TYPES.contains(&name)),
                function: free(&identifiers::snake_case(method.name()), &mut functions, |_| false),
                replies: replies(&method)?,
                trace: if traced { trace(service, &method)? } else { None },
                descriptor: method,
            })
        };
        service.methods().enumerate().map(method).collect()
    }
}

/// Returns `name` as an identifier, with as many underscores as make it free, and takes it.
fn free(name: &str, taken: &mut HashSet<String>, is_reserved: impl Fn(&str) -> bool) -> String {
    let mut name = name.to_owned();
    loop {
        let identifier = identifiers::ident(&name);
        if !is_reserved(&name) && taken.insert(identifier.clone()) {
            return identifier;
        }
        name.push('_');
    }
}

fn replies(method: &MethodDescriptor) -> Result<Replies, Error> {
    match (method.is_client_streaming(), method.is_server_streaming(), options_proto::is_one_way(method)) {
        (true, ..) => Err(refused(method, "takes a stream of requests, which esatto-ipc does not support")),
        (_, true, true) => Err(refused(method, "is one-way, so it cannot return a stream")),
        (_, true, false) => Ok(Replies::Stream),
        (_, false, true) => Ok(Replies::None),
        (_, false, false) => Ok(Replies::One),
    }
}

fn trace(service: &ServiceDescriptor, method: &MethodDescriptor) -> Result<Option<Trace>, Error> {
    let Some(category) = options_proto::trace_category(service, method) else { return Ok(None) };
    if category.contains(',') || category.chars().any(char::is_control) {
        return Err(refused(method, "names a category with a comma or a control character: name one category"));
    }
    let reply = if options_proto::is_one_way(method) { Vec::new() } else { recorded(&method.output())? };
    Ok(Some(Trace { category, request: recorded(&method.input())?, reply }))
}

fn recorded(message: &MessageDescriptor) -> Result<Vec<Recorded>, Error> {
    let mut fields: Vec<FieldDescriptor> = message.fields().filter(options_proto::is_recorded).collect();
    fields.sort_by_key(FieldDescriptor::number);
    let one = |field: FieldDescriptor| {
        let kind = recorded_kind(&field)?;
        Ok(Recorded { number: field.number(), name: field.name().to_owned(), kind })
    };
    fields.into_iter().map(one).collect()
}

/// Returns the kind of a field that is recorded, as the RPC library names it. Refuses a field whose
/// value cannot be recorded.
pub(crate) fn recorded_kind(field: &FieldDescriptor) -> Result<&'static str, Error> {
    match (value_kind(&field.kind()), field.cardinality()) {
        (Some(kind), Cardinality::Optional | Cardinality::Required) => Ok(kind),
        _ => Err(Error::Refused {
            place: position::of(&field.parent_message().parent_file(), field.path()),
            what: "field",
            name: field.full_name().to_owned(),
            why: "cannot be recorded: rpc_trace_value is for single numbers, enumerations, bool and string",
        }),
    }
}

fn value_kind(kind: &Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Double => "Double",
        Kind::Float => "Float",
        Kind::Int32 | Kind::Int64 | Kind::Enum(_) => "Int",
        Kind::Uint32 | Kind::Uint64 => "Uint",
        Kind::Sint32 | Kind::Sint64 => "Sint",
        Kind::Fixed32 | Kind::Fixed64 => "Fixed",
        Kind::Sfixed32 => "Sfixed32",
        Kind::Sfixed64 => "Sfixed64",
        Kind::Bool => "Bool",
        Kind::String => "Text",
        Kind::Bytes | Kind::Message(_) => return None,
    })
}

fn refused(method: &MethodDescriptor, why: &'static str) -> Error {
    let place = position::of(&method.parent_service().parent_file(), method.path());
    Error::Refused { place, what: "method", name: method.full_name().to_owned(), why }
}
