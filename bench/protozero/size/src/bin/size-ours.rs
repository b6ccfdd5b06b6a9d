//! Call sites with Esatto.

use std::hint::black_box;

use bench_protozero_size::{SITES, Values, all_sites, values};
use esatto_protozero::HeapBuffer;

#[allow(warnings, clippy::all)]
mod every_field {
    include!(concat!(env!("OUT_DIR"), "/every_field.rs"));
}

use every_field::EveryFieldWriter;

#[inline(never)]
fn site_integer<const N: usize>(message: &mut EveryFieldWriter<'_>, values: &[Values; SITES]) {
    message.field_uint32(values[N].uint32);
}

#[inline(never)]
fn site_string<const N: usize>(message: &mut EveryFieldWriter<'_>, values: &[Values; SITES]) {
    message.field_string(values[N].string);
}

#[inline(never)]
fn site_five<const N: usize>(message: &mut EveryFieldWriter<'_>, values: &[Values; SITES]) {
    five(message, &values[N]);
}

#[inline(never)]
fn site_nested<const N: usize>(message: &mut EveryFieldWriter<'_>, values: &[Values; SITES]) {
    five(&mut message.field_nested(), &values[N]);
}

#[inline(always)]
fn five(message: &mut EveryFieldWriter<'_>, values: &Values) {
    message
        .field_int32(values.int32)
        .field_uint32(values.uint32)
        .field_int64(values.int64)
        .field_uint64(values.uint64)
        .field_string(values.string);
}

fn main() {
    let mut buffer = HeapBuffer::new();
    let mut message = EveryFieldWriter::from(buffer.message());
    all_sites!(site_integer(&mut message, values()));
    all_sites!(site_string(&mut message, values()));
    all_sites!(site_five(&mut message, values()));
    all_sites!(site_nested(&mut message, values()));
    drop(message);
    black_box(buffer.as_slice());
}
