//! Names of declarations, and of what kind they are.

use std::collections::BTreeMap;

use super::error;
use crate::error::Result;
use crate::model::{DeclarationKind, Name};

/// Declarations of all libraries.
#[derive(Default)]
pub(super) struct Known {
    kinds: BTreeMap<Name, Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Const,
    /// Enum or bits.
    Number,
    Struct,
    /// Struct that stands for no values.
    EmptySuccess,
    Table,
    Union,
    /// Union of a method's result, which this compiler does not declare.
    Result,
    NewType,
    Protocol,
    Service,
}

impl Known {
    /// Adds a declaration. Returns false if it exists.
    pub(super) fn add(&mut self, name: Name, kind: Kind) -> bool {
        self.kinds.insert(name, kind).is_none()
    }

    /// Makes the union one of a method's result.
    pub(super) fn set_result(&mut self, name: &Name) {
        if let Some(kind) = self.kinds.get_mut(name).filter(|kind| **kind == Kind::Union) {
            *kind = Kind::Result;
        }
    }

    pub(super) fn kind(&self, name: &Name) -> Option<Kind> {
        self.kinds.get(name).copied()
    }

    /// Reads a full name of a declaration that must exist.
    pub(super) fn find(&self, file: &str, place: &str, full: &str) -> Result<(Name, Kind)> {
        let name = parse(file, full)?;
        if let Some(kind) = self.kind(&name) {
            return Ok((name, kind));
        }
        let is_known = self.kinds.keys().any(|known| known.library == name.library);
        let advice = if is_known { "" } else { ": add the file of its library" };
        Err(error(file, format!("{place}: nothing is called `{full}`{advice}")))
    }
}

impl Kind {
    pub(super) fn of(kind: &DeclarationKind) -> Self {
        match kind {
            DeclarationKind::Const { .. } => Self::Const,
            DeclarationKind::Bits(_) | DeclarationKind::Enum(_) => Self::Number,
            DeclarationKind::Struct(_) => Self::Struct,
            DeclarationKind::Table(_) => Self::Table,
            DeclarationKind::Union(_) => Self::Union,
            DeclarationKind::NewType(_) => Self::NewType,
            DeclarationKind::Protocol(_) => Self::Protocol,
            DeclarationKind::Service(_) => Self::Service,
        }
    }
}

/// Reads `library/Name`.
pub(super) fn parse(file: &str, full: &str) -> Result<Name> {
    let expected = || error(file, format!("expected `library/Name`, found {full:?}"));
    let (library, name) = full.split_once('/').ok_or_else(expected)?;
    if !is_library(library) || !is_identifier(name) {
        return Err(expected());
    }
    Ok(Name::new(library, name))
}

/// Fails if the text is no name of a library.
pub(super) fn check_library(file: &str, name: &str) -> Result<()> {
    if is_library(name) { Ok(()) } else { Err(error(file, format!("expected the name of a library, found {name:?}"))) }
}

/// Fails if the text is no name of a member or method.
pub(super) fn check_member(file: &str, of: &str, name: &str) -> Result<()> {
    if is_identifier(name) {
        return Ok(());
    }
    Err(error(file, format!("{of}: expected the name of a member, found {name:?}")))
}

fn is_library(name: &str) -> bool {
    name.split('.').all(|part| {
        part.starts_with(|first: char| first.is_ascii_lowercase())
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && !name.ends_with('_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
