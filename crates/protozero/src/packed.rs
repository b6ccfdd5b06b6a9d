//! [`Packed`]: a packed field, written value by value.

use core::marker::PhantomData;

use crate::kind::Scalar;
use crate::{Elements, Message};

/// Open packed field, which appends values in place, and fills in the length when it is dropped.
///
/// It is for values that come one at a time, or from an iterator that cannot be walked twice. No
/// values are collected before. Without values it is an empty field, which is valid
/// (`docs/spec/protozero.md` §7).
///
/// ```
/// use esatto_protozero::{HeapBuffer, kind};
///
/// let mut buffer = HeapBuffer::new();
/// let mut message = buffer.message();
/// let mut primes = message.begin_packed::<kind::Uint32>(1);
/// primes.push(2);
/// primes.extend([3, 5, 257]);
/// drop(primes);
/// drop(message);
/// assert_eq!(buffer.as_slice(), b"\x0a\x05\x02\x03\x05\x81\x02");
/// ```
#[derive(Debug)]
pub struct Packed<'w, K> {
    elements: Elements<'w>,
    kind: PhantomData<K>,
}

impl<K: Scalar> Packed<'_, K> {
    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: K::Native) {
        K::push(&mut self.elements, value);
    }
}

impl<K: Scalar> Extend<K::Native> for Packed<'_, K> {
    #[inline]
    fn extend<I: IntoIterator<Item = K::Native>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl Message<'_> {
    /// Begins a packed repeated field whose values are appended one by one.
    ///
    /// If all values are known, [`packed`](Self::packed) writes their length in the fewest bytes,
    /// even if the field is long.
    #[inline]
    pub fn begin_packed<K: Scalar>(&mut self, field: u32) -> Packed<'_, K> {
        Packed { elements: Elements(self.begin(field)), kind: PhantomData }
    }
}
