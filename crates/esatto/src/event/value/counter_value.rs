//! Values of counters.

/// The number of a counter: an integer or a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterValue {
    /// An integer.
    Int(i64),
    /// A float.
    Double(f64),
}

macro_rules! counter_value {
    ($variant:ident, $wide:ty: $($t:ty),*) => {
        $(impl From<$t> for CounterValue {
            #[inline]
            fn from(v: $t) -> Self {
                Self::$variant(v as $wide)
            }
        })*
    };
}

counter_value!(Int, i64: i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
counter_value!(Double, f64: f32, f64);
