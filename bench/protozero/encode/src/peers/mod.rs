//! The encoders beside Esatto. All of them put the values into a message and then encode that.

pub(crate) mod buffa;
pub(crate) mod micropb;
pub(crate) mod prost;
pub(crate) mod quick_protobuf;
pub(crate) mod rust_protobuf;

use crate::encode::{Encode, Flat, Nested, Packet, Prebuilt};
use crate::values;

/// An encoder as its crate is best used: messages, and with them their strings and vectors, are
/// kept.
pub(crate) trait Peer: Sized {
    const NAME: &'static str;
    /// `bench.EveryField`
    type EveryField: Default + Wire<Self>;
    /// `bench.Trace`
    type Trace: Default + Wire<Self>;
    /// State that is kept between operations.
    type Keep: Default;

    fn flat(message: &mut Self::EveryField, values: &values::Flat);
    fn nested(message: &mut Self::EveryField, values: &values::Flat);
    fn packet(message: &mut Self::Trace, values: &values::Packet);
}

/// A message of a peer.
pub(crate) trait Wire<P: Peer> {
    /// Encodes into an empty vector.
    fn to_vec(&self, out: &mut Vec<u8>, keep: &mut P::Keep);

    /// Encodes into the begin of `slot`, and returns the length.
    fn to_slot(&self, slot: &mut [u8], keep: &mut P::Keep) -> usize;
}

/// A peer, and the memory that it keeps from message to message.
pub(crate) struct Kept<P: Peer> {
    every: P::EveryField,
    trace: P::Trace,
    out: Vec<u8>,
    keep: P::Keep,
}

impl<P: Peer> Default for Kept<P> {
    fn default() -> Self {
        Self { every: P::EveryField::default(), trace: P::Trace::default(), out: Vec::new(), keep: P::Keep::default() }
    }
}

macro_rules! encode {
    ($kind:ty, $values:ty, $message:ident, $fill:ident) => {
        impl<P: Peer> Encode<$kind> for Kept<P> {
            const NAME: &'static str = P::NAME;

            #[inline(always)]
            fn encode(&mut self, values: &$values) -> &[u8] {
                P::$fill(&mut self.$message, values);
                self.out.clear();
                self.$message.to_vec(&mut self.out, &mut self.keep);
                &self.out
            }

            #[inline(always)]
            fn encode_into(&mut self, values: &$values, slot: &mut [u8]) -> usize {
                P::$fill(&mut self.$message, values);
                self.$message.to_slot(slot, &mut self.keep)
            }
        }

        impl<P: Peer> Prebuilt<$kind> for Kept<P> {
            fn build(&mut self, values: &$values) {
                P::$fill(&mut self.$message, values);
            }

            #[inline(always)]
            fn encode_built(&mut self) -> &[u8] {
                self.out.clear();
                self.$message.to_vec(&mut self.out, &mut self.keep);
                &self.out
            }
        }
    };
}

encode!(Flat, values::Flat, every, flat);
encode!(Nested, values::Flat, every, nested);
encode!(Packet, values::Packet, trace, packet);

/// Into the memory of the string that is there.
#[inline(always)]
fn set(field: &mut Option<String>, value: &str) {
    let string = field.get_or_insert_default();
    string.clear();
    string.push_str(value);
}
