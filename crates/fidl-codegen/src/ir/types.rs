//! How types are read.

use super::error;
use super::json;
use super::names::{Kind, Known};
use crate::error::Result;
use crate::model::{Payload, Primitive, Side, Type};

/// Where a type is used: the file, the full name of the member, and all declarations.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) name: &'a str,
    pub(super) known: &'a Known,
}

/// Largest size of an array, and of the strings and vectors that have one.
const MAX_COUNT: u64 = u32::MAX as u64;

impl Place<'_> {
    pub(super) fn error(&self, message: impl AsRef<str>) -> crate::error::Error {
        error(self.file, format!("{}: {}", self.name, message.as_ref()))
    }

    pub(super) fn type_(&self, type_: &json::Type) -> Result<Type> {
        let is_optional = type_.nullable;
        match type_.kind() {
            "primitive" => Ok(Type::Primitive(self.primitive(self.text(type_.subtype.as_ref(), "subtype")?)?)),
            "string" => Ok(Type::String { max: self.max(type_)?, is_optional }),
            "vector" => Ok(Type::Vector { element: self.element(type_)?, max: self.max(type_)?, is_optional }),
            "array" => {
                let count = type_.element_count.filter(|count| (1..=MAX_COUNT).contains(count));
                let count = count.ok_or_else(|| self.error("expected the size of an array, from 1"))?;
                Ok(Type::Array { element: self.element(type_)?, count })
            }
            "handle" => {
                let object = type_.subtype.as_deref().filter(|object| *object != "handle");
                Ok(Type::Handle { object: object.map(str::to_owned), is_optional })
            }
            "request" => {
                let protocol = self.text(type_.subtype.as_ref(), "subtype")?;
                self.endpoint(type_, Side::Server, protocol)
            }
            "endpoint" => {
                let side = match self.text(type_.role.as_ref(), "role")? {
                    "client" => Side::Client,
                    "server" => Side::Server,
                    other => return Err(self.error(format!("expected the role `client` or `server`, found `{other}`"))),
                };
                self.endpoint(type_, side, self.text(type_.protocol.as_ref(), "protocol")?)
            }
            "identifier" => self.identifier(type_),
            kind @ ("string_array" | "internal" | "experimental_pointer") => {
                Err(self.error(format!("the type `{kind}` is not supported")))
            }
            other => Err(self.error(format!("unknown kind of type `{other}`"))),
        }
    }

    pub(super) fn primitive(&self, name: &str) -> Result<Primitive> {
        Primitive::from_fidl(name).ok_or_else(|| self.error(format!("the type `{name}` is not supported")))
    }

    fn element(&self, type_: &json::Type) -> Result<Box<Type>> {
        let element = type_.element_type.as_ref().ok_or_else(|| self.error("expected `element_type`"))?;
        Ok(Box::new(self.type_(element)?))
    }

    fn max(&self, type_: &json::Type) -> Result<Option<u64>> {
        match type_.maybe_element_count {
            Some(0) => Err(self.error("expected a size from 1")),
            max => Ok(max.filter(|max| *max < MAX_COUNT)),
        }
    }

    fn text<'t>(&self, text: Option<&'t String>, field: &str) -> Result<&'t str> {
        text.map(String::as_str).ok_or_else(|| self.error(format!("expected `{field}` in the type")))
    }

    fn endpoint(&self, type_: &json::Type, side: Side, protocol: &str) -> Result<Type> {
        if let Some(transport) = type_.protocol_transport.as_deref().filter(|transport| *transport != "Channel") {
            return Err(self.error(format!("the transport `{transport}` is not supported; known is `Channel`")));
        }
        match self.known.find(self.file, self.name, protocol)? {
            (protocol, Kind::Protocol) => Ok(Type::Endpoint { side, protocol, is_optional: type_.nullable }),
            (name, _) => Err(self.error(format!("`{name}` is no protocol"))),
        }
    }

    fn identifier(&self, type_: &json::Type) -> Result<Type> {
        let full = self.text(type_.identifier.as_ref(), "identifier")?;
        let (name, kind) = self.known.find(self.file, self.name, full)?;
        match (kind, type_.nullable) {
            // Older compilers write ends of clients so.
            (Kind::Protocol, _) => self.endpoint(type_, Side::Client, full),
            (Kind::Struct, true) => Ok(Type::Box(name)),
            (Kind::Union, true) => Ok(Type::OptionalUnion(name)),
            (Kind::Number | Kind::Struct | Kind::Table | Kind::Union | Kind::NewType, false) => {
                Ok(Type::Declared(name))
            }
            (Kind::Number | Kind::Table | Kind::NewType, true) => {
                Err(self.error(format!("`{name}` cannot be optional")))
            }
            (Kind::Const | Kind::Service | Kind::EmptySuccess | Kind::Result, _) => {
                Err(self.error(format!("`{name}` is no type of a member")))
            }
        }
    }

    /// Reads the body of a message: a struct, table or union.
    pub(super) fn payload(&self, type_: Option<&json::Type>) -> Result<Payload> {
        let Some(type_) = type_ else { return Ok(None) };
        let (name, kind) =
            self.known.find(self.file, self.name, self.text(type_.identifier.as_ref(), "identifier")?)?;
        match kind {
            Kind::Struct | Kind::Table | Kind::Union => Ok(Some(name)),
            Kind::EmptySuccess => Ok(None),
            _ => Err(self.error(format!("`{name}` is no struct, table or union"))),
        }
    }
}
