use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use prost::Message as _;
use prost_reflect::DescriptorPool;

use crate::Error;
use crate::generator::Generator;
use crate::names;

/// Lints that generated code cannot heed: names come from the schema, paths are spelled in full.
pub(crate) const ALLOW: &[&str] = &[
    "non_snake_case",
    "unused_qualifications",
    "clippy::len_without_is_empty",
    "clippy::module_inception",
    "clippy::should_implement_trait",
    "clippy::use_self",
    "clippy::wrong_self_convention",
];

/// What to generate and how the result is placed.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) root: String,
    pub(crate) runtime: String,
    pub(crate) strip: String,
    pub(crate) owned: Vec<String>,
    pub(crate) features: Vec<(String, String)>,
    pub(crate) ungated: Vec<String>,
    pub(crate) external: Vec<(String, String)>,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// Writers, readers, enumerations and services, for a module that is the crate's root.
    #[must_use]
    pub fn new() -> Self {
        Self {
            root: "crate".to_owned(),
            runtime: "::esatto_protozero".to_owned(),
            strip: String::new(),
            owned: Vec::new(),
            features: Vec::new(),
            ungated: Vec::new(),
            external: Vec::new(),
        }
    }

    /// The module in which all generated items will be found, such as `crate::protos`.
    #[must_use]
    pub fn root(mut self, path: impl Into<String>) -> Self {
        self.root = path.into();
        self
    }

    /// Where generated code finds `esatto-protozero`; `::esatto_protozero` unless it was renamed.
    #[must_use]
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.runtime = path.into();
        self
    }

    /// A leading part of the `.proto` paths that the generated paths leave out.
    #[must_use]
    pub fn strip_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.strip = prefix.into();
        self
    }

    /// Also makes value types of messages, and of all messages these refer to.
    ///
    /// `pattern` selects files by their path (`shop/*.proto`) or messages by their full name (`.shop.Order`);
    /// `*` stands for anything but a slash, `**` for anything. Nested values that are large (128 bytes) or recursive are
    /// boxed.
    #[must_use]
    pub fn owned(mut self, pattern: impl Into<String>) -> Self {
        self.owned.push(pattern.into());
        self
    }

    /// Puts what the files that match `pattern` declare, and the fields of that type, behind a cargo feature.
    #[must_use]
    pub fn feature(mut self, feature: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.features.push((feature.into(), pattern.into()));
        self
    }

    /// Exempts files from [`feature`](Self::feature).
    #[must_use]
    pub fn ungated(mut self, pattern: impl Into<String>) -> Self {
        self.ungated.push(pattern.into());
        self
    }

    /// Tells that the types of a proto package, where imported, were generated elsewhere: for Perfetto's own messages
    /// `.external("perfetto.protos", "::esatto_schema")`.
    #[must_use]
    pub fn external(mut self, package: impl Into<String>, path: impl Into<String>) -> Self {
        self.external.push((package.into(), path.into()));
        self
    }

    /// Compiles `.proto` files, given by their paths relative to one of the folders `includes`.
    ///
    /// # Errors
    ///
    /// If the files do not compile, or use what cannot be generated.
    pub fn compile(&self, files: &[impl AsRef<Path>], includes: &[impl AsRef<Path>]) -> Result<Output, Error> {
        let mut compiler = protox::Compiler::new(includes)?;
        compiler.include_imports(true).include_source_info(true).open_files(files)?;
        let wanted: Vec<String> = compiler.files().filter(|f| !f.is_import()).map(|f| f.name().to_owned()).collect();
        // A pool of our own, because the compiler's was built before the options of fields were known.
        let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice())?;
        self.generate(&pool, &wanted)
    }

    /// Generates code for the files named `wanted` out of a pool of descriptors.
    pub(crate) fn generate(&self, pool: &DescriptorPool, wanted: &[String]) -> Result<Output, Error> {
        let files = Generator::new(self, pool, wanted)?.run()?;
        Ok(Output { files, descriptor_set: descriptor_set(pool) })
    }
}

/// Generated code.
#[derive(Clone, Debug)]
pub struct Output {
    files: BTreeMap<String, String>,
    descriptor_set: Vec<u8>,
}

impl Output {
    /// The text of every generated file by its path: one per `.proto` file, and `mod.rs`, which declares the others
    /// and makes everything available in one module.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Everything in one text, to be pulled in by `include!`.
    #[must_use]
    pub fn bundle(&self) -> String {
        let mut text = String::new();
        for (path, code) in self.files.iter().filter(|(path, _)| *path != "mod.rs") {
            let module = names::file_module(path);
            // Writing to a string cannot fail.
            let _ = write!(text, "#[allow({})]\nmod {module} {{\n{code}}}\npub use {module}::*;\n", ALLOW.join(", "));
        }
        text
    }

    /// A serialized `FileDescriptorSet` of the files and all they import, without comments.
    #[must_use]
    pub fn descriptor_set(&self) -> &[u8] {
        &self.descriptor_set
    }
}

fn descriptor_set(pool: &DescriptorPool) -> Vec<u8> {
    let mut file: Vec<_> = pool.file_descriptor_protos().cloned().collect();
    file.iter_mut().for_each(|file| file.source_code_info = None);
    prost_types::FileDescriptorSet { file }.encode_to_vec()
}
