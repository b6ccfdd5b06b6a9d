//! Positions of elements in their `.proto` files, for errors.

use prost_reflect::FileDescriptor;

/// Returns `FILE:LINE:COLUMN` of the element at `path`, or only `FILE` if the descriptors do not
/// tell more.
pub(crate) fn of(file: &FileDescriptor, path: &[i32]) -> String {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let location = info.and_then(|info| info.location.iter().find(|location| location.path == path));
    match location.map(|location| location.span.as_slice()) {
        Some([line, column, ..]) => {
            format!("{}:{}:{}", file.name(), line.saturating_add(1), column.saturating_add(1))
        }
        _ => file.name().to_owned(),
    }
}
