use std::path::Path;

use prost::Message as _;
use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::generator::Generator;
use crate::{Error, Output};

/// How generated items are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// A module for each package, inside those of the packages around it: `message Foo` of package `a.b` is
    /// `a::b::Foo`.
    #[default]
    Packages,
    /// One module for everything, whatever its package.
    Flat,
}

/// What becomes of a `oneof` in a value type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OneofStyle {
    /// One field, an `Option` of an enumeration: there is one member at most, the last one that was decoded.
    #[default]
    Enum,
    /// A field for each member, as if there were no `oneof`: many may be set, and whoever reads decides.
    Fields,
}

/// What to generate and how the result is placed.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) layout: Layout,
    pub(crate) oneofs: OneofStyle,
    pub(crate) deprecated: bool,
    pub(crate) imports: bool,
    /// Empty: paths are relative.
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
    /// Writers, readers, enumerations and services, for a module that may lie anywhere.
    #[must_use]
    pub fn new() -> Self {
        Self {
            layout: Layout::Packages,
            oneofs: OneofStyle::Enum,
            deprecated: true,
            imports: true,
            root: String::new(),
            runtime: "::esatto_protozero".to_owned(),
            strip: String::new(),
            owned: Vec::new(),
            features: Vec::new(),
            ungated: Vec::new(),
            external: Vec::new(),
        }
    }

    /// How items are arranged; in a module for each package unless told otherwise.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// What becomes of a `oneof` in a value type; an enumeration unless told otherwise.
    #[must_use]
    pub fn oneofs(mut self, style: OneofStyle) -> Self {
        self.oneofs = style;
        self
    }

    /// Whether what the schema says is deprecated gets the attribute `#[deprecated]` (which is the default), or only
    /// a remark in its documentation.
    #[must_use]
    pub fn deprecated(mut self, attribute: bool) -> Self {
        self.deprecated = attribute;
        self
    }

    /// Whether imported files are generated as well, unless they are [`external`](Self::external); the default.
    ///
    /// Without, they must be among the files to be compiled, or nothing of them be used. `google/protobuf/descriptor.proto`,
    /// which is imported for options of the schema language, is generated only if one of its messages is a field's.
    #[must_use]
    pub fn imports(mut self, generate: bool) -> Self {
        self.imports = generate;
        self
    }

    /// The module in which all generated items will be found, such as `crate::protos`. Without, paths are relative
    /// (`super::…`), and the module may lie anywhere.
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
    /// boxed. A map is a `BTreeMap`; for a `oneof` see [`oneofs`](Self::oneofs).
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
    /// If the files do not compile or use what cannot be generated, or a pattern of this configuration selects nothing.
    pub fn compile(&self, files: &[impl AsRef<Path>], includes: &[impl AsRef<Path>]) -> Result<Output, Error> {
        let mut compiler = protox::Compiler::new(includes)?;
        compiler.include_imports(true).include_source_info(true);
        for path in files.iter().map(AsRef::as_ref) {
            compiler.open_file(path).map_err(|error| match error.file() {
                None if error.is_file_not_found() => {
                    let includes = includes.iter().map(|folder| folder.as_ref().to_owned()).collect();
                    Error::NotFound { path: path.to_owned(), includes }
                }
                _ => Error::Proto(error),
            })?;
        }
        let wanted: Vec<String> = compiler.files().filter(|f| !f.is_import()).map(|f| f.name().to_owned()).collect();
        let sources = compiler.files().filter_map(|file| file.path().map(Path::to_owned)).collect();
        // A pool of our own, because the compiler's was built before the options of fields were known.
        let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice())?;
        let output = self.generate(&pool, &wanted)?;
        Ok(Output { sources, ..output })
    }

    /// Generates code for the files named `wanted` out of a pool of descriptors.
    pub(crate) fn generate(&self, pool: &DescriptorPool, wanted: &[String]) -> Result<Output, Error> {
        check_maps(pool)?;
        let (files, bundle) = Generator::new(self, pool, wanted)?.run()?;
        Ok(Output { files, bundle, descriptor_set: descriptor_set(pool), sources: Vec::new() })
    }
}

/// Makes sure that each map has keys and values, which no compiler leaves out but nobody checks, and everybody relies on.
fn check_maps(pool: &DescriptorPool) -> Result<(), Error> {
    let is_broken = |message: &MessageDescriptor| {
        message.is_map_entry() && (message.get_field(1).is_none() || message.get_field(2).is_none())
    };
    match pool.all_messages().find(is_broken) {
        Some(entry) => {
            Err(Error::Unsupported { what: "a map without keys or values", proto: entry.full_name().to_owned() })
        }
        None => Ok(()),
    }
}

fn descriptor_set(pool: &DescriptorPool) -> Vec<u8> {
    let mut file: Vec<_> = pool.file_descriptor_protos().cloned().collect();
    file.iter_mut().for_each(|file| file.source_code_info = None);
    prost_types::FileDescriptorSet { file }.encode_to_vec()
}
