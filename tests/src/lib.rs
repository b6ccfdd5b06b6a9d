//! Whole-system and interop tests.
