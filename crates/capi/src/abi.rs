//! The structs and numbers that programs were compiled with (`docs/spec/c-abi.md` §§14, 15).

use core::ffi::{c_char, c_void};
use core::sync::atomic::AtomicBool;

use crate::flavour::ENCODING_WORDS;
#[cfg(target_pointer_width = "64")]
use crate::flavour::STREAM_WRITER_BYTES;

/// Asserts the size of a struct and where its members are.
macro_rules! layout {
    ($($type:ty = $size:tt { $($member:ident @ $offset:literal),* $(,)? })*) => {
        $(
            const _: () = assert!(size_of::<$type>() == $size);
            $(const _: () = assert!(core::mem::offset_of!($type, $member) == $offset);)*
        )*
    };
}

/// What is opaque to programs; points to something of ours.
macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident)*) => {
        $($(#[$meta])*
        #[repr(C)]
        pub(crate) struct $name {
            _private: [u8; 0],
        })*
    };
}

opaque! {
    /// `PerfettoDsOnSetupArgs`; always null.
    OnSetupArgs
    /// `PerfettoDsOnStartArgs`; always null.
    OnStartArgs
}

/// `PerfettoDsImplTracerIterator`.
#[repr(C)]
pub(crate) struct TracerIterator {
    pub(crate) inst_id: u32,
    /// Named, so that the compiler does not copy the number together with what is behind it: that waits for the number to arrive.
    pub(crate) padding: u32,
    pub(crate) tls: *mut c_void,
    pub(crate) tracer: *mut crate::tracer::Tracer,
}

/// `PerfettoDsTimestamp` and `PerfettoTeTimestamp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Timestamp {
    pub(crate) clock_id: u32,
    pub(crate) value: u64,
}

