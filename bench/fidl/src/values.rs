//! Values to bytes in a buffer that is reused, and back to values.

use std::hint::black_box;

use bench_harness::{Batch, Case};
use bincode::config::{Configuration, standard};
use esatto_fidl::Wire;
use esatto_protozero::{HeapBuffer, Owned};
use flatbuffers::FlatBufferBuilder;

use crate::fidl::bench as fidl;
use crate::protos::bench as protos;
use crate::{flat, plain};

pub(crate) const CASES: &[Case] = &[
    Case { name: "encode, struct: fidl", ops: 400, events: 0, run: |b| encode_fidl::<fidl::Item>(b, &item()) },
    Case { name: "encode, struct: protozero", ops: 400, events: 0, run: encode_item_protozero },
    Case { name: "encode, struct: flatbuffers", ops: 400, events: 0, run: encode_item_flat },
    Case { name: "encode, struct: bincode", ops: 400, events: 0, run: |b| encode_bincode(b, &plain_item()) },
    Case { name: "encode, table: fidl", ops: 400, events: 0, run: |b| encode_fidl::<fidl::Options>(b, &options()) },
    Case { name: "encode, vector: fidl", ops: 20, events: 0, run: |b| encode_fidl::<fidl::Points>(b, &points()) },
    Case { name: "encode, vector: protozero", ops: 20, events: 0, run: encode_points_protozero },
    Case { name: "encode, vector: flatbuffers", ops: 20, events: 0, run: encode_points_flat },
    Case { name: "encode, vector: bincode", ops: 20, events: 0, run: |b| encode_bincode(b, &plain_points()) },
    Case { name: "decode, struct: fidl", ops: 400, events: 0, run: |b| decode_fidl::<fidl::Item>(b, &item()) },
    Case { name: "decode, struct: protozero", ops: 400, events: 0, run: decode_item_protozero },
    Case { name: "decode, struct: flatbuffers", ops: 400, events: 0, run: decode_item_flat },
    Case { name: "decode, struct: bincode", ops: 400, events: 0, run: |b| decode_bincode(b, &plain_item()) },
    Case { name: "decode, table: fidl", ops: 400, events: 0, run: |b| decode_fidl::<fidl::Options>(b, &options()) },
    Case { name: "decode, vector: fidl", ops: 20, events: 0, run: |b| decode_fidl::<fidl::Points>(b, &points()) },
    Case { name: "decode, vector: protozero", ops: 20, events: 0, run: decode_points_protozero },
    Case { name: "decode, vector: flatbuffers", ops: 20, events: 0, run: decode_points_flat },
    Case { name: "decode, vector: bincode", ops: 20, events: 0, run: |b| decode_bincode(b, &plain_points()) },
];

const NAME: &str = "a name of 21 letters!";
const LENGTH: i64 = 1000;

fn item() -> fidl::Item {
    fidl::Item { id: 123_456_789, price: 9.5, count: 300, valid: true, name: NAME.to_owned() }
}

fn options() -> fidl::Options {
    let fidl::Item { id, price, count, valid, name } = item();
    fidl::Options { id: Some(id), price: Some(price), count: Some(count), valid: Some(valid), name: Some(name) }
}

fn points() -> fidl::Points {
    let point = |i: i64| fidl::Point { x: i * 1000, y: i << 33, size: 10, color: 0xff_8000 };
    fidl::Points { points: (0..LENGTH).map(point).collect() }
}

fn plain_item() -> plain::Item {
    let fidl::Item { id, price, count, valid, name } = item();
    plain::Item { id, price, count, valid, name }
}

fn plain_points() -> plain::Points {
    let point = |point: fidl::Point| plain::Point { x: point.x, y: point.y, size: point.size, color: point.color };
    plain::Points { points: points().points.into_iter().map(point).collect() }
}

fn encode_fidl<T: Wire<Value = T>>(batch: &mut Batch, value: &T) {
    let mut bytes = Vec::new();
    batch.time(|_| {
        bytes.clear();
        esatto_fidl::encode::<T>(black_box(value), &mut bytes).expect("it has an encoding");
        black_box(&bytes);
    });
}

