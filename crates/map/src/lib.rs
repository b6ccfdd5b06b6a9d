//! Ordered maps and sets with little machine code, for the small collections of a control plane.
//!
//! A map of the standard library takes 3 to 6 KB of machine code for each type of its values. A
//! program that embeds a tracing service would have two dozen of them. [`Map`] is a sorted vector,
//! and takes about 300 bytes. A look-up is a binary search. A key that is larger than all others is
//! appended, which is the usual case for ids. Inserting another key moves the entries after it, so
//! large values are better boxed.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod map;
mod set;

pub use map::{Iter, IterMut, Map};
pub use set::Set;
