//! [`Control`]: `packaging/debian/control`, and the fields that are made from it.

use crate::shell;
use std::process::Command;

/// Fields of a paragraph, in their order.
pub(super) type Fields = Vec<(String, String)>;

/// A file `control` of Debian's sources.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) source: Fields,
    pub(super) packages: Vec<Fields>,
}

impl Control {
    /// Reads the paragraphs.
    ///
    /// # Errors
    ///
    /// A line is neither a field nor goes on with one, or there is no package.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut paragraphs = Vec::new();
        let mut fields = Fields::new();
        for line in text.lines().filter(|line| !line.starts_with('#')).chain([""]) {
            if line.trim().is_empty() {
                if !fields.is_empty() {
                    paragraphs.push(std::mem::take(&mut fields));
                }
            } else if line.starts_with(' ') {
                let (_, value) = fields.last_mut().ok_or_else(|| format!("control: '{line}' goes on with nothing"))?;
                value.push('\n');
                value.push_str(line);
            } else {
                let (name, value) = line.split_once(':').ok_or_else(|| format!("control: '{line}' is no field"))?;
                fields.push((name.to_owned(), value.trim().to_owned()));
            }
        }
        let mut paragraphs = paragraphs.into_iter();
        let source = paragraphs.next().ok_or("control: it is empty")?;
        let packages: Vec<Fields> = paragraphs.collect();
        if packages.is_empty() || packages.iter().any(|fields| field(fields, "Package").is_none()) {
            return Err("control: a paragraph has no field Package".to_owned());
        }
        Ok(Self { source, packages })
    }

    /// Returns the file `DEBIAN/control` of a package. Its programs need the packages `libraries`.
    pub(super) fn binary(
        &self,
        fields: &Fields,
        version: &str,
        architecture: &str,
        libraries: &str,
        kib: u64,
    ) -> String {
        let mut lines = Vec::new();
        for (name, value) in fields {
            let value = match name.as_str() {
                "Architecture" => architecture.to_owned(),
                "Depends" => without_empty(&value.replace("${shlibs:Depends}", libraries)),
                _ => value.clone(),
            };
            let value = value.replace("${binary:Version}", version);
            if name == "Description" || value.is_empty() {
                continue;
            }
            lines.push(format!("{name}: {value}"));
            if name == "Package" {
                // A source of the same name as the package is not told.
                let source = field(&self.source, "Source").filter(|source| *source != value);
                lines.extend(source.map(|source| format!("Source: {source}")));
                lines.push(format!("Version: {version}"));
            }
        }
        for name in ["Maintainer", "Section", "Priority"] {
            // A package may have another section than its source.
            if let (None, Some(value)) = (field(fields, name), field(&self.source, name)) {
                lines.push(format!("{name}: {value}"));
            }
        }
        lines.push(format!("Installed-Size: {kib}"));
        lines.push(format!("Description: {}", field(fields, "Description").unwrap_or_default()));
        lines.join("\n") + "\n"
    }
}

/// Returns the value of a field.
pub(super) fn field<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Removes relations that have become empty.
fn without_empty(relations: &str) -> String {
    relations.split(',').map(str::trim).filter(|relation| !relation.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Returns the version of a package. A release candidate is older than its release.
///
/// # Errors
///
/// The revision has letters that separate the parts of a version.
pub(super) fn version(upstream: &str, revision: &str) -> Result<String, String> {
    if revision.is_empty() || !revision.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+~".contains(&byte)) {
        return Err(format!("--revision {revision}: digits, letters, '.', '+' and '~' are possible"));
    }
    Ok(format!("{}-{revision}", upstream.replace('-', "~")))
}

/// Returns Debian's changelog, which has one entry: Esatto's own has the changes.
///
/// # Errors
///
/// `date` does not run.
pub(super) fn changelog(control: &Control, version: &str, date: u64) -> Result<String, String> {
    let time = shell::output(Command::new("date").args(["-u", "-R"]).arg(format!("-d@{date}")).env("LC_ALL", "C"))?;
    let name = field(&control.source, "Source").unwrap_or_default();
    let maintainer = field(&control.source, "Maintainer").unwrap_or_default();
    Ok(format!(
        "{name} ({version}) unstable; urgency=medium\n\n  * Package of this version; changelog.gz lists its changes.\n\n \
         -- {maintainer}  {time}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A comment
Source: clocks
Section: utils
Priority: optional
Maintainer: A <a@b.c>

Package: clock
Architecture: any
Depends: ${shlibs:Depends}, zone (= ${binary:Version})
Description: tells the time
 On walls.
 .
 And towers.

Package: clocks
Section: libs
Architecture: any
Depends: ${shlibs:Depends}
Description: clocks
";

    #[test]
    fn a_package_gets_the_fields_of_its_source() {
        let control = Control::parse(TEXT).unwrap();
        let clock = control.binary(&control.packages[0], "1.0-1", "amd64", "libc6 (>= 2.36)", 7);
        assert_eq!(
            clock,
            "Package: clock\nSource: clocks\nVersion: 1.0-1\nArchitecture: amd64\nDepends: libc6 (>= 2.36), zone (= 1.0-1)\n\
             Maintainer: A <a@b.c>\nSection: utils\nPriority: optional\nInstalled-Size: 7\n\
             Description: tells the time\n On walls.\n .\n And towers.\n"
        );
        let clocks = control.binary(&control.packages[1], "1.0-1", "amd64", "", 7);
        assert!(clocks.contains("Section: libs\n") && !clocks.contains("Source:"), "{clocks}");
        assert!(!clocks.contains("Depends"), "{clocks}");
    }

    #[test]
    fn versions_sort_as_releases_do() {
        assert_eq!(version("0.2.0-rc.1", "1").unwrap(), "0.2.0~rc.1-1");
        assert!(version("0.2.0", "1-2").unwrap_err().contains("--revision 1-2"));
        assert!(version("0.2.0", "").is_err());
    }

    #[test]
    fn mistakes_are_named() {
        assert!(Control::parse(" x").unwrap_err().contains("goes on with nothing"));
        assert!(Control::parse("x").unwrap_err().contains("is no field"));
        assert!(Control::parse("Source: x\n").unwrap_err().contains("Package"));
    }
}
