/* Offsets in the structs of the ABI (docs/spec/c-abi.md §14). The library asserts the same in
 * src/abi/layout.rs. */

#include <esatto/abi.h>

#ifdef PERFETTO_C_V59
#define WRITER PerfettoPbMsgWriter
#define WRITER_BYTES 48
#else
#define WRITER PerfettoStreamWriter
#define WRITER_BYTES 40
#endif

#define LAYOUT(name, size) LAYOUT_(name, size)
#define LAYOUT_(name, size) PERFETTO_C_ASSERT(sizeof(struct name) == size)
#define AT(name, member, offset) AT_(name, member, offset)
#define AT_(name, member, offset) PERFETTO_C_ASSERT(offsetof(struct name, member) == offset)

LAYOUT(PerfettoDsImplTracerIterator, 24);
AT(PerfettoDsImplTracerIterator, inst_id, 0);
AT(PerfettoDsImplTracerIterator, tls, 8);
AT(PerfettoDsImplTracerIterator, tracer, 16);

LAYOUT(PerfettoDsTimestamp, 16);
AT(PerfettoDsTimestamp, clock_id, 0);
AT(PerfettoDsTimestamp, value, 8);

LAYOUT(PerfettoTeTimestamp, 16);
AT(PerfettoTeTimestamp, clock_id, 0);
AT(PerfettoTeTimestamp, value, 8);

LAYOUT(WRITER, WRITER_BYTES);
AT(WRITER, impl, 0);
AT(WRITER, begin, 8);
AT(WRITER, end, 16);
AT(WRITER, write_ptr, 24);
AT(WRITER, written_previously, 32);
#ifdef PERFETTO_C_V59
AT(WRITER, encoding, 40);
#endif

LAYOUT(PerfettoPbDecoder, 16);
AT(PerfettoPbDecoder, read_ptr, 0);
AT(PerfettoPbDecoder, end_ptr, 8);

LAYOUT(PerfettoPbDecoderDelimitedField, 16);
AT(PerfettoPbDecoderDelimitedField, start, 0);
AT(PerfettoPbDecoderDelimitedField, len, 8);

LAYOUT(PerfettoPbDecoderField, 32);
AT(PerfettoPbDecoderField, status, 0);
AT(PerfettoPbDecoderField, wire_type, 4);
AT(PerfettoPbDecoderField, id, 8);
AT(PerfettoPbDecoderField, value, 16);

LAYOUT(PerfettoTeCategoryDescriptor, 32);
AT(PerfettoTeCategoryDescriptor, name, 0);
AT(PerfettoTeCategoryDescriptor, desc, 8);
AT(PerfettoTeCategoryDescriptor, tags, 16);
AT(PerfettoTeCategoryDescriptor, num_tags, 24);

LAYOUT(PerfettoTeRegisteredTrackImpl, 24);
AT(PerfettoTeRegisteredTrackImpl, descriptor, 0);
AT(PerfettoTeRegisteredTrackImpl, descriptor_size, 8);
AT(PerfettoTeRegisteredTrackImpl, uuid, 16);

LAYOUT(PerfettoTeLlImplIterator, 40);
AT(PerfettoTeLlImplIterator, ds, 0);
AT(PerfettoTeLlImplIterator, incr, 24);
AT(PerfettoTeLlImplIterator, tls, 32);

LAYOUT(PerfettoTeHlExtra, 4);
AT(PerfettoTeHlExtra, type, 0);

LAYOUT(PerfettoTeHlExtraRegisteredTrack, 16);
AT(PerfettoTeHlExtraRegisteredTrack, header, 0);
AT(PerfettoTeHlExtraRegisteredTrack, track, 8);

LAYOUT(PerfettoTeHlExtraNamedTrack, 40);
AT(PerfettoTeHlExtraNamedTrack, header, 0);
AT(PerfettoTeHlExtraNamedTrack, name, 8);
AT(PerfettoTeHlExtraNamedTrack, id, 16);
AT(PerfettoTeHlExtraNamedTrack, parent_uuid, 24);
AT(PerfettoTeHlExtraNamedTrack, is_name_static, 32);

