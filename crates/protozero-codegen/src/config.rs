//! The configuration of the generator.

use prost_reflect::FileDescriptor;

/// Arrangement of the generated items in modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// A module for each package, inside the modules of the packages around it: `message Foo` of
    /// package `a.b` is `a::b::Foo`.
    #[default]
    Packages,
    /// One module for the items of all packages.
    Flat,
}

/// Type of a `oneof` in a value type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OneofStyle {
    /// One field, an `Option` of an enumeration. It holds at most one member: the last one that was
    /// decoded.
    #[default]
    Enum,
    /// A field for each member, as if there were no `oneof`. Several may be set, and the reader
    /// decides which one counts.
    Fields,
}

/// Items that are generated for a `service`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Services {
    /// Its name and an enumeration of its methods.
    #[default]
    Names,
    /// Nothing.
    None,
    /// Bindings for the RPC library `esatto-ipc`: a description, a client, and traits for servers.
    Ipc,
    /// As [`Ipc`](Self::Ipc), without what only servers need.
    IpcClient,
    /// As [`Ipc`](Self::Ipc), without the client.
    IpcServer,
}

impl Services {
    /// Returns true for bindings, which refer to the messages of the methods.
    pub(crate) fn has_bindings(self) -> bool {
        !matches!(self, Self::Names | Self::None)
    }
}

/// The configuration of the generator: the items to generate, and their place.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) layout: Layout,
    pub(crate) oneofs: OneofStyle,
    pub(crate) deprecated: bool,
    pub(crate) imports: bool,
    pub(crate) rust_values: bool,
    pub(crate) messages: bool,
    pub(crate) services: Services,
    pub(crate) rpc_trace: bool,
    pub(crate) client_feature: Option<String>,
    pub(crate) server_feature: Option<String>,
    /// Paths are relative if this is empty.
    pub(crate) root: String,
    pub(crate) runtime: String,
    pub(crate) rpc_runtime: String,
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
    /// Generates writers, readers, enumerations and services, for a module at any place.
    #[must_use]
    pub fn new() -> Self {
        Self {
            layout: Layout::Packages,
            oneofs: OneofStyle::Enum,
            deprecated: true,
            imports: true,
            rust_values: true,
            messages: true,
            services: Services::Names,
            rpc_trace: true,
            client_feature: None,
            server_feature: None,
            root: String::new(),
            runtime: "::esatto_protozero".to_owned(),
            rpc_runtime: "::esatto_ipc".to_owned(),
            strip: String::new(),
            owned: Vec::new(),
            features: Vec::new(),
            ungated: Vec::new(),
            external: Vec::new(),
        }
    }

    /// Sets the arrangement of items. The default is a module for each package.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the type of a `oneof` in a value type. The default is an enumeration.
    #[must_use]
    pub fn oneofs(mut self, style: OneofStyle) -> Self {
        self.oneofs = style;
        self
    }

    /// Selects whether deprecated items get the attribute `#[deprecated]`, which is the default.
    /// Otherwise only their documentation says so.
    #[must_use]
    pub fn deprecated(mut self, attribute: bool) -> Self {
        self.deprecated = attribute;
        self
    }

    /// Selects whether the values of enumerations also get names in the style of Rust: `Driving`
    /// beside `STATE_DRIVING` of `enum State`. This is the default.
    #[must_use]
    pub fn rust_values(mut self, generate: bool) -> Self {
        self.rust_values = generate;
        self
    }

    /// Selects whether code is also generated for imported files that are not
    /// [`external`](Self::external). This is the default.
    ///
    /// If it is off, each imported file whose types are used must be among the files to compile.
    /// `google/protobuf/descriptor.proto` is imported for options of the schema language. Code for
    /// it is generated only if a field has the type of one of its messages.
    #[must_use]
    pub fn imports(mut self, generate: bool) -> Self {
        self.imports = generate;
        self
    }

    /// Sets the module that will hold all generated items, such as `crate::protos`. Without it,
    /// paths are relative (`super::…`), and the module may be at any place.
    #[must_use]
    pub fn root(mut self, path: impl Into<String>) -> Self {
        self.root = path.into();
        self
    }

    /// Sets the path at which generated code finds `esatto-protozero`. The default is
    /// `::esatto_protozero`.
    #[must_use]
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.runtime = path.into();
        self
    }

    /// Selects what is generated for services. The default is [`Services::Names`].
    ///
    /// With bindings, the messages of the methods also get value types, as if
    /// [`owned`](Self::owned) named them. The generated code needs `esatto-ipc` with the features
    /// `channel` (for the client) and `server`.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// Selects whether bindings contain the categories of traced methods, which is the default. If
    /// this is off, the schema's options have no effect, and no call is traced.
    #[must_use]
    pub fn rpc_trace(mut self, generate: bool) -> Self {
        self.rpc_trace = generate;
        self
    }

    /// Makes the clients of bindings depend on a cargo feature. For crates that others use: a
    /// program that only calls a service then builds nothing of the serving side.
    #[must_use]
    pub fn client_feature(mut self, feature: impl Into<String>) -> Self {
        self.client_feature = Some(feature.into());
        self
    }

    /// As [`client_feature`](Self::client_feature), for the items that servers need.
    #[must_use]
    pub fn server_feature(mut self, feature: impl Into<String>) -> Self {
        self.server_feature = Some(feature.into());
        self
    }

    /// Sets the path at which generated bindings find `esatto-ipc`. The default is `::esatto_ipc`.
    #[must_use]
    pub fn rpc_runtime(mut self, path: impl Into<String>) -> Self {
        self.rpc_runtime = path.into();
        self
    }

    /// Selects whether code is generated for messages and enumerations. This is the default.
    ///
    /// If it is off, only services are generated. The types of their messages must then be in an
    /// [`external`](Self::external) module.
    #[must_use]
    pub fn messages(mut self, generate: bool) -> Self {
        self.messages = generate;
        self
    }

    /// Sets a leading part of the `.proto` paths that the generated paths leave out.
    #[must_use]
    pub fn strip_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.strip = prefix.into();
        self
    }

    /// Also generates value types for messages, and for all messages that they refer to.
    ///
    /// `pattern` selects files by their path (`shop/*.proto`) or messages by their full name
    /// (`.shop.Order`). `*` stands for any text without a slash, `**` for any text. Nested values
    /// that are large (128 bytes) or recursive are boxed. A map is a `BTreeMap`. For a `oneof` see
    /// [`oneofs`](Self::oneofs).
    #[must_use]
    pub fn owned(mut self, pattern: impl Into<String>) -> Self {
        self.owned.push(pattern.into());
        self
    }

    /// Makes the items of files that match `pattern`, and the fields of their types, depend on a
    /// cargo feature.
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

    /// Names the module with the types of an imported proto package that were generated elsewhere.
    /// For Perfetto's own messages: `.external("perfetto.protos", "::esatto_schema")`.
    #[must_use]
    pub fn external(mut self, package: impl Into<String>, path: impl Into<String>) -> Self {
        self.external.push((package.into(), path.into()));
        self
    }

    /// Returns the index of the [`external`](Self::external) module that has the types of `file`.
    pub(crate) fn external_of(&self, file: &FileDescriptor) -> Option<usize> {
        self.external.iter().position(|(package, _)| package == file.package_name())
    }
}
