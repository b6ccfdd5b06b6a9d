//! Descriptors of categories. Categories are equal if name, description and tags are.

use core::hash::BuildHasherDefault;
use std::collections::HashMap;
use std::hash::DefaultHasher;

use esatto::Category;

use crate::abi::CategoryDescriptor;

/// Name, description and tags of a category.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) tags: Vec<String>,
}

/// A map by key. A static can hold it, because its hasher needs no state of the process.
pub(super) type ByKey<V> = HashMap<Key, V, BuildHasherDefault<DefaultHasher>>;

impl Key {
    /// Returns the key of a program's descriptor; null is empty.
    pub(super) fn of_descriptor(desc: Option<&CategoryDescriptor<'_>>) -> Self {
        let Some(desc) = desc else { return Self::default() };
        Self {
            name: desc.name.to_string_lossy(),
            description: desc.desc.to_string_lossy(),
            tags: desc.tags.get().iter().map(|tag| tag.to_string_lossy()).collect(),
        }
    }

    pub(super) fn of_category(category: &Category) -> Self {
        Self {
            name: category.name().to_owned(),
            description: category.description().to_owned(),
            tags: category.tags().iter().map(|&tag| tag.to_owned()).collect(),
        }
    }
}

/// Returns true if a descriptor describes a category.
pub(super) fn describes(desc: Option<&CategoryDescriptor<'_>>, category: &Category) -> bool {
    let Some(desc) = desc else { return false };
    let tags = desc.tags.get();
    category.name().as_bytes() == desc.name.bytes().unwrap_or_default()
        && category.description().as_bytes() == desc.desc.bytes().unwrap_or_default()
        && category.tags().len() == tags.len()
        && category.tags().iter().zip(tags).all(|(known, tag)| known.as_bytes() == tag.bytes().unwrap_or_default())
}