LAYOUT(PerfettoTeHlExtraTimestamp, 24);
AT(PerfettoTeHlExtraTimestamp, header, 0);
AT(PerfettoTeHlExtraTimestamp, timestamp, 8);

LAYOUT(PerfettoTeHlExtraDynamicCategory, 16);
AT(PerfettoTeHlExtraDynamicCategory, header, 0);
AT(PerfettoTeHlExtraDynamicCategory, desc, 8);

LAYOUT(PerfettoTeHlExtraCounterInt64, 16);
AT(PerfettoTeHlExtraCounterInt64, header, 0);
AT(PerfettoTeHlExtraCounterInt64, value, 8);

LAYOUT(PerfettoTeHlExtraCounterDouble, 16);
AT(PerfettoTeHlExtraCounterDouble, header, 0);
AT(PerfettoTeHlExtraCounterDouble, value, 8);

LAYOUT(PerfettoTeHlExtraDebugArgBool, 24);
AT(PerfettoTeHlExtraDebugArgBool, header, 0);
AT(PerfettoTeHlExtraDebugArgBool, name, 8);
AT(PerfettoTeHlExtraDebugArgBool, value, 16);

LAYOUT(PerfettoTeHlExtraDebugArgUint64, 24);
AT(PerfettoTeHlExtraDebugArgUint64, header, 0);
AT(PerfettoTeHlExtraDebugArgUint64, name, 8);
AT(PerfettoTeHlExtraDebugArgUint64, value, 16);

LAYOUT(PerfettoTeHlExtraDebugArgInt64, 24);
AT(PerfettoTeHlExtraDebugArgInt64, header, 0);
AT(PerfettoTeHlExtraDebugArgInt64, name, 8);
AT(PerfettoTeHlExtraDebugArgInt64, value, 16);

LAYOUT(PerfettoTeHlExtraDebugArgDouble, 24);
AT(PerfettoTeHlExtraDebugArgDouble, header, 0);
AT(PerfettoTeHlExtraDebugArgDouble, name, 8);
AT(PerfettoTeHlExtraDebugArgDouble, value, 16);

LAYOUT(PerfettoTeHlExtraDebugArgString, 24);
AT(PerfettoTeHlExtraDebugArgString, header, 0);
AT(PerfettoTeHlExtraDebugArgString, name, 8);
AT(PerfettoTeHlExtraDebugArgString, value, 16);

LAYOUT(PerfettoTeHlExtraDebugArgPointer, 24);
AT(PerfettoTeHlExtraDebugArgPointer, header, 0);
AT(PerfettoTeHlExtraDebugArgPointer, name, 8);
AT(PerfettoTeHlExtraDebugArgPointer, value, 16);

LAYOUT(PerfettoTeHlExtraFlow, 16);
AT(PerfettoTeHlExtraFlow, header, 0);
AT(PerfettoTeHlExtraFlow, id, 8);

LAYOUT(PerfettoTeHlExtraCorrelationId, 16);
AT(PerfettoTeHlExtraCorrelationId, header, 0);
AT(PerfettoTeHlExtraCorrelationId, id, 8);

LAYOUT(PerfettoTeHlExtraCorrelationIdStr, 16);
AT(PerfettoTeHlExtraCorrelationIdStr, header, 0);
AT(PerfettoTeHlExtraCorrelationIdStr, str, 8);

LAYOUT(PerfettoTeHlExtraProtoFields, 16);
AT(PerfettoTeHlExtraProtoFields, header, 0);
AT(PerfettoTeHlExtraProtoFields, fields, 8);

LAYOUT(PerfettoTeHlExtraProtoTrack, 24);
AT(PerfettoTeHlExtraProtoTrack, header, 0);
AT(PerfettoTeHlExtraProtoTrack, uuid, 8);
AT(PerfettoTeHlExtraProtoTrack, fields, 16);

