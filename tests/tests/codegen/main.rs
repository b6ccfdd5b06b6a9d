//! The generator beside programs that we did not write.

mod protoc_gets_the_same_code_as_the_library;
