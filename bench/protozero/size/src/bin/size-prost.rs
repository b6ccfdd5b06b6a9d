//! Call sites with prost, which only set the fields of a message; it is encoded at the end.

use std::hint::black_box;

use bench_protozero_size::{SITES, Values, all_sites, values};
use prost::Message as _;

#[allow(warnings, clippy::all)]
mod every_field {
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
}

use every_field::EveryField;

#[inline(never)]
fn site_integer<const N: usize>(message: &mut EveryField, values: &[Values; SITES]) {
    message.field_uint32 = Some(values[N].uint32);
}

#[inline(never)]
fn site_string<const N: usize>(message: &mut EveryField, values: &[Values; SITES]) {
    message.field_string = Some(values[N].string.to_owned());
}

#[inline(never)]
fn site_five<const N: usize>(message: &mut EveryField, values: &[Values; SITES]) {
    five(message, &values[N]);
}

#[inline(never)]
fn site_nested<const N: usize>(message: &mut EveryField, values: &[Values; SITES]) {
    let mut nested = EveryField::default();
    five(&mut nested, &values[N]);
    message.field_nested.push(nested);
}

#[inline(always)]
fn five(message: &mut EveryField, values: &Values) {
    message.field_int32 = Some(values.int32);
    message.field_uint32 = Some(values.uint32);
    message.field_int64 = Some(values.int64);
    message.field_uint64 = Some(values.uint64);
    message.field_string = Some(values.string.to_owned());
}

fn main() {
    let mut message = EveryField::default();
    all_sites!(site_integer(&mut message, values()));
    all_sites!(site_string(&mut message, values()));
    all_sites!(site_five(&mut message, values()));
    all_sites!(site_nested(&mut message, values()));
    let mut out = Vec::new();
    message.encode(&mut out).expect("a vector grows");
    black_box(&out);
}
