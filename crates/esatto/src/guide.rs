//! Pages about topics that concern many items.
//!
//! The book in `docs/` of the repository has the same pages, and guides for single tasks.

// `tests/src/pages.rs` tests the code, because some of it needs other crates.

#[cfg_attr(not(doctest), doc = include_str!("../docs/which-way.md"))]
pub mod which_way {}

#[cfg_attr(not(doctest), doc = include_str!("../docs/async.md"))]
pub mod async_programs {}

#[cfg_attr(not(doctest), doc = include_str!("../docs/common-mistakes.md"))]
pub mod common_mistakes {}
