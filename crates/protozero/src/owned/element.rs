//! Types for the values of a map or a oneof: conversion from a field and to a field.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::{DecodeFields, EncodeFields, ProtoString, put, take};
use crate::kind::Scalar as ScalarKind;
use crate::{DecodeError, Field, Message};

/// Value of a field.
pub trait Element {
    /// Type of the value in an owned type.
    type Value;

    /// Puts the value of `field` into `slot`, or returns `false` if the wire type does not fit.
    ///
    /// # Errors
    ///
    /// As [`DecodeFields::merge_field`].
    fn take(slot: &mut Option<Self::Value>, field: Field<'_>, depth: u32) -> Result<bool, DecodeError>;

    /// Appends `value` as field `id`.
    fn put(message: &mut Message<'_>, id: u32, value: &Self::Value);
}

/// A number, a bool or an enumeration, of the kind `K`.
#[derive(Clone, Copy, Debug)]
pub struct Scalar<K>(PhantomData<K>);

impl<K: ScalarKind> Element for Scalar<K> {
    type Value = K::Native;

    fn take(slot: &mut Option<K::Native>, field: Field<'_>, _: u32) -> Result<bool, DecodeError> {
        take::scalar::<K>(slot, field)
    }

    fn put(message: &mut Message<'_>, id: u32, value: &K::Native) {
        K::write(message, id, *value);
    }
}

/// A `string`.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Element for Text {
    type Value = ProtoString;

    fn take(slot: &mut Option<ProtoString>, field: Field<'_>, _: u32) -> Result<bool, DecodeError> {
        take::string(slot, field)
    }

    fn put(message: &mut Message<'_>, id: u32, value: &ProtoString) {
        put::bytes(message, id, [value]);
    }
}

/// A `bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes;

impl Element for Bytes {
    type Value = Vec<u8>;

    fn take(slot: &mut Option<Vec<u8>>, field: Field<'_>, _: u32) -> Result<bool, DecodeError> {
        take::bytes(slot, field)
    }

    fn put(message: &mut Message<'_>, id: u32, value: &Vec<u8>) {
        put::bytes(message, id, [value]);
    }
}

/// A message `M`, which may be boxed.
#[derive(Clone, Copy, Debug)]
pub struct Nested<M>(PhantomData<M>);

impl<M: DecodeFields + EncodeFields + Default> Element for Nested<M> {
    type Value = M;

    fn take(slot: &mut Option<M>, field: Field<'_>, depth: u32) -> Result<bool, DecodeError> {
        take::message(slot, field, depth)
    }

    fn put(message: &mut Message<'_>, id: u32, value: &M) {
        put::messages(message, id, [value]);
    }
}
