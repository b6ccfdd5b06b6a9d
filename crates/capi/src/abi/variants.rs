//! Structs that begin with a header, told apart by the number in it.

use super::layout::*;
use super::numbers::{extra, nested, proto};
use crate::ffi::Ref;

/// An enumeration of the structs that begin with one header, and the function that finds the
/// variant of a struct.
macro_rules! variants {
    ($(#[$meta:meta])* $name:ident of $header:ident { $($variant:ident = $number:path $(=> $type:ty)?,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub(crate) enum $name<'a> {
            $($variant $((&'a $type))?,)*
            Unknown,
        }

        impl<'a> Ref<'a, $header> {
            #[inline(always)]
            pub(crate) fn variant(self) -> $name<'a> {
                let Some(header) = self.get() else { return $name::Unknown };
                match header.kind {
                    $($number => $name::$variant $((
                        // SAFETY: by the contract the header with this number is the first member
                        // of this struct.
                        unsafe { &*self.as_ptr().cast::<$type>() }
                    ))?,)*
                    _ => $name::Unknown,
                }
            }
        }
    };
}

variants! {
    /// An extra of an event.
    ExtraVariant of Extra {
        RegisteredTrack = extra::REGISTERED_TRACK => ExtraRegisteredTrack<'a>,
        NamedTrack = extra::NAMED_TRACK => ExtraNamedTrack<'a>,
        Timestamp = extra::TIMESTAMP => ExtraTimestamp,
        DynamicCategory = extra::DYNAMIC_CATEGORY => ExtraDynamicCategory<'a>,
        CounterInt64 = extra::COUNTER_INT64 => ExtraCounterInt64,
        CounterDouble = extra::COUNTER_DOUBLE => ExtraCounterDouble,
        DebugArgBool = extra::DEBUG_ARG_BOOL => ExtraDebugArgBool<'a>,
        DebugArgUint64 = extra::DEBUG_ARG_UINT64 => ExtraDebugArgUint64<'a>,
        DebugArgInt64 = extra::DEBUG_ARG_INT64 => ExtraDebugArgInt64<'a>,
        DebugArgDouble = extra::DEBUG_ARG_DOUBLE => ExtraDebugArgDouble<'a>,
        DebugArgString = extra::DEBUG_ARG_STRING => ExtraDebugArgString<'a>,
        DebugArgPointer = extra::DEBUG_ARG_POINTER => ExtraDebugArgPointer<'a>,
        Flow = extra::FLOW => ExtraFlow,
        TerminatingFlow = extra::TERMINATING_FLOW => ExtraFlow,
        Flush = extra::FLUSH,
        NoIntern = extra::NO_INTERN,
        ProtoFields = extra::PROTO_FIELDS => ExtraProtoFields<'a>,
        ProtoTrack = extra::PROTO_TRACK => ExtraProtoTrack<'a>,
        NestedTracks = extra::NESTED_TRACKS => ExtraNestedTracks<'a>,
        CorrelationId = extra::CORRELATION_ID => ExtraCorrelationId,
        CorrelationIdStr = extra::CORRELATION_ID_STR => ExtraCorrelationIdStr<'a>,
        NotOpen = extra::NOT_OPEN,
    }
}

variants! {
    /// One of nested tracks.
    NestedTrackVariant of NestedTrack {
        Named = nested::NAMED => NestedTrackNamed<'a>,
        Proto = nested::PROTO => NestedTrackProto<'a>,
        Registered = nested::REGISTERED => NestedTrackRegistered<'a>,
        Thread = nested::THREAD,
        Process = nested::PROCESS,
    }
}

variants! {
    /// A field that the library encodes for the program.
    ProtoFieldVariant of ProtoField {
        Cstr = proto::CSTR => ProtoFieldCstr<'a>,
        Bytes = proto::BYTES => ProtoFieldBytes<'a>,
        Nested = proto::NESTED => ProtoFieldNested<'a>,
        VarInt = proto::VARINT => ProtoFieldVarInt,
        Fixed64 = proto::FIXED64 => ProtoFieldFixed64,
        Fixed32 = proto::FIXED32 => ProtoFieldFixed32,
        Double = proto::DOUBLE => ProtoFieldDouble,
        Float = proto::FLOAT => ProtoFieldFloat,
        CstrInterned = proto::CSTR_INTERNED => ProtoFieldCstrInterned<'a>,
    }
}
