//! Conversion of descriptors to an allow-list.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind as ProtoKind, MessageDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver};

use super::options::{Fate, Judge};
use super::{AllowList, Field, Kind, Message, Options};
use crate::Error;

/// File with the options of fields, which any schema can import.
const OPTIONS_FILE: &str = "esatto/filter_options.proto";
const OPTIONS_TEXT: &str = include_str!("../../proto/esatto/filter_options.proto");

pub(super) fn from_files(
    files: &[impl AsRef<Path>],
    includes: &[impl AsRef<Path>],
    root: &str,
    options: &Options,
) -> Result<AllowList, Error> {
    let mut resolver = ChainFileResolver::new();
    includes.iter().for_each(|include| resolver.add(IncludeFileResolver::new(include.as_ref().to_owned())));
    resolver.add(OwnFile);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).open_files(files)?;
    let own: Vec<String> =
        compiler.files().filter(|file| !file.is_import()).map(|file| file.name().to_owned()).collect();
    // A separate pool, because the compiler's was built before the options of fields were known.
    let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice())?;
    if !root.is_empty() {
        return from_pool(&pool, root, options);
    }
    let first = own.iter().filter_map(|name| pool.get_file_by_name(name)?.messages().next()).next();
    let first = first.ok_or_else(|| Error::RootMessage { name: String::new(), suggestion: None })?;
    from_message(&first, options)
}

pub(super) fn from_pool(pool: &DescriptorPool, root: &str, options: &Options) -> Result<AllowList, Error> {
    let name = root.strip_prefix('.').unwrap_or(root);
    let message = pool.get_message_by_name(name).ok_or_else(|| {
        let short = name.rsplit('.').next().unwrap_or(name);
        let like = pool.all_messages().find(|message| message.name().eq_ignore_ascii_case(short));
        Error::RootMessage { name: root.to_owned(), suggestion: like.map(|message| message.full_name().to_owned()) }
    })?;
    from_message(&message, options)
}

/// Visits the fields depth first, as declared. A message gets its number at its first use.
fn from_message(root: &MessageDescriptor, options: &Options) -> Result<AllowList, Error> {
    let mut judge = Judge::new(options);
    let mut list = AllowList { messages: Vec::new() };
    let mut index_of = HashMap::new();
    // Messages whose fields are being visited, and the fields that are left.
    let mut open = vec![(add(&mut list, &mut index_of, root), declared_fields(root).into_iter())];
    while let Some((index, fields)) = open.last_mut() {
        let index = *index;
        let Some(field) = fields.next() else {
            open.pop();
            continue;
        };
        let kind = match (judge.fate(&field)?, field.kind()) {
            (Fate::Exclude, _) => continue,
            (Fate::FilterString(string), _) => Kind::String(string),
            (Fate::Allow, ProtoKind::Message(nested)) => {
                let known = index_of.get(nested.full_name()).copied();
                Kind::Nested(known.unwrap_or_else(|| {
                    let index = add(&mut list, &mut index_of, &nested);
                    open.push((index, declared_fields(&nested).into_iter()));
                    index
                }))
            }
            (Fate::Allow | Fate::Pass, _) => Kind::Pass,
        };
        let entry = Field { name: field.name().to_owned(), type_name: type_name(&field), kind };
        list.messages[index].fields.insert(field.number(), entry);
    }
    judge.finish()?;
    Ok(list)
}

fn add(list: &mut AllowList, index_of: &mut HashMap<String, usize>, message: &MessageDescriptor) -> usize {
    let index = list.messages.len();
    let name = message.full_name().to_owned();
    index_of.insert(name.clone(), index);
    list.messages.push(Message { name, fields: BTreeMap::new() });
    index
}

fn declared_fields(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let numbers = message.descriptor_proto().field.iter().filter_map(|field| u32::try_from(field.number()).ok());
    numbers.filter_map(|number| message.get_field(number)).collect()
}

fn type_name(field: &FieldDescriptor) -> String {
    match field.kind() {
        ProtoKind::Message(message) => message.full_name().to_owned(),
        ProtoKind::Enum(enumeration) => enumeration.full_name().to_owned(),
        // Names of other types are those of the language.
        kind => format!("{kind:?}").to_lowercase(),
    }
}

/// Resolver of the file that is part of the crate.
struct OwnFile;

impl FileResolver for OwnFile {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == OPTIONS_FILE {
            File::from_source(name, OPTIONS_TEXT)
        } else {
            Err(protox::Error::file_not_found(name))
        }
    }
}
