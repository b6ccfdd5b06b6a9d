//! The measured cases and their encoders.
//!
//! An operation is a function that is not inlined, and whose arguments the compiler does not know,
//! for every library.

use std::hint::black_box;

use crate::encode::{Encode, Flat, Kind, Nested, Packet, Prebuilt};
use crate::floor::Floor;
use crate::floor::unknown::Unknown;
use crate::floor::words::Words;
use crate::measure::{Case, Contender};
use crate::ours::{self, Chunks, Ours};
use crate::peers::Kept;
use crate::peers::buffa::Buffa;
use crate::peers::micropb::Micropb;
use crate::peers::prost::Prost;
use crate::peers::quick_protobuf::QuickProtobuf;
use crate::peers::rust_protobuf::RustProtobuf;
use crate::ring::Ring;
use crate::values;

/// Does so many operations.
pub(crate) type Batch = Box<dyn FnMut(u32, &mut Ring)>;

/// `[Contender::new(…), …]` of encoders, the peers last.
macro_rules! contenders {
    ($kind:ty, $batch:ident: $($contender:ty),*; $of_peers:ident) => {
        vec![
            $(Contender::new(<$contender as Encode<$kind>>::NAME, $batch::<$kind, $contender>),)*
            Contender::new(<Kept<Prost> as Encode<$kind>>::NAME, $of_peers::<$kind, Kept<Prost>>),
            Contender::new(<Kept<QuickProtobuf> as Encode<$kind>>::NAME, $of_peers::<$kind, Kept<QuickProtobuf>>),
            Contender::new(<Kept<Micropb> as Encode<$kind>>::NAME, $of_peers::<$kind, Kept<Micropb>>),
            Contender::new(<Kept<Buffa> as Encode<$kind>>::NAME, $of_peers::<$kind, Kept<Buffa>>),
            Contender::new(<Kept<RustProtobuf> as Encode<$kind>>::NAME, $of_peers::<$kind, Kept<RustProtobuf>>),
        ]
    };
}

pub(crate) fn all() -> Vec<Case> {
    let case = |name, contenders| Case { name, contenders };
    vec![
        case("flat, reused buffer", contenders!(Flat, reused: Ours, Floor, Unknown; reused)),
        case("flat, 64 MiB working set", contenders!(Flat, cyclic: Ours, Floor, Unknown, Words; cyclic)),
        case("flat, encode only, reused buffer", contenders!(Flat, reused: Ours; prebuilt)),
        case("nested, reused buffer", contenders!(Nested, reused: Ours, Floor, Unknown; reused)),
        case("nested, 64 MiB working set", contenders!(Nested, cyclic: Ours, Floor, Unknown, Words; cyclic)),
        case("nested, encode only, reused buffer", contenders!(Nested, reused: Ours; prebuilt)),
        case("packet, reused buffer", contenders!(Packet, reused: Ours; reused)),
        case("packet, encode only, reused buffer", contenders!(Packet, reused: Ours; prebuilt)),
        case(
            "packet, 4 KiB chunks with patches",
            vec![
                Contender::new("esatto", chunked::<{ 4 << 10 }>),
                Contender::new("one range", chunked::<{ 256 << 10 }>),
            ],
        ),
    ]
}

/// Each message where the last one was.
fn reused<M: Kind, E: Encode<M> + 'static>() -> Batch {
    #[inline(never)]
    fn operation<M: Kind, E: Encode<M>>(encoder: &mut E, values: &M::Values) {
        black_box(encoder.encode(values));
    }
    let mut encoder = E::default();
    Box::new(move |n, _| {
        for _ in 0..n {
            operation::<M, E>(black_box(&mut encoder), black_box(M::VALUES));
        }
    })
}

/// Each message into memory that was not touched for long, and then read back.
fn cyclic<M: Kind, E: Encode<M> + 'static>() -> Batch {
    #[inline(never)]
    fn operation<M: Kind, E: Encode<M>>(encoder: &mut E, values: &M::Values, slot: &mut [u8]) -> usize {
        encoder.encode_into(values, slot)
    }
    let mut encoder = E::default();
    Box::new(move |n, ring| {
        for _ in 0..n {
            ring.turn(|slot| operation::<M, E>(black_box(&mut encoder), black_box(M::VALUES), slot));
        }
    })
}

/// A message that was built before, over and over.
fn prebuilt<M: Kind, E: Prebuilt<M> + 'static>() -> Batch {
    #[inline(never)]
    fn operation<M: Kind, E: Prebuilt<M>>(encoder: &mut E) {
        black_box(encoder.encode_built());
    }
    let mut encoder = E::default();
    encoder.build(M::VALUES);
    Box::new(move |n, _| {
        for _ in 0..n {
            operation::<M, E>(black_box(&mut encoder));
        }
    })
}

/// Packets one after the other into chunks.
fn chunked<const SIZE: usize>() -> Batch {
    #[inline(never)]
    fn operation(chunks: &mut Chunks, values: &values::Packet) {
        ours::packet_into(chunks, values);
    }
    let mut chunks = Chunks::new(SIZE);
    Box::new(move |n, _| {
        for _ in 0..n {
            operation(black_box(&mut chunks), black_box(Packet::VALUES));
        }
    })
}
