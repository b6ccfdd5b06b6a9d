//! Zero-copy protobuf writers over scattered buffers, and a decoder that never allocates.
