//! Comments of `.proto` files as doc comments.
//!
//! The comments before and after an element document it. Comments between blank lines belong to no
//! element (headings, licenses, code that is commented out) and are dropped.

use std::collections::HashMap;

use esatto_rust_text::markdown;
use prost_reflect::FileDescriptor;

/// The comments of a file, by the path of the element.
#[derive(Debug, Default)]
pub(crate) struct Comments(HashMap<Vec<i32>, String>);

impl Comments {
    pub(crate) fn of(file: &FileDescriptor) -> Self {
        let info = file.file_descriptor_proto().source_code_info.as_ref();
        let locations = info.map(|info| info.location.as_slice()).unwrap_or_default();
        let described = locations.iter().filter_map(|location| {
            let both = [&location.leading_comments, &location.trailing_comments];
            let paragraphs: Vec<String> = both.into_iter().flatten().map(|comment| markdown(comment)).collect();
            let text = paragraphs.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
            (!text.is_empty()).then(|| (location.path.clone(), text))
        });
        Self(described.collect())
    }

    /// Returns the comment on the element at `path`; empty if there is none.
    pub(crate) fn at(&self, path: &[i32]) -> &str {
        self.0.get(path).map(String::as_str).unwrap_or_default()
    }
}
