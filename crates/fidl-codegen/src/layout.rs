//! Sizes, alignments and offsets of the wire format, version 2.

use std::collections::BTreeMap;

use crate::model::{Declaration, DeclarationKind, Library, Name, Type};

/// Size and alignment of a type in place, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) size: u64,
    pub(crate) align: u64,
}

/// Declarations of all libraries by name.
pub(crate) struct Layouts<'a> {
    declarations: BTreeMap<&'a Name, &'a Declaration>,
}

/// Reason why a type has no size.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoShape {
    /// The struct is a part of itself.
    Recursive(Name),
    /// The type is larger than a message.
    TooLarge,
    /// Nothing has this name.
    Unknown(Name),
}

const POINTER: Shape = Shape { size: 8, align: 8 };
const VECTOR: Shape = Shape { size: 16, align: 8 };

impl<'a> Layouts<'a> {
    pub(crate) fn new(libraries: &'a [Library]) -> Self {
        Self::of(libraries.iter().flat_map(|library| &library.declarations))
    }

    pub(crate) fn of(declarations: impl Iterator<Item = &'a Declaration>) -> Self {
        Self { declarations: declarations.map(|declaration| (&declaration.name, declaration)).collect() }
    }

    pub(crate) fn get(&self, name: &Name) -> Option<&'a Declaration> {
        self.declarations.get(name).copied()
    }

    pub(crate) fn shape(&self, type_: &Type) -> Result<Shape, NoShape> {
        self.shape_in(type_, &mut Vec::new())
    }

    /// Returns the offset of each member of a struct, and the struct's shape.
    pub(crate) fn members(&self, members: &[Type]) -> Result<(Vec<u64>, Shape), NoShape> {
        self.members_in(members.iter(), &mut Vec::new())
    }

    fn shape_in(&self, type_: &Type, open: &mut Vec<Name>) -> Result<Shape, NoShape> {
        Ok(match type_ {
            Type::Primitive(primitive) => Shape { size: primitive.size(), align: primitive.size() },
            Type::String { .. } | Type::Vector { .. } | Type::OptionalUnion(_) => VECTOR,
            Type::Box(_) => POINTER,
            Type::Handle { .. } | Type::Endpoint { .. } => Shape { size: 4, align: 4 },
            Type::Array { element, count } => {
                let element = self.shape_in(element, open)?;
                let size = element.size.checked_mul(*count).filter(|size| *size <= u64::from(u32::MAX));
                Shape { size: size.ok_or(NoShape::TooLarge)?, align: element.align }
            }
            Type::Declared(name) => self.declared(name, open)?,
        })
    }

    fn declared(&self, name: &Name, open: &mut Vec<Name>) -> Result<Shape, NoShape> {
        let declaration = self.get(name).ok_or_else(|| NoShape::Unknown(name.clone()))?;
        if open.contains(name) {
            return Err(NoShape::Recursive(name.clone()));
        }
        open.push(name.clone());
        let shape = match &declaration.kind {
            DeclarationKind::Bits(numbers) | DeclarationKind::Enum(numbers) => {
                Shape { size: numbers.type_.size(), align: numbers.type_.size() }
            }
            DeclarationKind::Struct(layout) => {
                self.members_in(layout.members.iter().map(|member| &member.type_), open)?.1
            }
            DeclarationKind::Table(_) | DeclarationKind::Union(_) => VECTOR,
            DeclarationKind::NewType(type_) => self.shape_in(type_, open)?,
            DeclarationKind::Const { .. } | DeclarationKind::Protocol(_) | DeclarationKind::Service(_) => {
                return Err(NoShape::Unknown(name.clone()));
            }
        };
        open.pop();
        Ok(shape)
    }

    fn members_in<'t>(
        &self,
        members: impl Iterator<Item = &'t Type>,
        open: &mut Vec<Name>,
    ) -> Result<(Vec<u64>, Shape), NoShape> {
        let mut offsets = Vec::new();
        // An empty struct has one byte.
        let (mut size, mut align) = (0_u64, 1);
        for member in members {
            let shape = self.shape_in(member, open)?;
            size = size.next_multiple_of(shape.align);
            offsets.push(size);
            size = size.checked_add(shape.size).filter(|size| *size <= u64::from(u32::MAX)).ok_or(NoShape::TooLarge)?;
            align = align.max(shape.align);
        }
        let size = if offsets.is_empty() { 1 } else { size.next_multiple_of(align) };
        Ok((offsets, Shape { size, align }))
    }

    /// Returns true if values of the type may hold handles.
    pub(crate) fn is_resource(&self, type_: &Type) -> bool {
        match type_ {
            Type::Primitive(_) | Type::String { .. } => false,
            Type::Vector { element, .. } | Type::Array { element, .. } => self.is_resource(element),
            Type::Handle { .. } | Type::Endpoint { .. } => true,
            Type::Declared(name) | Type::Box(name) | Type::OptionalUnion(name) => {
                match self.get(name).map(|declaration| &declaration.kind) {
                    Some(DeclarationKind::Struct(layout)) => layout.is_resource,
                    Some(DeclarationKind::Table(members) | DeclarationKind::Union(members)) => members.is_resource,
                    Some(DeclarationKind::NewType(type_)) => self.is_resource(type_),
                    _ => false,
                }
            }
        }
    }
}
