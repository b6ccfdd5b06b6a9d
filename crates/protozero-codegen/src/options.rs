//! Options by name, for the command, the plugin and `codegen.conf`.

use std::fmt::Write as _;

use crate::config::{Config, Layout, OneofStyle, Services};
use crate::error::Error;

/// An option: its name, its value, its effect.
type Row = (&'static str, &'static str, &'static str);

/// All options. One whose value is a pattern or a pair may be given many times.
const OPTIONS: &[Row] = &[
    ("layout", "packages|flat", "modules: one for each package (default), or one for everything"),
    ("root", "PATH", "module of the generated items, like crate::protos (default: paths are relative)"),
    ("runtime", "PATH", "path of esatto-protozero (default: ::esatto_protozero)"),
    (
        "services",
        "names|none|ipc|ipc-client|ipc-server",
        "services: names of methods (default), or bindings for esatto-ipc",
    ),
    ("rpc-trace", "on|off", "bindings: trace the methods that name a category (default: on)"),
    ("rpc-runtime", "PATH", "bindings: path of esatto-ipc (default: ::esatto_ipc)"),
    ("client-feature", "NAME", "bindings: put clients behind a cargo feature"),
    ("server-feature", "NAME", "bindings: put what servers need behind a cargo feature"),
    ("messages", "on|off", "off: only services, whose messages are in an external module (default: on)"),
    ("strip", "PREFIX", "leading part of .proto paths that generated paths leave out"),
    ("owned", "PATTERN", "also generate value types, for files (shop/*.proto) or messages (.shop.Order); all: **"),
    ("oneof", "enum|fields", "a oneof of a value type: an enumeration (default), or a field for each member"),
    ("imports", "on|off", "generate code for imported files"),
    ("rust-values", "on|off", "also name the values of enumerations in the style of Rust (default: on)"),
    ("external", "PACKAGE:PATH", "use this module for the types of an imported package"),
    ("deprecated", "on|off", "mark deprecated items with #[deprecated] (default: on)"),
    ("feature", "NAME:PATTERN", "put the items of these files behind a cargo feature"),
    ("ungated", "PATTERN", "exempt files from feature"),
];

impl Config {
    /// Returns the names that [`option`](Self::option) takes.
    pub fn option_names() -> impl Iterator<Item = &'static str> {
        OPTIONS.iter().map(|(name, ..)| *name)
    }

    /// Sets an option by its name. The command takes it as `--NAME VALUE`, the plugin as
    /// `NAME=VALUE`, and `codegen.conf` as a line.
    ///
    /// [`option_help`] lists all options.
    ///
    /// # Errors
    ///
    /// If there is no option of this name, or it does not take this value.
    pub fn option(self, name: &str, value: &str) -> Result<Self, Error> {
        let Some((_, wanted, _)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<_> = Self::option_names().collect();
            return Err(Error::Option(format!("unknown option `{name}`; known are {}", known.join(", "))));
        };
        let wrong = || Error::Option(format!("option `{name}` takes {wanted}, not `{value}`"));
        let on = || match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(wrong()),
        };
        let pair = || value.split_once(':').filter(|(a, b)| !a.is_empty() && !b.is_empty()).ok_or_else(wrong);
        Ok(match name {
            "layout" => match value {
                "packages" => self.layout(Layout::Packages),
                "flat" => self.layout(Layout::Flat),
                _ => return Err(wrong()),
            },
            "oneof" => match value {
                "enum" => self.oneofs(OneofStyle::Enum),
                "fields" => self.oneofs(OneofStyle::Fields),
                _ => return Err(wrong()),
            },
            "services" => match value {
                "names" => self.services(Services::Names),
                "none" => self.services(Services::None),
                "ipc" => self.services(Services::Ipc),
                "ipc-client" => self.services(Services::IpcClient),
                "ipc-server" => self.services(Services::IpcServer),
                _ => return Err(wrong()),
            },
            "rpc-trace" => self.rpc_trace(on()?),
            "rpc-runtime" => self.rpc_runtime(value),
            "client-feature" => self.client_feature(value),
            "server-feature" => self.server_feature(value),
            "messages" => self.messages(on()?),
            "root" => self.root(value),
            "runtime" => self.runtime(value),
            "strip" => self.strip_prefix(value),
            "owned" => self.owned(value),
            "imports" => self.imports(on()?),
            "rust-values" => self.rust_values(on()?),
            "deprecated" => self.deprecated(on()?),
            "ungated" => self.ungated(value),
            "external" => pair().map(|(package, path)| self.external(package, path))?,
            _ => pair().map(|(feature, pattern)| self.feature(feature, pattern))?,
        })
    }
}

/// Returns a list of the options of [`Config::option`], one per line: `NAME`, `separator`, `VALUE`,
/// and the effect.
#[must_use]
pub fn option_help(prefix: &str, separator: &str) -> String {
    let heads: Vec<_> = OPTIONS.iter().map(|(name, value, _)| format!("{prefix}{name}{separator}{value}")).collect();
    let width = heads.iter().map(String::len).max().unwrap_or_default();
    let mut text = String::new();
    for (head, (.., help)) in heads.iter().zip(OPTIONS) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {head:width$}  {help}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_the_help_works() {
        for (name, value, _) in OPTIONS {
            let value = value.split('|').next().unwrap_or_default();
            Config::new().option(name, value).unwrap();
        }
        assert_eq!(option_help("--", " ").lines().count(), OPTIONS.len());
    }

    #[test]
    fn an_unknown_option_or_value_is_an_error_that_names_the_valid_ones() {
        for (name, value, message) in [
            ("rot", "crate", "unknown option `rot`; known are layout, root,"),
            ("layout", "deep", "option `layout` takes packages|flat, not `deep`"),
            ("imports", "", "option `imports` takes on|off, not ``"),
            ("external", "perfetto", "option `external` takes PACKAGE:PATH, not `perfetto`"),
            ("feature", ":x", "option `feature` takes NAME:PATTERN, not `:x`"),
        ] {
            let error = Config::new().option(name, value).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
