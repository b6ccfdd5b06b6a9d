//! The checks that every message passes.

use esatto_protozero::{HeapBuffer, Lookup, MAX_DECODE_DEPTH, Message, Owned, ScatteredBuffer};

use crate::random::Random;

/// A message as prost's type, and how it goes with ours. Implemented by generated code.
pub trait Pair: prost::Message + Default + Clone + std::fmt::Debug {
    /// Our value.
    type Owned: Owned;
    /// Our writer.
    type Writer<'w>: From<Message<'w>>;
    /// Our reader, by the way it looks for fields.
    type Reader<'a, I>;

    /// A random value.
    fn random(random: &mut Random) -> Self;

    /// Appends all fields with the methods of the writer.
    fn write(&self, w: &mut Self::Writer<'_>);

    /// Compares with what readers find, with an index and without.
    ///
    /// # Panics
    ///
    /// If they differ.
    fn read(&self, bytes: &[u8]);

    /// Compares the value with the result of the reader.
    ///
    /// # Panics
    ///
    /// If they differ.
    fn check<I: Lookup>(&self, r: Self::Reader<'_, I>);

    /// The same as our value, without fields that prost takes for absent.
    fn to_ours(&self) -> Self::Owned;
}

/// A message of the schemas.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its path.
    pub name: &'static str,
    run: fn(u64),
}

impl Case {
    /// Tries the value of `seed` in both directions.
    ///
    /// # Panics
    ///
    /// If the two sides do not agree.
    pub fn run(&self, seed: u64) {
        (self.run)(seed);
    }
}

pub(crate) const fn case<P: Pair>(name: &'static str) -> Case {
    Case { name, run: both_ways::<P> }
}

pub(crate) fn unless_default<T: Default + PartialEq>(value: &T) -> Option<&T> {
    (*value != T::default()).then_some(value)
}

fn both_ways<P: Pair>(seed: u64) {
    let value = P::random(&mut Random::new(seed));
    let theirs = value.encode_to_vec();

    for ours in written(&value) {
        assert_same(&ours, &value, "what our writer writes");
        value.read(&ours);
        let owned = P::Owned::decode(&ours).expect("what our writer writes");
        assert_same(&owned.encode(), &value, "what our writer writes, decoded and encoded");
    }

    value.read(&theirs);
    let owned = P::Owned::decode(&theirs).expect("what prost writes");
    let encoded = owned.encode();
    // Not the values, for a NaN is not equal to itself.
    assert!(encoded == value.to_ours().encode(), "what prost writes is decoded as something else: {owned:?}");
    if seed % 8 == 0 {
        // Also compares messages inside of it, which only its text shows; that takes a while.
        let text = format!("{owned:?}").replace("unknown_fields: []", "");
        assert!(!text.contains("unknown_fields"), "all fields are known: {text}");
    }
    assert_same(&encoded, &value, "what prost writes, decoded and encoded");

    let mut twice = owned.clone();
    twice.merge(&theirs, MAX_DECODE_DEPTH).expect("what prost writes");
    let mut prost_twice = value.clone();
    prost_twice.merge(&theirs[..]).expect("own encoding");
    assert_same(&twice.encode(), &prost_twice, "what prost writes, merged into itself");
}

/// Encodes `value` with our writer: into a buffer that grows, into a used buffer, and into fixed
/// slices of various sizes. The shortest slices hold only a length and a tag.
fn written<P: Pair>(value: &P) -> Vec<Vec<u8>> {
    let mut buffer = HeapBuffer::new();
    value.write(&mut buffer.message().into());
    let grown = buffer.to_vec();
    assert_eq!(buffer.dropped(), 0);
    buffer.clear();
    value.write(&mut buffer.message().into());
    let mut written = vec![grown, buffer.to_vec()];
    for slice in [1, 17, 100] {
        let mut buffer = ScatteredBuffer::with_slices(slice, slice);
        value.write(&mut buffer.message().into());
        written.push(buffer.to_vec());
    }
    written
}

/// Decodes `bytes` with prost and compares.
fn assert_same<P: Pair>(bytes: &[u8], value: &P, what: &str) {
    let decoded = P::decode(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    // Not the values, for a NaN is not equal to itself; maps are sorted.
    assert!(decoded.encode_to_vec() == value.encode_to_vec(), "{what}:\n{decoded:?}\n{value:?}");
}
