//! The protobuf text format with errors that name line, column and what was expected.
