//! `flatbuffers`, as its generator would use it: a struct with a text is a table, and points are
//! structs in a vector. Reading verifies all and makes the values that the others make.

#![allow(unsafe_code, reason = "the interface for generated code")]

use flatbuffers::{
    FlatBufferBuilder, Follow, ForwardsUOffset, InvalidFlatbuffer, Push, PushAlignment, SimpleToVerifyInSlice, Table,
    Vector, Verifiable, Verifier,
};

use crate::plain;

/// Place of a field in the table of offsets.
const fn slot(index: u16) -> u16 {
    4 + 2 * index
}

struct Item<'b>(Table<'b>);
struct Points<'b>(Table<'b>);

#[repr(transparent)]
struct Point([u8; 24]);

impl<'b> Follow<'b> for Item<'b> {
    type Inner = Self;

    unsafe fn follow(buf: &'b [u8], loc: usize) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Table::new(buf, loc) })
    }
}

impl<'b> Follow<'b> for Points<'b> {
    type Inner = Self;

    unsafe fn follow(buf: &'b [u8], loc: usize) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Table::new(buf, loc) })
    }
}

impl<'b> Follow<'b> for Point {
    type Inner = &'b Self;

    unsafe fn follow(buf: &'b [u8], loc: usize) -> &'b Self {
        // SAFETY: the caller promises that the point is in the buffer. Any bytes are one.
        unsafe { &*buf[loc..loc + 24].as_ptr().cast::<Self>() }
    }
}

impl Push for Point {
    type Output = Self;

    unsafe fn push(&self, dst: &mut [u8], _: usize) {
        dst[..24].copy_from_slice(&self.0);
    }

    fn alignment() -> PushAlignment {
        PushAlignment::new(8)
    }
}

impl SimpleToVerifyInSlice for Point {}

impl Verifiable for Item<'_> {
    fn run_verifier(v: &mut Verifier<'_, '_>, pos: usize) -> Result<(), InvalidFlatbuffer> {
        v.visit_table(pos)?
            .visit_field::<u64>("id", slot(0), false)?
            .visit_field::<f64>("price", slot(1), false)?
            .visit_field::<u32>("count", slot(2), false)?
            .visit_field::<bool>("valid", slot(3), false)?
            .visit_field::<ForwardsUOffset<&str>>("name", slot(4), false)?
            .finish();
        Ok(())
    }
}

impl Verifiable for Points<'_> {
    fn run_verifier(v: &mut Verifier<'_, '_>, pos: usize) -> Result<(), InvalidFlatbuffer> {
        v.visit_table(pos)?.visit_field::<ForwardsUOffset<Vector<'_, Point>>>("points", slot(0), false)?.finish();
        Ok(())
    }
}

pub(crate) fn encode_item(item: &plain::Item, builder: &mut FlatBufferBuilder<'_>) {
    builder.reset();
    let name = builder.create_string(&item.name);
    let table = builder.start_table();
    builder.push_slot::<u64>(slot(0), item.id, 0);
    builder.push_slot::<f64>(slot(1), item.price, 0.0);
    builder.push_slot_always(slot(4), name);
    builder.push_slot::<u32>(slot(2), item.count, 0);
    builder.push_slot::<bool>(slot(3), item.valid, false);
    let table = builder.end_table(table);
    builder.finish_minimal(table);
}

pub(crate) fn decode_item(bytes: &[u8]) -> plain::Item {
    let item = flatbuffers::root::<Item<'_>>(bytes).expect("own bytes").0;
    // SAFETY: the verifier has seen fields of these types.
    unsafe {
        plain::Item {
            id: item.get::<u64>(slot(0), Some(0)).unwrap_or_default(),
            price: item.get::<f64>(slot(1), Some(0.0)).unwrap_or_default(),
            count: item.get::<u32>(slot(2), Some(0)).unwrap_or_default(),
            valid: item.get::<bool>(slot(3), Some(false)).unwrap_or_default(),
            name: item.get::<ForwardsUOffset<&str>>(slot(4), None).unwrap_or_default().to_owned(),
        }
    }
}

pub(crate) fn encode_points(points: &plain::Points, builder: &mut FlatBufferBuilder<'_>) {
    builder.reset();
    let points = builder.create_vector_from_iter(points.points.iter().map(|point| {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&point.x.to_le_bytes());
        bytes[8..16].copy_from_slice(&point.y.to_le_bytes());
        bytes[16..20].copy_from_slice(&point.size.to_le_bytes());
        bytes[20..].copy_from_slice(&point.color.to_le_bytes());
        Point(bytes)
    }));
    let table = builder.start_table();
    builder.push_slot_always(slot(0), points);
    let table = builder.end_table(table);
    builder.finish_minimal(table);
}

pub(crate) fn decode_points(bytes: &[u8]) -> plain::Points {
    let table = flatbuffers::root::<Points<'_>>(bytes).expect("own bytes").0;
    // SAFETY: the verifier has seen a field of this type.
    let points = unsafe { table.get::<ForwardsUOffset<Vector<'_, Point>>>(slot(0), None) };
    let point = |Point(bytes): &Point| {
        let part = |at: usize| bytes[at..].first_chunk::<8>().copied().unwrap_or_default();
        let number = |at: usize| bytes[at..].first_chunk::<4>().copied().unwrap_or_default();
        plain::Point {
            x: i64::from_le_bytes(part(0)),
            y: i64::from_le_bytes(part(8)),
            size: u32::from_le_bytes(number(16)),
            color: u32::from_le_bytes(number(20)),
        }
    };
    plain::Points { points: points.iter().flat_map(|points| points.iter().map(point)).collect() }
}
