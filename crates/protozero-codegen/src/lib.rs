//! Generates protozero writers, readers, owned types and service stubs from .proto files.