LAYOUT(PerfettoTeHlExtraNestedTracks, 16);
AT(PerfettoTeHlExtraNestedTracks, header, 0);
AT(PerfettoTeHlExtraNestedTracks, tracks, 8);

LAYOUT(PerfettoTeHlNestedTrack, 4);
AT(PerfettoTeHlNestedTrack, type, 0);

LAYOUT(PerfettoTeHlNestedTrackNamed, 56);
AT(PerfettoTeHlNestedTrackNamed, header, 0);
AT(PerfettoTeHlNestedTrackNamed, name, 8);
AT(PerfettoTeHlNestedTrackNamed, id, 16);
AT(PerfettoTeHlNestedTrackNamed, is_name_static, 24);
AT(PerfettoTeHlNestedTrackNamed, sibling_order_rank, 28);
AT(PerfettoTeHlNestedTrackNamed, child_ordering, 32);
AT(PerfettoTeHlNestedTrackNamed, sibling_merge_behavior, 36);
AT(PerfettoTeHlNestedTrackNamed, sibling_merge_key_str, 40);
AT(PerfettoTeHlNestedTrackNamed, sibling_merge_key_int, 48);

LAYOUT(PerfettoTeHlNestedTrackProto, 24);
AT(PerfettoTeHlNestedTrackProto, header, 0);
AT(PerfettoTeHlNestedTrackProto, id, 8);
AT(PerfettoTeHlNestedTrackProto, fields, 16);

LAYOUT(PerfettoTeHlNestedTrackRegistered, 16);
AT(PerfettoTeHlNestedTrackRegistered, header, 0);
AT(PerfettoTeHlNestedTrackRegistered, track, 8);

LAYOUT(PerfettoTeHlProtoField, 8);
AT(PerfettoTeHlProtoField, type, 0);
AT(PerfettoTeHlProtoField, id, 4);

LAYOUT(PerfettoTeHlProtoFieldCstr, 16);
AT(PerfettoTeHlProtoFieldCstr, header, 0);
AT(PerfettoTeHlProtoFieldCstr, str, 8);

LAYOUT(PerfettoTeHlProtoFieldNested, 16);
AT(PerfettoTeHlProtoFieldNested, header, 0);
AT(PerfettoTeHlProtoFieldNested, fields, 8);

LAYOUT(PerfettoTeHlProtoFieldCstrInterned, 24);
AT(PerfettoTeHlProtoFieldCstrInterned, header, 0);
AT(PerfettoTeHlProtoFieldCstrInterned, str, 8);
AT(PerfettoTeHlProtoFieldCstrInterned, interned_type_id, 16);

LAYOUT(PerfettoTeHlProtoFieldBytes, 24);
AT(PerfettoTeHlProtoFieldBytes, header, 0);
AT(PerfettoTeHlProtoFieldBytes, buf, 8);
AT(PerfettoTeHlProtoFieldBytes, len, 16);

LAYOUT(PerfettoTeHlProtoFieldVarInt, 16);
AT(PerfettoTeHlProtoFieldVarInt, header, 0);
AT(PerfettoTeHlProtoFieldVarInt, value, 8);

LAYOUT(PerfettoTeHlProtoFieldFixed64, 16);
AT(PerfettoTeHlProtoFieldFixed64, header, 0);
AT(PerfettoTeHlProtoFieldFixed64, value, 8);

LAYOUT(PerfettoTeHlProtoFieldDouble, 16);
AT(PerfettoTeHlProtoFieldDouble, header, 0);
AT(PerfettoTeHlProtoFieldDouble, value, 8);

LAYOUT(PerfettoTeHlProtoFieldFixed32, 12);
AT(PerfettoTeHlProtoFieldFixed32, header, 0);
AT(PerfettoTeHlProtoFieldFixed32, value, 8);

LAYOUT(PerfettoTeHlProtoFieldFloat, 12);
AT(PerfettoTeHlProtoFieldFloat, header, 0);
AT(PerfettoTeHlProtoFieldFloat, value, 8);
