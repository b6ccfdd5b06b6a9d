//! Ordered maps and sets, and a sort, with little machine code.
//!
//! A map of the standard library takes 3 to 6 KB of machine code for each type of its values. A
//! program that embeds a tracing service would have two dozen of them. [`Map`] is a sorted vector,
//! and takes about 300 bytes. A look-up is a binary search. A key that is larger than all others is
//! appended, which is the usual case for ids. Inserting another key moves the entries after it, so
//! large values are better boxed.
//!
//! [`LargeMap`] is for collections whose size and order a stranger decides. It costs a little more
//! code, and no order of its keys is slow.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::std_instead_of_core,
        clippy::std_instead_of_alloc,
        clippy::alloc_instead_of_core,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

extern crate alloc;

mod large_map;
mod large_set;
mod map;
mod set;
mod sort;

pub use large_map::{LargeIter, LargeMap};
pub use large_set::{LargeSet, LargeSetIter};
pub use map::{Iter, IterMut, Map};
pub use set::Set;
pub use sort::sort;
