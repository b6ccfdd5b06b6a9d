//! One planted bug, as its file describes it.

use std::path::Path;

/// A bug that can be planted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    /// The name of its file, without the extension.
    pub name: String,
    /// How the service, or the RPC library, behaves while the bug is awake.
    pub breaks: String,
    /// Part of the message with which the simulator reports the bug.
    pub finding: String,
    /// The first seed that finds it.
    pub seed: u64,
    /// The source file that it changes, relative to the root of the workspace.
    pub file: String,
    /// The simulated world that finds it; empty for that of the service.
    pub world: String,
    /// The piece of the source file, in order.
    pub(crate) parts: Vec<Part>,
}

/// A part of the piece of source that a bug changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Same(String),
    Change { old: String, new: String },
}

impl Bug {
    /// Reads all bugs of a folder, in the order of their names.
    ///
    /// # Errors
    ///
    /// The folder or one of its files cannot be read, or a file does not have the format.
    pub fn all(folder: &Path) -> Result<Vec<Self>, String> {
        let cannot_read = |error| format!("cannot read {}: {error}", folder.display());
        let mut bugs = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(cannot_read)? {
            let path = entry.map_err(cannot_read)?.path();
            if path.extension().is_none_or(|extension| extension != "bug") {
                continue;
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text =
                std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            bugs.push(Self::parse(&name, &text).map_err(|error| format!("{}: {error}", path.display()))?);
        }
        bugs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(bugs)
    }

    /// Parses the text of a bug's file.
    ///
    /// # Errors
    ///
    /// The line that is missing or wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (head, piece) = text.split_once("\n\n").ok_or("no empty line separates the head from the source")?;
        let mut lines = head.lines();
        let mut value = |key: &str| {
            let line = lines.next().unwrap_or_default();
            let value = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(": "));
            value.map(str::to_owned).ok_or_else(|| format!("'{line}' stands where '{key}: …' is expected"))
        };
        let (breaks, finding) = (value("breaks")?, value("finding")?);
        let seed = value("seed")?;
        let seed = seed.parse().map_err(|_| format!("seed {seed} is not a number"))?;
        let file = value("file")?;
        let line = lines.next();
        let world = line.and_then(|line| line.strip_prefix("world: ")).unwrap_or_default().to_owned();
        match if world.is_empty() { line } else { lines.next() } {
            Some(line) => Err(format!("'{line}' stands where an empty line is expected")),
            None => Ok(Self { name: name.to_owned(), breaks, finding, seed, file, world, parts: parts(piece)? }),
        }
    }
}

fn parts(mut piece: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    while let Some((same, rest)) = piece.split_once("[-") {
        let (old, rest) = rest.split_once("-]").ok_or("'[-' has no '-]'")?;
        let rest = rest.strip_prefix("{+").ok_or("no '{+' follows '-]'")?;
        let (new, rest) = rest.split_once("+}").ok_or("'{+' has no '+}'")?;
        parts.push(Part::Same(same.to_owned()));
        parts.push(Part::Change { old: old.to_owned(), new: new.to_owned() });
        piece = rest;
    }
    if parts.is_empty() {
        return Err("the source contains no '[-old-]{+new+}'".to_owned());
    }
    parts.push(Part::Same(piece.to_owned()));
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "breaks: a\nfinding: b\nseed: 7\nfile: c/d.rs\n\nlet x = [-1-]{+2+};\n";

    #[test]
    fn a_file_says_everything_about_its_bug() {
        let bug = Bug::parse("off-by-one", TEXT).unwrap();
        assert_eq!((bug.name.as_str(), bug.breaks.as_str(), bug.finding.as_str()), ("off-by-one", "a", "b"));
        assert_eq!((bug.seed, bug.file.as_str(), bug.world.as_str()), (7, "c/d.rs", ""));
        let other = Bug::parse("x", &TEXT.replace("d.rs\n", "d.rs\nworld: rpc\n")).unwrap();
        assert_eq!(other, Bug { name: "x".to_owned(), world: "rpc".to_owned(), ..bug.clone() });
        let change = Part::Change { old: "1".to_owned(), new: "2".to_owned() };
        assert_eq!(bug.parts, [Part::Same("let x = ".to_owned()), change, Part::Same(";\n".to_owned())]);
    }

    #[test]
    fn each_mistake_in_a_file_is_named() {
        let error = |from: &str, to: &str| Bug::parse("x", &TEXT.replace(from, to)).unwrap_err();
        assert!(error("breaks: a\n", "").contains("'breaks: …' is expected"));
        assert!(error("7", "seven").contains("seed seven is not a number"));
        assert!(error("c/d.rs\n", "c/d.rs\nmore: x\n").contains("'more: x' stands where an empty line"));
        assert!(error("\n\n", "\n").contains("no empty line"));
        assert!(error("[-1-]{+2+}", "1").contains("contains no '[-old-]{+new+}'"));
        assert!(error("-]{", "-] {").contains("no '{+' follows"));
    }
}
