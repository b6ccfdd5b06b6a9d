//! [`AllowList`]: compiles `.proto` files to bytecode.
//!
//! Every field of the schema is allowed, unless an option excludes it: the schema *is* the
//! allow-list. Messages are numbered in the order of their first use, depth first, along the fields
//! as they are declared. Upstream does the same, and the bytecode is the same to the byte.

mod options;
mod schema;

pub use options::Options;

use core::fmt;
use std::collections::BTreeMap;
use std::path::Path;

use prost_reflect::DescriptorPool;

use crate::bytecode::{Builder, Bytecode, MessageId, StringField, Version};
use crate::{Error, SemanticType};

/// Allowed fields with their names.
///
/// ```no_run
/// use esatto_filter::{AllowList, Options, Version};
///
/// let options = Options::new().exclude("shop.Order.card_number").filter_string("shop.Order.note", 0);
/// let allow_list = AllowList::from_files(&["shop.proto"], &["protos"], "shop.Order", &options)?;
/// println!("{allow_list}");
/// std::fs::write("shop.filter", allow_list.bytecode(Version::V2)?.bytecode).expect("a file");
/// # Ok::<(), esatto_filter::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AllowList {
    messages: Vec<Message>,
}

#[derive(Clone, Debug)]
struct Message {
    name: String,
    fields: BTreeMap<u32, Field>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    /// `uint32`, or the full name of a message or enumeration.
    type_name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pass,
    /// Index of a message in the list.
    Nested(usize),
    String(StringField),
}

impl AllowList {
    /// Reads `.proto` files, given by their paths relative to one of the folders `includes`.
    ///
    /// `root` is the full name of a message; empty for the first one in the first file. The files
    /// may use the field options of `esatto/filter_options.proto`, which can always be imported, or
    /// those of Perfetto's own file.
    ///
    /// # Errors
    ///
    /// If the files do not compile, there is no such message, or an option cannot be applied.
    pub fn from_files(
        files: &[impl AsRef<Path>],
        includes: &[impl AsRef<Path>],
        root: &str,
        options: &Options,
    ) -> Result<Self, Error> {
        schema::from_files(files, includes, root, options)
    }

    /// Makes the list of the message `root` of a pool of descriptors.
    ///
    /// # Errors
    ///
    /// If there is no such message, or an option cannot be applied.
    pub fn from_pool(pool: &DescriptorPool, root: &str, options: &Options) -> Result<Self, Error> {
        schema::from_pool(pool, root, options)
    }

    /// Merges messages that allow the same fields, if none of these is a nested message or a
    /// filtered string.
    ///
    /// The bytecode becomes smaller and keeps its meaning. Merged messages have the names of the
    /// first one.
    pub fn dedupe(&mut self) {
        let mut first_of: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        let mut target: Vec<usize> = (0..self.messages.len()).collect();
        for (index, message) in self.messages.iter().enumerate() {
            if message.fields.values().all(|field| field.kind == Kind::Pass) {
                target[index] = *first_of.entry(message.fields.keys().copied().collect()).or_insert(index);
            }
        }
        // The root stays the first message, because no message comes before it.
        let kept: Vec<usize> = (0..target.len()).filter(|index| target[*index] == *index).collect();
        let new_index = |index: usize| kept.partition_point(|kept| *kept < target[index]);
        for field in self.messages.iter_mut().flat_map(|message| message.fields.values_mut()) {
            if let Kind::Nested(index) = &mut field.kind {
                *index = new_index(*index);
            }
        }
        let mut index = 0..target.len();
        self.messages.retain(|_| index.next().is_some_and(|index| target[index] == index));
    }

    /// Iterates over the string fields that go through string rules, by their full names.
    pub fn filtered_strings(&self) -> impl Iterator<Item = (String, StringField)> + '_ {
        self.messages.iter().flat_map(|message| {
            message.fields.values().filter_map(|field| match field.kind {
                Kind::String(string) => Some((format!("{}.{}", message.name, field.name), string)),
                _ => None,
            })
        })
    }

    /// Returns the bytecode for services from `version` on.
    ///
    /// # Errors
    ///
    /// If a field number is over 2^29 − 1, which is possible only in a pool that was made by hand.
    #[expect(clippy::cast_possible_truncation, reason = "no pool has 2^32 messages")]
    pub fn bytecode(&self, version: Version) -> Result<Bytecode, Error> {
        let mut builder = Builder::new(version);
        for message in &self.messages {
            let mut fields = message.fields.iter().map(|(number, field)| (*number, field.kind)).peekable();
            while let Some((first, kind)) = fields.next() {
                match kind {
                    Kind::Nested(index) => builder.nested(first, MessageId(index as u32))?,
                    Kind::String(string) => builder.string(first, string)?,
                    Kind::Pass => {
                        let mut last = first;
                        while fields.next_if_eq(&(last + 1, Kind::Pass)).is_some() {
                            last += 1;
                        }
                        if last == first { builder.pass(first)? } else { builder.pass_range(first..=last)? }
                    }
                };
            }
            builder.end_message();
        }
        builder.build()
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// Returns the names for a path of field numbers from the root down, as in
    /// [`Usage`](crate::Usage): `packet.timestamp`. Numbers that are not in the list stay numbers.
    pub fn field_name(&self, path: impl IntoIterator<Item = u32>) -> String {
        let mut message = self.messages.first();
        let mut names = Vec::new();
        for number in path {
            let field = message.and_then(|message| message.fields.get(&number));
            names.push(field.map_or_else(|| number.to_string(), |field| field.name.clone()));
            message = match field.map(|field| field.kind) {
                Some(Kind::Nested(index)) => self.messages.get(index),
                _ => None,
            };
        }
        names.join(".")
    }
}

/// Lists the allowed messages with their fields' numbers, names and types.
impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for message in &self.messages {
            writeln!(f, "{}", message.name)?;
            let width = message.fields.values().map(|field| field.name.len()).max().unwrap_or(0);
            for (number, field) in &message.fields {
                write!(f, "{number:>9}  {:width$}  {}", field.name, field.type_name)?;
                match field.kind {
                    Kind::String(StringField { semantic_type: SemanticType(0), .. }) => writeln!(f, ", filtered")?,
                    Kind::String(string) => writeln!(f, ", filtered as type {}", string.semantic_type.0)?,
                    Kind::Nested(index) if self.messages[index].name != field.type_name => {
                        writeln!(f, ", as {}", self.messages[index].name)?;
                    }
                    _ => writeln!(f)?,
                }
            }
        }
        Ok(())
    }
}
