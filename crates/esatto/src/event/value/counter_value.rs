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

counter_value!(Int, i64: i8, i16, i32, i64, isize, u8, u16, u32);
counter_value!(Double, f64: f32, f64);

/// Numbers above `i64::MAX` have no place in the format. They become floating point.
impl From<u64> for CounterValue {
    #[inline]
    fn from(v: u64) -> Self {
        i64::try_from(v).map_or(Self::Double(v as f64), Self::Int)
    }
}

impl From<usize> for CounterValue {
    #[inline]
    fn from(v: usize) -> Self {
        Self::from(v as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_stay_positive() {
        assert!(matches!(CounterValue::from(7_u64), CounterValue::Int(7)));
        assert!(matches!(CounterValue::from(7_usize), CounterValue::Int(7)));
        assert!(matches!(CounterValue::from(u64::MAX), CounterValue::Double(v) if v == 18_446_744_073_709_551_615.0));
    }
}
