//! Layouts of the structs that programs were compiled with (`docs/spec/c-abi.md` §§14, 15).

use core::ffi::c_void;
use core::sync::atomic::AtomicBool;

use esatto::raw::Sequence;

use super::callbacks::{DsTracerImpl, StreamWriterImpl};
use crate::ffi::{Array, Ref, Slice, Str};

/// Words of [`StreamWriter::encoding`]: v59 has one, with a word of padding after it.
pub(crate) const ENCODING_WORDS: usize = if cfg!(perfetto_v59) { 1 } else { 0 };

/// Asserts the size of a struct and the offsets of its members.
macro_rules! layout {
    ($($type:ty = $size:tt { $($member:ident @ $offset:literal),* $(,)? })*) => {
        $(
            const _: () = assert!(size_of::<$type>() == $size);
            $(const _: () = assert!(core::mem::offset_of!($type, $member) == $offset);)*
        )*
    };
}

/// `PerfettoDsImplTracerIterator`.
#[repr(C)]
pub(crate) struct TracerIterator {
    pub(crate) inst_id: u32,
    /// Named, so that the compiler does not copy the number together with the padding. A load of 8
    /// bytes would have to wait until the store of 4 bytes has left the processor's store buffer.
    pub(crate) padding: u32,
    pub(crate) tls: *mut c_void,
    pub(crate) tracer: *mut DsTracerImpl,
}

/// `PerfettoDsTimestamp` and `PerfettoTeTimestamp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Timestamp {
    pub(crate) clock_id: u32,
    pub(crate) value: u64,
}

/// `PerfettoStreamWriter`; since v59 `PerfettoPbMsgWriter`.
#[repr(C)]
pub(crate) struct StreamWriter {
    pub(crate) target: *mut StreamWriterImpl,
    pub(crate) begin: *mut u8,
    pub(crate) end: *mut u8,
    pub(crate) write_ptr: *mut u8,
    pub(crate) written_previously: usize,
    /// Encoding of lengths, since v59. 0: each length stands before its message.
    pub(crate) encoding: [u32; ENCODING_WORDS],
}

/// `PerfettoPbDecoder`.
#[repr(C)]
pub(crate) struct PbDecoder {
    pub(crate) read_ptr: *const u8,
    pub(crate) end_ptr: *const u8,
}

/// `PerfettoPbDecoderDelimitedField`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DelimitedField {
    pub(crate) start: *const u8,
    pub(crate) len: usize,
}

/// Value of a [`PbDecoderField`].
#[repr(C)]
pub(crate) union PbValue {
    pub(crate) integer32: u32,
    pub(crate) integer64: u64,
    pub(crate) delimited: DelimitedField,
}

/// `PerfettoPbDecoderField`.
#[repr(C)]
pub(crate) struct PbDecoderField {
    pub(crate) status: u32,
    pub(crate) wire_type: u32,
    pub(crate) id: u32,
    pub(crate) value: PbValue,
}

/// `PerfettoTeCategoryDescriptor`.
#[repr(C)]
pub(crate) struct CategoryDescriptor<'a> {
    pub(crate) name: Str<'a>,
    pub(crate) desc: Str<'a>,
    pub(crate) tags: Slice<'a, Str<'a>>,
}

/// `PerfettoTeRegisteredTrackImpl`.
#[repr(C)]
pub(crate) struct RegisteredTrack<'a> {
    pub(crate) descriptor: Slice<'a, u8>,
    pub(crate) uuid: u64,
}

/// `PerfettoTeLlImplIterator`.
#[repr(C)]
pub(crate) struct LlIterator {
    pub(crate) ds: TracerIterator,
    pub(crate) incr: *mut Sequence,
    pub(crate) tls: *mut c_void,
}

/// `PerfettoTeHlExtra`: the first member of every extra.
#[repr(C)]
pub(crate) struct Extra {
    pub(crate) kind: u32,
}

/// Structs that begin with a header, which holds their type.
macro_rules! with_header {
    ($($name:ident $(<$a:lifetime>)? ($header:ty) { $($member:ident: $type:ty),* $(,)? })*) => {
        $(#[repr(C)]
        pub(crate) struct $name $(<$a>)? {
            pub(crate) header: $header,
            $(pub(crate) $member: $type,)*
        })*
    };
}

with_header! {
    ExtraRegisteredTrack<'a>(Extra) { track: Ref<'a, RegisteredTrack<'a>> }
    ExtraNamedTrack<'a>(Extra) { name: Str<'a>, id: u64, parent_uuid: u64, is_name_static: u8 }
    ExtraTimestamp(Extra) { timestamp: Timestamp }
    ExtraDynamicCategory<'a>(Extra) { desc: Ref<'a, CategoryDescriptor<'a>> }
    ExtraCounterInt64(Extra) { value: i64 }
    ExtraCounterDouble(Extra) { value: f64 }
    ExtraDebugArgBool<'a>(Extra) { name: Str<'a>, value: u8 }
    ExtraDebugArgUint64<'a>(Extra) { name: Str<'a>, value: u64 }
    ExtraDebugArgInt64<'a>(Extra) { name: Str<'a>, value: i64 }
    ExtraDebugArgDouble<'a>(Extra) { name: Str<'a>, value: f64 }
    ExtraDebugArgString<'a>(Extra) { name: Str<'a>, value: Str<'a> }
    ExtraDebugArgPointer<'a>(Extra) { name: Str<'a>, value: usize }
    ExtraFlow(Extra) { id: u64 }
    ExtraCorrelationId(Extra) { id: u64 }
    ExtraCorrelationIdStr<'a>(Extra) { str: Str<'a> }
    ExtraProtoFields<'a>(Extra) { fields: Array<'a, Ref<'a, ProtoField>> }
    ExtraProtoTrack<'a>(Extra) { uuid: u64, fields: Array<'a, Ref<'a, ProtoField>> }
    ExtraNestedTracks<'a>(Extra) { tracks: Array<'a, Ref<'a, NestedTrack>> }
}

