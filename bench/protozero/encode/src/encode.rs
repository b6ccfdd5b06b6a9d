//! The interface of a measured encoder.

use crate::values;

/// A message of the table.
pub(crate) trait Kind {
    /// Values that it encodes.
    type Values: 'static;
    const NAME: &'static str;
    const VALUES: &'static Self::Values;
}

/// Four integers and a string.
#[derive(Debug)]
pub(crate) struct Flat;

/// The same on each of five levels.
#[derive(Debug)]
pub(crate) struct Nested;

/// A packet with a track event and two annotations.
#[derive(Debug)]
pub(crate) struct Packet;

impl Kind for Flat {
    type Values = values::Flat;
    const NAME: &'static str = "flat";
    const VALUES: &'static values::Flat = &values::FLAT;
}

impl Kind for Nested {
    type Values = values::Flat;
    const NAME: &'static str = "nested";
    const VALUES: &'static values::Flat = &values::FLAT;
}

impl Kind for Packet {
    type Values = values::Packet;
    const NAME: &'static str = "packet";
    const VALUES: &'static values::Packet = &values::PACKET;
}

/// From values to bytes.
///
/// Implementations read the values through `black_box` on each level of nesting, so that none of
/// them is a constant.
pub(crate) trait Encode<M: Kind>: Default {
    const NAME: &'static str;

    /// Encodes into a buffer that is reused, and returns the bytes.
    fn encode(&mut self, values: &M::Values) -> &[u8];

    /// Into memory that is new each time; returns how much was written.
    fn encode_into(&mut self, values: &M::Values, slot: &mut [u8]) -> usize;
}

/// An encoder of values that are put into a message first.
pub(crate) trait Prebuilt<M: Kind>: Encode<M> {
    /// Puts the values into the message that it keeps.
    fn build(&mut self, values: &M::Values);

    /// Encodes that message into a buffer that is reused.
    fn encode_built(&mut self) -> &[u8];
}