/// `PerfettoStreamWriter`; `PerfettoPbMsgWriter` from v59 on.
#[repr(C)]
pub(crate) struct StreamWriter {
    pub(crate) target: *mut crate::stream::Target,
    pub(crate) begin: *mut u8,
    pub(crate) end: *mut u8,
    pub(crate) write_ptr: *mut u8,
    pub(crate) written_previously: usize,
    /// How lengths are told; absent before v59. 0: in front.
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

/// The value of a field.
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
pub(crate) struct CategoryDescriptor {
    pub(crate) name: *const c_char,
    pub(crate) desc: *const c_char,
    pub(crate) tags: *const *const c_char,
    pub(crate) num_tags: usize,
}

/// `PerfettoTeRegisteredTrackImpl`.
#[repr(C)]
pub(crate) struct RegisteredTrack {
    pub(crate) descriptor: *const u8,
    pub(crate) descriptor_size: usize,
    pub(crate) uuid: u64,
}

/// `PerfettoTeLlImplIterator`.
#[repr(C)]
pub(crate) struct LlIterator {
    pub(crate) ds: TracerIterator,
    pub(crate) incr: *mut esatto::raw::Sequence,
    pub(crate) tls: *mut c_void,
}

/// `PerfettoTeHlExtra`: what all extras begin with.
#[repr(C)]
pub(crate) struct Extra {
    pub(crate) kind: u32,
}

/// Structs of a header and members.
macro_rules! extras {
    ($($(#[$meta:meta])* $name:ident($header:ty) { $($member:ident: $type:ty),* $(,)? })*) => {
        $($(#[$meta])*
        #[repr(C)]
        pub(crate) struct $name {
            pub(crate) header: $header,
            $(pub(crate) $member: $type,)*
        })*
    };
}

extras! {
    ExtraRegisteredTrack(Extra) { track: *const RegisteredTrack }
    ExtraNamedTrack(Extra) { name: *const c_char, id: u64, parent_uuid: u64, is_name_static: u8 }
    ExtraTimestamp(Extra) { timestamp: Timestamp }
    ExtraDynamicCategory(Extra) { desc: *const CategoryDescriptor }
    ExtraCounterInt64(Extra) { value: i64 }
    ExtraCounterDouble(Extra) { value: f64 }
    ExtraDebugArgBool(Extra) { name: *const c_char, value: u8 }
    ExtraDebugArgUint64(Extra) { name: *const c_char, value: u64 }
    ExtraDebugArgInt64(Extra) { name: *const c_char, value: i64 }
    ExtraDebugArgDouble(Extra) { name: *const c_char, value: f64 }
    ExtraDebugArgString(Extra) { name: *const c_char, value: *const c_char }
    ExtraDebugArgPointer(Extra) { name: *const c_char, value: usize }
    ExtraFlow(Extra) { id: u64 }
    ExtraCorrelationId(Extra) { id: u64 }
    ExtraCorrelationIdStr(Extra) { str: *const c_char }
    ExtraProtoFields(Extra) { fields: *const *const ProtoField }
    ExtraProtoTrack(Extra) { uuid: u64, fields: *const *const ProtoField }
    ExtraNestedTracks(Extra) { tracks: *const *const NestedTrack }
}

/// `PerfettoTeHlNestedTrack`.
#[repr(C)]
pub(crate) struct NestedTrack {
    pub(crate) kind: u32,
}

extras! {
    NestedTrackNamed(NestedTrack) {
        name: *const c_char,
        id: u64,
        is_name_static: u8,
        sibling_order_rank: i32,
        child_ordering: u32,
        sibling_merge_behavior: u32,
        sibling_merge_key_str: *const c_char,
        sibling_merge_key_int: u64,
    }
    NestedTrackProto(NestedTrack) { id: u64, fields: *const *const ProtoField }
    NestedTrackRegistered(NestedTrack) { track: *const RegisteredTrack }
}

/// `PerfettoTeHlProtoField`.
#[repr(C)]
pub(crate) struct ProtoField {
    pub(crate) kind: u32,
    pub(crate) id: u32,
}

extras! {
    ProtoFieldCstr(ProtoField) { str: *const c_char }
    ProtoFieldNested(ProtoField) { fields: *const *const ProtoField }
    ProtoFieldCstrInterned(ProtoField) { str: *const c_char, interned_type_id: u32 }
    ProtoFieldBytes(ProtoField) { buf: *const u8, len: usize }
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
    StreamWriter = STREAM_WRITER_BYTES { target @ 0, begin @ 8, end @ 16, write_ptr @ 24, written_previously @ 32, encoding @ 40 }
    PbDecoder = 16 { read_ptr @ 0, end_ptr @ 8 }
    DelimitedField = 16 { start @ 0, len @ 8 }
    PbDecoderField = 32 { status @ 0, wire_type @ 4, id @ 8, value @ 16 }
    CategoryDescriptor = 32 { name @ 0, desc @ 8, tags @ 16, num_tags @ 24 }
    RegisteredTrack = 24 { descriptor @ 0, descriptor_size @ 8, uuid @ 16 }
    LlIterator = 40 { ds @ 0, incr @ 24, tls @ 32 }
    Extra = 4 { kind @ 0 }
    ExtraRegisteredTrack = 16 { header @ 0, track @ 8 }
    ExtraNamedTrack = 40 { header @ 0, name @ 8, id @ 16, parent_uuid @ 24, is_name_static @ 32 }
    ExtraTimestamp = 24 { header @ 0, timestamp @ 8 }
    ExtraDynamicCategory = 16 { header @ 0, desc @ 8 }
    ExtraCounterInt64 = 16 { header @ 0, value @ 8 }
    ExtraCounterDouble = 16 { header @ 0, value @ 8 }
    ExtraDebugArgBool = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgUint64 = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgInt64 = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgDouble = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgString = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraDebugArgPointer = 24 { header @ 0, name @ 8, value @ 16 }
    ExtraFlow = 16 { header @ 0, id @ 8 }
    ExtraCorrelationId = 16 { header @ 0, id @ 8 }
    ExtraCorrelationIdStr = 16 { header @ 0, str @ 8 }
    ExtraProtoFields = 16 { header @ 0, fields @ 8 }
    ExtraProtoTrack = 24 { header @ 0, uuid @ 8, fields @ 16 }
    ExtraNestedTracks = 16 { header @ 0, tracks @ 8 }
    NestedTrack = 4 { kind @ 0 }
    NestedTrackNamed = 56 {
        header @ 0, name @ 8, id @ 16, is_name_static @ 24, sibling_order_rank @ 28, child_ordering @ 32,
        sibling_merge_behavior @ 36, sibling_merge_key_str @ 40, sibling_merge_key_int @ 48,
    }
    NestedTrackProto = 24 { header @ 0, id @ 8, fields @ 16 }
    NestedTrackRegistered = 16 { header @ 0, track @ 8 }
    ProtoField = 8 { kind @ 0, id @ 4 }
    ProtoFieldCstr = 16 { header @ 0, str @ 8 }
    ProtoFieldNested = 16 { header @ 0, fields @ 8 }
    ProtoFieldCstrInterned = 24 { header @ 0, str @ 8, interned_type_id @ 16 }
    ProtoFieldBytes = 24 { header @ 0, buf @ 8, len @ 16 }
    ProtoFieldVarInt = 16 { header @ 0, value @ 8 }
    ProtoFieldFixed64 = 16 { header @ 0, value @ 8 }
    ProtoFieldDouble = 16 { header @ 0, value @ 8 }
    ProtoFieldFixed32 = 12 { header @ 0, value @ 8 }
    ProtoFieldFloat = 12 { header @ 0, value @ 8 }
}

/// `_Atomic(bool)` of C is one byte.
const _: () = assert!(size_of::<AtomicBool>() == 1 && align_of::<AtomicBool>() == 1);

/// `enum PerfettoDsBufferExhaustedPolicy`.
pub(crate) mod policy {
    pub(crate) const DROP: u32 = 0;
    pub(crate) const STALL_AND_ABORT: u32 = 1;
    pub(crate) const STALL_AND_DROP: u32 = 2;
}

/// `enum PerfettoPbDecoderStatus`.
pub(crate) mod status {
    pub(crate) const OK: u32 = 0;
    pub(crate) const DONE: u32 = 1;
    pub(crate) const ERROR: u32 = 2;
}

/// `enum PerfettoTeTimestampType`, as far as it has a meaning of its own.
pub(crate) mod clock {
    pub(crate) const INCREMENTAL: u32 = 64;
}

/// `enum PerfettoTeType`.
pub(crate) mod te_type {
    pub(crate) const SLICE_BEGIN: i32 = 1;
    pub(crate) const SLICE_END: i32 = 2;
    pub(crate) const INSTANT: i32 = 3;
    pub(crate) const COUNTER: i32 = 4;
    pub(crate) const STATE: i32 = 5;
}

/// `enum PerfettoTeHlExtraType`.
pub(crate) mod extra {
    pub(crate) const REGISTERED_TRACK: u32 = 1;
    pub(crate) const NAMED_TRACK: u32 = 2;
    pub(crate) const TIMESTAMP: u32 = 3;
    pub(crate) const DYNAMIC_CATEGORY: u32 = 4;
    pub(crate) const COUNTER_INT64: u32 = 5;
    pub(crate) const COUNTER_DOUBLE: u32 = 6;
    pub(crate) const DEBUG_ARG_BOOL: u32 = 7;
    pub(crate) const DEBUG_ARG_UINT64: u32 = 8;
    pub(crate) const DEBUG_ARG_INT64: u32 = 9;
    pub(crate) const DEBUG_ARG_DOUBLE: u32 = 10;
    pub(crate) const DEBUG_ARG_STRING: u32 = 11;
    pub(crate) const DEBUG_ARG_POINTER: u32 = 12;
    pub(crate) const FLOW: u32 = 13;
    pub(crate) const TERMINATING_FLOW: u32 = 14;
    pub(crate) const FLUSH: u32 = 15;
    pub(crate) const NO_INTERN: u32 = 16;
    pub(crate) const PROTO_FIELDS: u32 = 17;
    pub(crate) const PROTO_TRACK: u32 = 18;
    pub(crate) const NESTED_TRACKS: u32 = 19;
    pub(crate) const CORRELATION_ID: u32 = 20;
    pub(crate) const CORRELATION_ID_STR: u32 = 21;
}

/// `enum PerfettoTeHlNestedTrackType`.
pub(crate) mod nested {
    pub(crate) const NAMED: u32 = 1;
    pub(crate) const PROTO: u32 = 2;
    pub(crate) const REGISTERED: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PROCESS: u32 = 5;
}

/// `enum PerfettoTeHlProtoFieldType`.
pub(crate) mod proto {
    pub(crate) const CSTR: u32 = 0;
    pub(crate) const BYTES: u32 = 1;
    pub(crate) const NESTED: u32 = 2;
    pub(crate) const VARINT: u32 = 3;
    pub(crate) const FIXED64: u32 = 4;
    pub(crate) const FIXED32: u32 = 5;
    pub(crate) const DOUBLE: u32 = 6;
    pub(crate) const FLOAT: u32 = 7;
    pub(crate) const CSTR_INTERNED: u32 = 8;
}

/// Numbers of `child_ordering` go so far; of others readers die.
pub(crate) const MAX_CHILD_ORDERING: u32 = 3;

/// The number of `sibling_merge_behavior` that wants a key, which is the last of them.
pub(crate) const MERGE_BY_KEY: u32 = 3;