/// `PerfettoTeHlNestedTrack`.
#[repr(C)]
pub(crate) struct NestedTrack {
    pub(crate) kind: u32,
}

with_header! {
    NestedTrackNamed<'a>(NestedTrack) {
        name: Str<'a>,
        id: u64,
        is_name_static: u8,
        sibling_order_rank: i32,
        child_ordering: u32,
        sibling_merge_behavior: u32,
        sibling_merge_key_str: Str<'a>,
        sibling_merge_key_int: u64,
    }
    NestedTrackProto<'a>(NestedTrack) { id: u64, fields: Array<'a, Ref<'a, ProtoField>> }
    NestedTrackRegistered<'a>(NestedTrack) { track: Ref<'a, RegisteredTrack<'a>> }
}

/// `PerfettoTeHlProtoField`.
#[repr(C)]
pub(crate) struct ProtoField {
    pub(crate) kind: u32,
    pub(crate) id: u32,
}

with_header! {
    ProtoFieldCstr<'a>(ProtoField) { str: Str<'a> }
    ProtoFieldNested<'a>(ProtoField) { fields: Array<'a, Ref<'a, ProtoField>> }
    ProtoFieldCstrInterned<'a>(ProtoField) { str: Str<'a>, interned_type_id: u32 }
    ProtoFieldBytes<'a>(ProtoField) { bytes: Slice<'a, u8> }
    ProtoFieldVarInt(ProtoField) { value: u64 }
    ProtoFieldFixed64(ProtoField) { value: u64 }
    ProtoFieldDouble(ProtoField) { value: f64 }
    ProtoFieldFixed32(ProtoField) { value: u32 }
    ProtoFieldFloat(ProtoField) { value: f32 }
}

#[cfg(target_pointer_width = "64")]
layout! {
    TracerIterator = 24 { inst_id @ 0, tls @ 8, tracer @ 16 }
    Timestamp = 16 { clock_id @ 0, value @ 8 }
    StreamWriter = (40 + 8 * ENCODING_WORDS) {
        target @ 0, begin @ 8, end @ 16, write_ptr @ 24, written_previously @ 32, encoding @ 40,
    }
    PbDecoder = 16 { read_ptr @ 0, end_ptr @ 8 }
    DelimitedField = 16 { start @ 0, len @ 8 }
    PbDecoderField = 32 { status @ 0, wire_type @ 4, id @ 8, value @ 16 }
    CategoryDescriptor<'_> = 32 { name @ 0, desc @ 8, tags @ 16 }
    RegisteredTrack<'_> = 24 { descriptor @ 0, uuid @ 16 }
    LlIterator = 40 { ds @ 0, incr @ 24, tls @ 32 }
    Extra = 4 { kind @ 0 }
    ExtraRegisteredTrack<'_> = 16 { header @ 0, track @ 8 }
    ExtraNamedTrack<'_> = 40 { header @ 0, name @ 8, id @ 16, parent_uuid @ 24, is_name_static @ 32 }
    ExtraTimestamp = 24 { header @ 0, timestamp @ 8 }
    ExtraDynamicCategory<'_> = 16 { header @ 0, desc @ 8 }
    ExtraCounterInt64 = 16 { header @ 0, value @ 8 }
    ExtraCounterDouble = 16 { header @ 0, value @ 8 }
    ExtraDebugArgBool<'_> = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgUint64<'_> = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgInt64<'_> = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgDouble<'_> = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgString<'_> = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgPointer<'_> = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraFlow = 16 { header @ 0, id @ 8 }
    ExtraCorrelationId = 16 { header @ 0, id @ 8 }
    ExtraCorrelationIdStr<'_> = 16 { header @ 0, str @ 8 }
    ExtraProtoFields<'_> = 16 { header @ 0, fields @ 8 }
    ExtraProtoTrack<'_> = 24 { header @ 0, uuid @ 8, fields @ 16 }
    ExtraNestedTracks<'_> = 16 { header @ 0, tracks @ 8 }
    NestedTrack = 4 { kind @ 0 }
    NestedTrackNamed<'_> = 56 {
        header @ 0, name @ 8, id @ 16, is_name_static @ 24, sibling_order_rank @ 28, child_ordering @ 32,
        sibling_merge_behavior @ 36, sibling_merge_key_str @ 40, sibling_merge_key_int @ 48,
    }
    NestedTrackProto<'_> = 24 { header @ 0, id @ 8, fields @ 16 }
    NestedTrackRegistered<'_> = 16 { header @ 0, track @ 8 }
    ProtoField = 8 { kind @ 0, id @ 4 }
    ProtoFieldCstr<'_> = 16 { header @ 0, str @ 8 }
    ProtoFieldNested<'_> = 16 { header @ 0, fields @ 8 }
    ProtoFieldCstrInterned<'_> = 24 { header @ 0, str @ 8, interned_type_id @ 16 }
    ProtoFieldBytes<'_> = 24 { header @ 0, bytes @ 8 }
    ProtoFieldVarInt = 16 { header @ 0, value @ 8 }
    ProtoFieldFixed64 = 16 { header @ 0, value @ 8 }
    ProtoFieldDouble = 16 { header @ 0, value @ 8 }
    ProtoFieldFixed32 = 12 { header @ 0, value @ 8 }
    ProtoFieldFloat = 12 { header @ 0, value @ 8 }
}

/// `_Atomic(bool)` of C is one byte.
const _: () = assert!(size_of::<AtomicBool>() == 1 && align_of::<AtomicBool>() == 1);
