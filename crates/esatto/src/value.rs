//! Values of debug annotations.

use esatto_schema::DebugAnnotationWriter;

use crate::arg::Arg;

/// Something that can be attached to an event.
///
/// Implemented for integers, floats, `bool`, text, pointers, `Option`s (nothing is written for `None`), slices, arrays and
/// vectors (as arrays), and references to them. An implementation for a type of your own writes exactly one value
/// field, or a dictionary:
///
/// ```
/// use esatto::{AnnotationWriter, Value};
///
/// struct Size { width: u32, height: u32 }
///
/// impl Value for Size {
///     fn write(&self, out: &mut AnnotationWriter<'_>) {
///         for (name, value) in [("width", self.width), ("height", self.height)] {
///             let mut entry = out.dict_entries();
///             entry.name(name);
///             value.write(&mut entry);
///         }
///     }
/// }
/// ```
pub trait Value {
    /// Writes the value; the name is written already.
    fn write(&self, out: &mut DebugAnnotationWriter<'_>);

    /// The value as an argument of a trace point. Only values that [`Arg`] has a variant for need one of their own.
    #[inline(always)]
    fn arg(&self) -> Arg<'_>
    where
        Self: Sized,
    {
        Arg::Value(self)
    }
}

macro_rules! scalar {
    ($method:ident, $variant:ident, $wide:ty: $($t:ty),*) => {
        $(impl Value for $t {
            #[inline]
            fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
                out.$method(*self as $wide);
            }

            #[inline(always)]
            fn arg(&self) -> Arg<'_> {
                Arg::$variant(*self as $wide)
            }
        })*
    };
}

scalar!(uint_value, U64, u64: u8, u16, u32, u64, usize);
scalar!(int_value, I64, i64: i8, i16, i32, i64, isize);
scalar!(double_value, F64, f64: f32, f64);
scalar!(bool_value, Bool, bool: bool);

impl Value for str {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        out.string_value(self);
    }
}

impl Value for String {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        self.as_str().write(out);
    }

    #[inline(always)]
    fn arg(&self) -> Arg<'_> {
        Arg::Str(self)
    }
}

impl Value for char {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        self.encode_utf8(&mut [0; 4]).write(out);
    }
}

impl<T> Value for *const T {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        out.pointer_value(self.addr() as u64);
    }

    #[inline(always)]
    fn arg(&self) -> Arg<'_> {
        Arg::Pointer(self.addr() as u64)
    }
}

impl<T> Value for *mut T {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        out.pointer_value(self.addr() as u64);
    }

    #[inline(always)]
    fn arg(&self) -> Arg<'_> {
        Arg::Pointer(self.addr() as u64)
    }
}

impl<T: Value> Value for Option<T> {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        if let Some(value) = self {
            value.write(out);
        }
    }
}

impl<T: Value> Value for [T] {
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        for value in self {
            value.write(&mut out.array_values());
        }
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        self.as_slice().write(out);
    }
}

impl<T: Value> Value for Vec<T> {
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        self.as_slice().write(out);
    }
}

impl<T: Value> Value for &T {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        (**self).write(out);
    }

    #[inline(always)]
    fn arg(&self) -> Arg<'_> {
        (**self).arg()
    }
}

impl Value for &str {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        (**self).write(out);
    }

    #[inline(always)]
    fn arg(&self) -> Arg<'_> {
        Arg::Str(self)
    }
}

impl<T: Value> Value for &[T] {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        (**self).write(out);
    }
}

impl Value for &dyn Value {
    #[inline]
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        (**self).write(out);
    }
}

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
