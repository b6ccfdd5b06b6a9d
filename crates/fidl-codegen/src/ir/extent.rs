//! [`Extents`]: what Fuchsia's compiler says of a type beside its size in place.

use std::collections::BTreeMap;

use crate::layout::Layouts;
use crate::model::{DeclarationKind, Name, Type};

/// Largest number in a file of the compiler, and "without a limit".
const LIMIT: u64 = u32::MAX as u64;

/// Levels of types within types that are followed.
const MAX_LEVELS: u32 = 500;

/// Properties of a type. Numbers are at most [`LIMIT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Levels of objects out of line.
    pub(super) depth: u64,
    pub(super) max_handles: u64,
    /// Bytes out of line.
    pub(super) max_out_of_line: u64,
    pub(super) has_padding: bool,
    pub(super) has_flexible_envelope: bool,
}

pub(super) struct Extents<'a> {
    layouts: &'a Layouts<'a>,
    /// `None` if the type contains itself, also by reference: the numbers of the compiler depend on
    /// where it begins then.
    known: BTreeMap<Name, Option<Extent>>,
    level: u32,
}

impl Extent {
    /// Returns this many of them, one after the other.
    fn times(self, count: u64) -> Self {
        Self {
            max_handles: limited(self.max_handles.saturating_mul(count)),
            max_out_of_line: limited(self.max_out_of_line.saturating_mul(count)),
            ..self
        }
    }

    /// Returns this one and another one.
    fn and(self, other: Self) -> Self {
        Self {
            max_handles: limited(self.max_handles + other.max_handles),
            max_out_of_line: limited(self.max_out_of_line + other.max_out_of_line),
            ..self.or(other)
        }
    }

    /// Returns this one or another one.
    fn or(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            max_handles: self.max_handles.max(other.max_handles),
            max_out_of_line: self.max_out_of_line.max(other.max_out_of_line),
            has_padding: self.has_padding || other.has_padding,
            has_flexible_envelope: self.has_flexible_envelope || other.has_flexible_envelope,
        }
    }

    /// Returns an object out of line, of this many bytes.
    fn out_of_line(self, size: u64) -> Self {
        Self {
            depth: limited(self.depth + 1),
            max_out_of_line: limited(padded(size) + padded(self.max_out_of_line)),
            has_padding: self.has_padding || size % 8 != 0,
            ..self
        }
    }
}

impl<'a> Extents<'a> {
    pub(super) fn new(layouts: &'a Layouts<'a>) -> Self {
        Self { layouts, known: BTreeMap::new(), level: 0 }
    }

    /// Returns the properties of a type; `None` if it has no size, or contains itself.
    pub(super) fn get(&mut self, type_: &Type) -> Option<Extent> {
        if self.level == MAX_LEVELS {
            return None;
        }
        self.level += 1;
        let extent = self.compute(type_);
        self.level -= 1;
        extent
    }

    fn compute(&mut self, type_: &Type) -> Option<Extent> {
        let none = Extent::default();
        Some(match type_ {
            Type::Primitive(_) => none,
            Type::String { max, .. } => Extent { has_padding: true, ..none.out_of_line(max.unwrap_or(LIMIT)) },
            Type::Handle { .. } | Type::Endpoint { .. } => Extent { max_handles: 1, ..none },
            Type::Array { element, count } => self.get(element)?.times(*count),
            Type::Vector { element, max, .. } => {
                let (size, count) = (self.size(element)?, max.unwrap_or(LIMIT));
                let element = self.get(element)?;
                let elements = Extent { max_out_of_line: padded(element.max_out_of_line), ..element }.times(count);
                let has_padding = element.has_padding || size % 8 != 0;
                Extent { has_padding, ..elements.out_of_line(limited(size.saturating_mul(count))) }
            }
            Type::Box(name) => {
                let size = self.size(&Type::Declared(name.clone()))?;
                self.declared(name)?.out_of_line(size)
            }
            Type::Declared(name) | Type::OptionalUnion(name) => self.declared(name)?,
        })
    }

    fn declared(&mut self, name: &Name) -> Option<Extent> {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        self.known.insert(name.clone(), None);
        let extent = self.declaration(name);
        self.known.insert(name.clone(), extent);
        extent
    }

    fn declaration(&mut self, name: &Name) -> Option<Extent> {
        let none = Extent::default();
        Some(match &self.layouts.get(name)?.kind {
            DeclarationKind::Struct(layout) => {
                let types: Vec<Type> = layout.members.iter().map(|member| member.type_.clone()).collect();
                let (_, shape) = self.layouts.members(&types).ok()?;
                let mut used = 0;
                let mut all = none;
                for type_ in &types {
                    used += self.size(type_)?;
                    all = all.and(self.get(type_)?);
                }
                Extent { has_padding: all.has_padding || !types.is_empty() && used != shape.size, ..all }
            }
            DeclarationKind::Table(table) => {
                let mut all = none;
                for member in &table.members {
                    let size = self.size(&member.type_)?;
                    let value = self.get(&member.type_)?;
                    let in_place = if size <= 4 { 0 } else { value.out_of_line(size).max_out_of_line };
                    let depth = value.depth + 1;
                    let has_padding = value.has_padding || size % 8 != 0;
                    all = all.and(Extent { depth, max_out_of_line: in_place, has_padding, ..value });
                }
                let last = table.members.iter().map(|member| member.ordinal).max().unwrap_or(0);
                let max_out_of_line = limited(all.max_out_of_line.saturating_add(last.saturating_mul(8)));
                Extent { depth: limited(all.depth + 1), max_out_of_line, has_flexible_envelope: true, ..all }
            }
            DeclarationKind::Union(union) => {
                let mut all = Extent { has_flexible_envelope: !union.is_strict, ..none };
                for member in &union.members {
                    let size = self.size(&member.type_)?;
                    let value = self.get(&member.type_)?;
                    let max_out_of_line = if size <= 4 { 0 } else { value.out_of_line(size).max_out_of_line };
                    all = all.or(Extent { max_out_of_line, ..value });
                }
                // The compiler says so of all unions.
                Extent { depth: limited(all.depth + 1), has_padding: true, ..all }
            }
            DeclarationKind::NewType(type_) => self.get(type_)?,
            _ => none,
        })
    }

    fn size(&self, type_: &Type) -> Option<u64> {
        self.layouts.shape(type_).ok().map(|shape| shape.size)
    }
}

fn limited(number: u64) -> u64 {
    number.min(LIMIT)
}

fn padded(size: u64) -> u64 {
    limited(size.saturating_add(7) / 8 * 8)
}
