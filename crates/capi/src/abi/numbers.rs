//! Numbers of the ABI's enumerations (`docs/spec/c-abi.md` §§14, 15).

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

/// `enum PerfettoTeTimestampType`: the values that are not numbers of clocks.
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
    /// Of Esatto's headers: the slice is not open on this thread. Other libraries ignore it.
    pub(crate) const NOT_OPEN: u32 = 0x4573_0001;
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

/// Largest number of `child_ordering`. Readers of traces crash on larger ones.
pub(crate) const MAX_CHILD_ORDERING: u32 = 3;

/// The number of `sibling_merge_behavior` that takes a key, which is the largest one.
pub(crate) const MERGE_BY_KEY: u32 = 3;
