//! Shared code of the call sites.
//!
//! A call site is a function `site_KIND::<N>` that is not inlined, one for each of the [`SITES`]
//! sets of values. They differ in an address, so that the compiler cannot merge them. The runner
//! looks for their symbols.

use std::hint::black_box;

/// Copies of each kind of call site.
pub const SITES: usize = 16;

/// Field values of a call site.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    /// `field_int32`
    pub int32: i32,
    /// `field_int64`
    pub int64: i64,
    /// `field_uint32`
    pub uint32: u32,
    /// `field_uint64`
    pub uint64: u64,
    /// `field_string`
    pub string: &'static str,
}

/// Values that the compiler does not know.
#[must_use]
pub fn values() -> &'static [Values; SITES] {
    static VALUES: [Values; SITES] = [Values { int32: 1, int64: 2, uint32: 3, uint64: 4, string: "five" }; SITES];
    black_box(&VALUES)
}

/// Calls `$function::<N>($($arg),*)` for all `N`, through pointers, so that the compiler keeps all
/// parameters.
#[macro_export]
macro_rules! all_sites {
    ($function:ident($($arg:expr),*)) => {
        $crate::all_sites!($function($($arg),*) 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($function:ident $args:tt $($n:literal)*) => {
        $(::std::hint::black_box($function::<$n> as fn(&mut _, &_)) $args;)*
    };
}
