//! Descriptions of services and their methods, which generated bindings contain.
//!
//! This crate makes no calls. `esatto-ipc` has clients and servers for these descriptions.

#[allow(unsafe_code, reason = "reads a word through an atomic pointer")]
mod switch;
mod trace_site;

use crate::owned::Owned;

pub use self::trace_site::{Recorded, TraceSite, TraceValue, ValueKind};

/// Service: its name and its methods, in the order of their ids.
#[derive(Debug)]
pub struct Service {
    /// Name that clients bind, without its package.
    pub name: &'static str,
    /// Methods. The id of a method is its position, from 1. New methods are only appended.
    pub methods: &'static [Method],
}

/// Method of a [`Service`].
#[derive(Debug)]
pub struct Method {
    /// Name within its service: `Get`.
    pub name: &'static str,
    /// Name for people: `Store.Get`.
    pub full_name: &'static str,
    /// Number of replies.
    pub kind: Kind,
    /// Category of the traced calls, if the schema names one (`docs/spec/ipc-tracing.md` §8).
    pub trace: Option<&'static TraceSite>,
}

/// Number of replies to a call of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One.
    Unary,
    /// Any number.
    ServerStream,
    /// None.
    OneWay,
}

/// Method as a type. Generated bindings have one such type for each method.
pub trait Rpc: 'static {
    /// The service.
    const SERVICE: &'static Service;
    /// Id of the method: its position in [`Service::methods`], from 1.
    const METHOD: u32;
    /// The request message.
    type Request: Owned;
    /// The reply message.
    type Reply: Owned;
}

impl Service {
    /// Returns the id of the method with a name; `None` if there is none.
    #[must_use]
    pub fn id_of(&self, name: &str) -> Option<u32> {
        (1..).zip(self.methods).find(|(_, method)| method.name == name).map(|(id, _)| id)
    }

    /// Returns the method with an id; `None` if there is none.
    #[must_use]
    pub const fn method(&self, id: u32) -> Option<&'static Method> {
        let index = id.wrapping_sub(1) as usize;
        if index < self.methods.len() { Some(&self.methods[index]) } else { None }
    }
}

/// Returns the description of a method type.
///
/// # Panics
///
/// If [`Rpc::METHOD`] is not the id of a method, at compile time if possible.
#[must_use]
pub const fn method_of<M: Rpc>() -> &'static Method {
    M::SERVICE.method(M::METHOD).expect("the service has this method")
}
