//! All contenders write the same message, or comparing them says nothing.

use std::fmt::Debug;

use prost::Message;

use crate::encode::{Encode, Flat, Kind, Nested, Packet, Prebuilt};
use crate::floor::Floor;
use crate::floor::unknown::Unknown;
use crate::ours::{self, Chunks, Ours};
use crate::peers::Kept;
use crate::peers::buffa::Buffa;
use crate::peers::micropb::Micropb;
use crate::peers::prost::Prost;
use crate::peers::prost::proto::{EveryField, Trace};
use crate::peers::quick_protobuf::QuickProtobuf;
use crate::peers::rust_protobuf::RustProtobuf;
use crate::ring::SLOT;

/// The type as which prost reads each kind.
trait Decoded: Kind {
    type Message: Message + Default + PartialEq + Debug;
}

impl Decoded for Flat {
    type Message = EveryField;
}

impl Decoded for Nested {
    type Message = EveryField;
}

impl Decoded for Packet {
    type Message = Trace;
}

/// Packets that fit into the memory of [`Chunks`].
const PACKETS: usize = 2000;

/// # Panics
///
/// If a contender writes something else.
pub(crate) fn all() {
    macro_rules! check {
        ($kind:ty: $($contender:ty),*) => {
            $(check::<$kind, $contender>();)*
            built::<$kind, Kept<Prost>>();
            built::<$kind, Kept<QuickProtobuf>>();
            built::<$kind, Kept<Micropb>>();
            built::<$kind, Kept<Buffa>>();
            built::<$kind, Kept<RustProtobuf>>();
        };
    }
    check!(Flat: Ours, Floor, Unknown);
    check!(Nested: Ours, Floor, Unknown);
    check!(Packet: Ours);
    chunks();
}

/// # Panics
///
/// If patches do not complete the messages in the chunks.
fn chunks() {
    let one = decode::<Packet>(Encode::<Packet>::encode(&mut Kept::<Prost>::default(), Packet::VALUES));
    for (size, patches) in [(4096, true), (256 << 10, false)] {
        let mut chunks = Chunks::new(size);
        for _ in 0..PACKETS {
            ours::packet_into(&mut chunks, Packet::VALUES);
        }
        assert_eq!(chunks.patched() > 0, patches, "messages cross the ends of chunks");
        let all = decode::<Packet>(&chunks.read());
        assert_eq!(all.packet.len(), PACKETS, "all packets");
        assert!(all.packet.iter().all(|packet| *packet == one.packet[0]), "all packets are as they were written");
    }
}

fn check<M: Decoded, E: Encode<M>>()
where
    Kept<Prost>: Encode<M>,
{
    let expected = decode::<M>(Kept::<Prost>::default().encode(M::VALUES));
    let mut encoder = E::default();
    // Twice: values kept from the first message must not show in the second.
    for _ in 0..2 {
        let read = decode::<M>(encoder.encode(M::VALUES));
        assert_eq!(read, expected, "{}, {}: the same message", M::NAME, E::NAME);
        let mut slot = [0xff; SLOT];
        let len = encoder.encode_into(M::VALUES, &mut slot);
        assert_eq!(decode::<M>(&slot[..len]), expected, "{}, {}: the same message in a slot", M::NAME, E::NAME);
    }
}

fn built<M: Decoded, E: Prebuilt<M>>()
where
    Kept<Prost>: Encode<M>,
{
    let mut encoder = E::default();
    encoder.build(M::VALUES);
    let expected = decode::<M>(Kept::<Prost>::default().encode(M::VALUES));
    assert_eq!(decode::<M>(encoder.encode_built()), expected, "{}, {}: built before", M::NAME, E::NAME);
    check::<M, E>();
}

fn decode<M: Decoded>(bytes: &[u8]) -> M::Message {
    M::Message::decode(bytes).expect("well formed")
}