fn decode_fidl<T: Wire<Value = T>>(batch: &mut Batch, value: &T) {
    let mut bytes = Vec::new();
    esatto_fidl::encode::<T>(value, &mut bytes).expect("it has an encoding");
    batch.time(|_| {
        black_box(esatto_fidl::decode::<T>(black_box(&bytes), Vec::new()).expect("own bytes"));
    });
}

fn write_item(item: &fidl::Item, buffer: &mut HeapBuffer) {
    buffer.clear();
    let mut message = buffer.message();
    message.varint(1, item.id);
    message.double(2, item.price);
    message.varint(3, item.count.into());
    message.varint(4, item.valid.into());
    message.string(5, &item.name);
}

fn write_points(points: &fidl::Points, buffer: &mut HeapBuffer) {
    buffer.clear();
    let mut message = buffer.message();
    for point in &points.points {
        let mut nested = message.begin(1);
        nested.varint(1, point.x as u64);
        nested.varint(2, point.y as u64);
        nested.varint(3, point.size.into());
        nested.varint(4, point.color.into());
    }
}

fn encode_item_protozero(batch: &mut Batch) {
    let (item, mut buffer) = (item(), HeapBuffer::new());
    batch.time(|_| {
        write_item(black_box(&item), &mut buffer);
        black_box(buffer.as_slice());
    });
}

fn encode_points_protozero(batch: &mut Batch) {
    let (points, mut buffer) = (points(), HeapBuffer::new());
    batch.time(|_| {
        write_points(black_box(&points), &mut buffer);
        black_box(buffer.as_slice());
    });
}

fn decode_item_protozero(batch: &mut Batch) {
    let mut buffer = HeapBuffer::new();
    write_item(&item(), &mut buffer);
    batch.time(|_| {
        black_box(protos::Item::decode(black_box(buffer.as_slice())).expect("own bytes"));
    });
}

fn decode_points_protozero(batch: &mut Batch) {
    let mut buffer = HeapBuffer::new();
    write_points(&points(), &mut buffer);
    batch.time(|_| {
        black_box(protos::Points::decode(black_box(buffer.as_slice())).expect("own bytes"));
    });
}

fn encode_item_flat(batch: &mut Batch) {
    let (item, mut builder) = (plain_item(), FlatBufferBuilder::new());
    batch.time(|_| {
        flat::encode_item(black_box(&item), &mut builder);
        black_box(builder.finished_data());
    });
}

fn encode_points_flat(batch: &mut Batch) {
    let (points, mut builder) = (plain_points(), FlatBufferBuilder::new());
    batch.time(|_| {
        flat::encode_points(black_box(&points), &mut builder);
        black_box(builder.finished_data());
    });
}

fn decode_item_flat(batch: &mut Batch) {
    let mut builder = FlatBufferBuilder::new();
    flat::encode_item(&plain_item(), &mut builder);
    batch.time(|_| {
        black_box(flat::decode_item(black_box(builder.finished_data())));
    });
}

fn decode_points_flat(batch: &mut Batch) {
    let mut builder = FlatBufferBuilder::new();
    flat::encode_points(&plain_points(), &mut builder);
    batch.time(|_| {
        black_box(flat::decode_points(black_box(builder.finished_data())));
    });
}

fn encode_bincode<T: bincode::Encode>(batch: &mut Batch, value: &T) {
    let mut bytes = vec![0; 1 << 16];
    batch.time(|_| {
        bincode::encode_into_slice(black_box(value), &mut bytes, standard()).expect("it fits");
        black_box(&bytes);
    });
}

fn decode_bincode<T: bincode::Encode + bincode::Decode<()>>(batch: &mut Batch, value: &T) {
    let bytes = bincode::encode_to_vec(value, standard()).expect("it has an encoding");
    batch.time(|_| {
        let decoded = bincode::decode_from_slice::<T, Configuration>(black_box(&bytes), standard());
        black_box(decoded.expect("own bytes"));
    });
}
