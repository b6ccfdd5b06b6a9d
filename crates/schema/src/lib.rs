//! Perfetto's messages as protozero writers, readers and owned types.
