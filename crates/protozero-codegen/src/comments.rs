//! Comments of `.proto` files as doc comments.

use std::collections::HashMap;

use prost_reflect::FileDescriptor;

/// The comments of a file by the path of what they describe.
#[derive(Debug, Default)]
pub(crate) struct Comments(HashMap<Vec<i32>, String>);

impl Comments {
    pub(crate) fn of(file: &FileDescriptor) -> Self {
        let info = file.file_descriptor_proto().source_code_info.as_ref();
        let locations = info.map(|info| info.location.as_slice()).unwrap_or_default();
        let described = locations.iter().filter_map(|location| {
            let comment = location.leading_comments.as_ref().or(location.trailing_comments.as_ref())?;
            Some((location.path.clone(), markdown(comment)))
        });
        Self(described.collect())
    }

    /// The comment on the element at `path`, or nothing.
    pub(crate) fn at(&self, path: &[i32]) -> &str {
        self.0.get(path).map(String::as_str).unwrap_or_default()
    }
}

/// A comment as Markdown that rustdoc neither links nor runs.
fn markdown(comment: &str) -> String {
    let line = |line: &str| {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        let line = if line.starts_with("    ") || line.starts_with('\t') { line.trim_start() } else { line };
        line.replace("```", "``").replace('[', "\\[").replace('<', "\\<")
    };
    comment.trim_end().lines().map(line).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn nothing_in_a_comment_becomes_a_doctest_or_a_link() {
        assert_eq!(markdown(" See [x].\n\n     let y = 1;\n"), "See \\[x].\n\nlet y = 1;");
    }
}
