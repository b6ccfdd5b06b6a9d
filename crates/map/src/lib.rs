//! Ordered maps and sets of little code, for the few things that a control plane keeps.
//!
//! A map of the standard library is 3 to 6 KB of machine code for each type of its values; a program that embeds a tracing service
//! would have two dozen of them. [`Map`] is a sorted vector: some 300 bytes. Looking up is a binary search. Inserting a key
//! that is larger than all others, which ids mostly are, appends; otherwise what lies behind it is moved, so large values are better boxed.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod map;
mod set;

pub use map::{Iter, IterMut, Map};
pub use set::Set;
