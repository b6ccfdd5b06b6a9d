/* The C ABI of Perfetto's tracing library, which libperfetto_c exports.
 *
 * It declares v58, or v59 if PERFETTO_C_V59 is defined (c-abi.md §18), for programs that are linked
 * with v59/libperfetto_c. For C11 and later, and C++11 and later. The macros for trace points are
 * in esatto/trace.h (C) and esatto/trace.hpp (C++).
 *
 * Perfetto's own headers, perfetto_c.h and perfetto/public, have the same declarations. A file can
 * include those or this one, not both. A program can have files of both kinds. The contract is
 * docs/spec/c-abi.md. */

#ifndef ESATTO_ABI_H_
#define ESATTO_ABI_H_

#ifdef PERFETTO_ATOMIC
#error "a file can include Perfetto's headers or Esatto's, not both: they declare the same"
#endif

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
#include <atomic>
#define PERFETTO_ATOMIC(T) std::atomic<T>
#define PERFETTO_C_ASSERT(condition) static_assert(condition, #condition)
extern "C" {
#else
#include <stdatomic.h>
#include <stdbool.h>
#define PERFETTO_ATOMIC(T) _Atomic(T)
#define PERFETTO_C_ASSERT(condition) _Static_assert(condition, #condition)
#endif

/* Types whose content only the library knows. */

struct PerfettoDsAsyncFlusher;
struct PerfettoDsAsyncStopper;
struct PerfettoDsImpl;
struct PerfettoDsOnFlushArgs;
struct PerfettoDsOnSetupArgs;
struct PerfettoDsOnStartArgs;
struct PerfettoDsOnStopArgs;
struct PerfettoDsTracerImpl;
struct PerfettoHeapBuffer;
struct PerfettoProducerBackendInitArgs;
struct PerfettoTeCategoryImpl;
struct PerfettoTeLlImplIncr;
struct PerfettoTracingSessionImpl;
#ifdef PERFETTO_C_V59
struct PerfettoPbMsgWriterImpl;
#else
struct PerfettoStreamWriterImpl;
#endif
struct PerfettoTeLlImplTls;

/* Structs, in the order of the library's parts. */

struct PerfettoDsImplTracerIterator {
  uint32_t inst_id;
  void* tls;
  struct PerfettoDsTracerImpl* tracer;
};

struct PerfettoDsTimestamp {
  uint32_t clock_id;
  uint64_t value;
};

#ifdef PERFETTO_C_V59
struct PerfettoPbMsgWriter {
  struct PerfettoPbMsgWriterImpl* impl;
  uint8_t* begin;
  uint8_t* end;
  uint8_t* write_ptr;
  size_t written_previously;
  uint32_t encoding;
};
#else
struct PerfettoStreamWriter {
  struct PerfettoStreamWriterImpl* impl;
  uint8_t* begin;
  uint8_t* end;
  uint8_t* write_ptr;
  size_t written_previously;
};
#endif

struct PerfettoPbDecoder {
  const uint8_t* read_ptr;
  const uint8_t* end_ptr;
};

struct PerfettoPbDecoderDelimitedField {
  const uint8_t* start;
  size_t len;
};

struct PerfettoPbDecoderField {
  uint32_t status;
  uint32_t wire_type;
  uint32_t id;
  union {
    uint32_t integer32;
    uint64_t integer64;
    double double_val;
    float float_val;
    struct PerfettoPbDecoderDelimitedField delimited;
  } value;
};

struct PerfettoTeCategoryDescriptor {
  const char* name;
  const char* desc;
  const char** tags;
  size_t num_tags;
};

struct PerfettoTeTimestamp {
  uint32_t clock_id;
  uint64_t value;
};

struct PerfettoTeRegisteredTrackImpl {
  void* descriptor;
  size_t descriptor_size;
  uint64_t uuid;
};

struct PerfettoTeLlImplIterator {
  struct PerfettoDsImplTracerIterator ds;
  struct PerfettoTeLlImplIncr* incr;
  struct PerfettoTeLlImplTls* tls;
};

/* Extras of an event. Each begins with its type. */

struct PerfettoTeHlExtra {
  uint32_t type;
};

struct PerfettoTeHlExtraRegisteredTrack {
  struct PerfettoTeHlExtra header;
  const struct PerfettoTeRegisteredTrackImpl* track;
};

struct PerfettoTeHlExtraNamedTrack {
  struct PerfettoTeHlExtra header;
  const char* name;
  uint64_t id;
  uint64_t parent_uuid;
  bool is_name_static;
};

struct PerfettoTeHlExtraTimestamp {
  struct PerfettoTeHlExtra header;
  struct PerfettoTeTimestamp timestamp;
};

struct PerfettoTeHlExtraDynamicCategory {
  struct PerfettoTeHlExtra header;
  const struct PerfettoTeCategoryDescriptor* desc;
};

struct PerfettoTeHlExtraCounterInt64 {
  struct PerfettoTeHlExtra header;
  int64_t value;
};

struct PerfettoTeHlExtraCounterDouble {
  struct PerfettoTeHlExtra header;
  double value;
};

struct PerfettoTeHlExtraDebugArgBool {
  struct PerfettoTeHlExtra header;
  const char* name;
  bool value;
};

struct PerfettoTeHlExtraDebugArgUint64 {
  struct PerfettoTeHlExtra header;
  const char* name;
  uint64_t value;
};

struct PerfettoTeHlExtraDebugArgInt64 {
  struct PerfettoTeHlExtra header;
  const char* name;
  int64_t value;
};

struct PerfettoTeHlExtraDebugArgDouble {
  struct PerfettoTeHlExtra header;
  const char* name;
  double value;
};

struct PerfettoTeHlExtraDebugArgString {
  struct PerfettoTeHlExtra header;
  const char* name;
  const char* value;
};

struct PerfettoTeHlExtraDebugArgPointer {
  struct PerfettoTeHlExtra header;
  const char* name;
  uintptr_t value;
};

struct PerfettoTeHlExtraFlow {
  struct PerfettoTeHlExtra header;
  uint64_t id;
};

struct PerfettoTeHlExtraCorrelationId {
  struct PerfettoTeHlExtra header;
  uint64_t id;
};

struct PerfettoTeHlExtraCorrelationIdStr {
  struct PerfettoTeHlExtra header;
  const char* str;
};

/* Fields of any message. */

struct PerfettoTeHlProtoField {
  uint32_t type;
  uint32_t id;
};

struct PerfettoTeHlProtoFieldCstr {
  struct PerfettoTeHlProtoField header;
  const char* str;
};

struct PerfettoTeHlProtoFieldCstrInterned {
  struct PerfettoTeHlProtoField header;
  const char* str;
  uint32_t interned_type_id;
};

struct PerfettoTeHlProtoFieldBytes {
  struct PerfettoTeHlProtoField header;
  const void* buf;
  size_t len;
};

struct PerfettoTeHlProtoFieldNested {
  struct PerfettoTeHlProtoField header;
  struct PerfettoTeHlProtoField* const* fields;
};

struct PerfettoTeHlProtoFieldVarInt {
  struct PerfettoTeHlProtoField header;
  uint64_t value;
};

struct PerfettoTeHlProtoFieldFixed64 {
  struct PerfettoTeHlProtoField header;
  uint64_t value;
};

struct PerfettoTeHlProtoFieldFixed32 {
  struct PerfettoTeHlProtoField header;
  uint32_t value;
};

struct PerfettoTeHlProtoFieldDouble {
  struct PerfettoTeHlProtoField header;
  double value;
};

struct PerfettoTeHlProtoFieldFloat {
  struct PerfettoTeHlProtoField header;
  float value;
};

struct PerfettoTeHlExtraProtoFields {
  struct PerfettoTeHlExtra header;
  struct PerfettoTeHlProtoField* const* fields;
};

struct PerfettoTeHlExtraProtoTrack {
  struct PerfettoTeHlExtra header;
  uint64_t uuid;
  struct PerfettoTeHlProtoField* const* fields;
};

/* Nested tracks. */

struct PerfettoTeHlNestedTrack {
  uint32_t type;
};

struct PerfettoTeHlNestedTrackNamed {
  struct PerfettoTeHlNestedTrack header;
  const char* name;
  uint64_t id;
  bool is_name_static;
  int32_t sibling_order_rank;
  uint32_t child_ordering;
  uint32_t sibling_merge_behavior;
  const char* sibling_merge_key_str;
  uint64_t sibling_merge_key_int;
};

struct PerfettoTeHlNestedTrackProto {
  struct PerfettoTeHlNestedTrack header;
  uint64_t id;
  struct PerfettoTeHlProtoField* const* fields;
};

struct PerfettoTeHlNestedTrackRegistered {
  struct PerfettoTeHlNestedTrack header;
  const struct PerfettoTeRegisteredTrackImpl* track;
};

struct PerfettoTeHlExtraNestedTracks {
  struct PerfettoTeHlExtra header;
  struct PerfettoTeHlNestedTrack* const* tracks;
};

/* Numbers. */

enum {
  PERFETTO_BACKEND_IN_PROCESS = 1,
  PERFETTO_BACKEND_SYSTEM = 2,
};

enum PerfettoDsBufferExhaustedPolicy {
  PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_DROP = 0,
  PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_STALL_AND_ABORT = 1,
  PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_STALL_AND_DROP = 2,
};

enum PerfettoPbDecoderStatus {
  PERFETTO_PB_DECODER_OK = 0,
  PERFETTO_PB_DECODER_DONE = 1,
  PERFETTO_PB_DECODER_ERROR = 2,
};

enum {
  PERFETTO_DS_CLOCK_MONOTONIC = 3,
  PERFETTO_DS_CLOCK_BOOTTIME = 6,
};

enum PerfettoTeTimestampType {
  PERFETTO_TE_TIMESTAMP_TYPE_MONOTONIC = 3,
  PERFETTO_TE_TIMESTAMP_TYPE_BOOT = 6,
  PERFETTO_TE_TIMESTAMP_TYPE_INCREMENTAL = 64,
  PERFETTO_TE_TIMESTAMP_TYPE_ABSOLUTE = 65,
};

enum PerfettoTeType {
  PERFETTO_TE_TYPE_SLICE_BEGIN = 1,
  PERFETTO_TE_TYPE_SLICE_END = 2,
  PERFETTO_TE_TYPE_INSTANT = 3,
  PERFETTO_TE_TYPE_COUNTER = 4,
  PERFETTO_TE_TYPE_STATE = 5,
};

enum PerfettoTeHlExtraType {
  PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK = 1,
  PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK = 2,
  PERFETTO_TE_HL_EXTRA_TYPE_TIMESTAMP = 3,
  PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY = 4,
  PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64 = 5,
  PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_DOUBLE = 6,
  PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_BOOL = 7,
  PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_UINT64 = 8,
  PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64 = 9,
  PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_DOUBLE = 10,
  PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING = 11,
  PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_POINTER = 12,
  PERFETTO_TE_HL_EXTRA_TYPE_FLOW = 13,
  PERFETTO_TE_HL_EXTRA_TYPE_TERMINATING_FLOW = 14,
  PERFETTO_TE_HL_EXTRA_TYPE_FLUSH = 15,
  PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN = 16,
  PERFETTO_TE_HL_EXTRA_TYPE_PROTO_FIELDS = 17,
  PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK = 18,
  PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS = 19,
  PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID = 20,
  PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID_STR = 21,
};

enum PerfettoTeHlNestedTrackType {
  PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED = 1,
  PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROTO = 2,
  PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED = 3,
  PERFETTO_TE_HL_NESTED_TRACK_TYPE_THREAD = 4,
  PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROCESS = 5,
};

enum PerfettoTeHlProtoFieldType {
  PERFETTO_TE_HL_PROTO_TYPE_CSTR = 0,
  PERFETTO_TE_HL_PROTO_TYPE_BYTES = 1,
  PERFETTO_TE_HL_PROTO_TYPE_NESTED = 2,
  PERFETTO_TE_HL_PROTO_TYPE_VARINT = 3,
  PERFETTO_TE_HL_PROTO_TYPE_FIXED64 = 4,
  PERFETTO_TE_HL_PROTO_TYPE_FIXED32 = 5,
  PERFETTO_TE_HL_PROTO_TYPE_DOUBLE = 6,
  PERFETTO_TE_HL_PROTO_TYPE_FLOAT = 7,
  PERFETTO_TE_HL_PROTO_TYPE_CSTR_INTERNED = 8,
};

/* Nested tracks: the order of their children, and which siblings are merged. */

enum PerfettoTeHlChildOrdering {
  PERFETTO_TE_HL_CHILD_ORDERING_UNKNOWN = 0,
  PERFETTO_TE_HL_CHILD_ORDERING_LEXICOGRAPHIC = 1,
  PERFETTO_TE_HL_CHILD_ORDERING_CHRONOLOGICAL = 2,
  PERFETTO_TE_HL_CHILD_ORDERING_EXPLICIT = 3,
};

enum PerfettoTeHlSiblingMergeBehavior {
  PERFETTO_TE_HL_SIBLING_MERGE_BEHAVIOR_UNSPECIFIED = 0,
  PERFETTO_TE_HL_SIBLING_MERGE_BEHAVIOR_BY_TRACK_NAME = 1,
  PERFETTO_TE_HL_SIBLING_MERGE_BEHAVIOR_NONE = 2,
  PERFETTO_TE_HL_SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY = 3,
};

/* Size in bytes of a length that is filled in later. */
#ifdef PERFETTO_C_V59
#define PERFETTO_PB_MSG_WRITER_PATCH_SIZE 4
#else
#define PERFETTO_STREAM_WRITER_PATCH_SIZE 4
#endif

#ifdef PERFETTO_C_V59
/* PerfettoPbMsgWriter.encoding: the encoding of lengths of messages. The library always sets the
 * first. */
enum PerfettoPbMsgWriterEncoding {
  PERFETTO_PB_MSG_WRITER_ENCODING_LENGTH_DELIMITED = 0,
  PERFETTO_PB_MSG_WRITER_ENCODING_PROTO_GROUP = 1,
};

/* Results of PerfettoDsOnFlushArgsGetReason. */
enum PerfettoDsFlushReason {
  PERFETTO_DS_FLUSH_REASON_UNKNOWN = 0,
  PERFETTO_DS_FLUSH_REASON_PERIODIC = 1,
  PERFETTO_DS_FLUSH_REASON_TRACE_STOP = 2,
  PERFETTO_DS_FLUSH_REASON_TRACE_CLONE = 3,
  PERFETTO_DS_FLUSH_REASON_EXPLICIT = 4,
};
#endif

/* Data. */

extern PERFETTO_ATOMIC(bool) perfetto_atomic_false;
extern struct PerfettoTeCategoryImpl* perfetto_te_any_categories;
extern PERFETTO_ATOMIC(bool)* perfetto_te_any_categories_enabled;
extern uint64_t perfetto_te_process_track_uuid;

/* Callbacks. */

typedef uint32_t PerfettoDsInstanceIndex;
typedef void* (*PerfettoDsOnSetupCb)(struct PerfettoDsImpl*, PerfettoDsInstanceIndex inst_id, void* ds_config, size_t ds_config_size, void* user_arg, struct PerfettoDsOnSetupArgs* args);
typedef void (*PerfettoDsOnStartCb)(struct PerfettoDsImpl*, PerfettoDsInstanceIndex, void* user_arg, void* inst_ctx, struct PerfettoDsOnStartArgs*);
typedef void (*PerfettoDsOnStopCb)(struct PerfettoDsImpl*, PerfettoDsInstanceIndex, void* user_arg, void* inst_ctx, struct PerfettoDsOnStopArgs*);
typedef void (*PerfettoDsOnDestroyCb)(struct PerfettoDsImpl*, void* user_arg, void* inst_ctx);
typedef void (*PerfettoDsOnFlushCb)(struct PerfettoDsImpl*, PerfettoDsInstanceIndex, void* user_arg, void* inst_ctx, struct PerfettoDsOnFlushArgs*);
typedef void* (*PerfettoDsOnCreateCustomState)(struct PerfettoDsImpl*, PerfettoDsInstanceIndex, struct PerfettoDsTracerImpl*, void* user_arg);
typedef void (*PerfettoDsOnDeleteCustomState)(void* obj);
typedef bool (*PerfettoDsOnClearCustomState)(void* obj, void* user_arg);
typedef void (*PerfettoDsTracerOnFlushCb)(void* user_arg);
typedef void (*PerfettoTracingSessionStopCb)(struct PerfettoTracingSessionImpl*, void* user_arg);
typedef void (*PerfettoTracingSessionFlushCb)(struct PerfettoTracingSessionImpl*, bool success, void* user_arg);
typedef void (*PerfettoTracingSessionReadCb)(struct PerfettoTracingSessionImpl*, const void* data, size_t size, bool has_more, void* user_arg);
typedef void (*PerfettoTeCategoryImplCallback)(struct PerfettoTeCategoryImpl*, PerfettoDsInstanceIndex inst_id, bool created, bool global_state_changed, void* user_arg);

/* Producer. */

struct PerfettoProducerBackendInitArgs* PerfettoProducerBackendInitArgsCreate(void);
void PerfettoProducerBackendInitArgsSetShmemSizeHintKb(struct PerfettoProducerBackendInitArgs*, uint32_t size);
void PerfettoProducerBackendInitArgsSetMachineId(struct PerfettoProducerBackendInitArgs*, uint32_t machine_id);
void PerfettoProducerBackendInitArgsDestroy(struct PerfettoProducerBackendInitArgs*);
void PerfettoProducerInProcessInit(const struct PerfettoProducerBackendInitArgs* args);
void PerfettoProducerSystemInit(const struct PerfettoProducerBackendInitArgs* args);
void PerfettoProducerActivateTriggers(const char* trigger_names[], uint32_t ttl_ms);

/* Data sources. */

struct PerfettoDsImpl* PerfettoDsImplCreate(void);
void PerfettoDsSetOnSetupCallback(struct PerfettoDsImpl*, PerfettoDsOnSetupCb);
void PerfettoDsSetOnStartCallback(struct PerfettoDsImpl*, PerfettoDsOnStartCb);
void PerfettoDsSetOnStopCallback(struct PerfettoDsImpl*, PerfettoDsOnStopCb);
void PerfettoDsSetOnDestroyCallback(struct PerfettoDsImpl*, PerfettoDsOnDestroyCb);
void PerfettoDsSetOnFlushCallback(struct PerfettoDsImpl*, PerfettoDsOnFlushCb);
void PerfettoDsSetOnCreateTls(struct PerfettoDsImpl*, PerfettoDsOnCreateCustomState);
void PerfettoDsSetOnDeleteTls(struct PerfettoDsImpl*, PerfettoDsOnDeleteCustomState);
void PerfettoDsSetOnCreateIncr(struct PerfettoDsImpl*, PerfettoDsOnCreateCustomState);
void PerfettoDsSetOnDeleteIncr(struct PerfettoDsImpl*, PerfettoDsOnDeleteCustomState);
void PerfettoDsSetOnClearIncr(struct PerfettoDsImpl*, PerfettoDsOnClearCustomState);
void PerfettoDsSetCbUserArg(struct PerfettoDsImpl*, void* user_arg);
bool PerfettoDsSetBufferExhaustedPolicy(struct PerfettoDsImpl*, uint32_t policy);
bool PerfettoDsSetBufferExhaustedPolicyConfigurable(struct PerfettoDsImpl*, bool configurable);
bool PerfettoDsImplRegister(struct PerfettoDsImpl* ds_impl, PERFETTO_ATOMIC(bool)** enabled_ptr, const void* descriptor, size_t descriptor_size);
void PerfettoDsImplUpdateDescriptor(struct PerfettoDsImpl* ds_impl, const void* descriptor, size_t descriptor_size);
struct PerfettoDsAsyncStopper* PerfettoDsOnStopArgsPostpone(struct PerfettoDsOnStopArgs*);
void PerfettoDsStopDone(struct PerfettoDsAsyncStopper*);
struct PerfettoDsAsyncFlusher* PerfettoDsOnFlushArgsPostpone(struct PerfettoDsOnFlushArgs*);
void PerfettoDsFlushDone(struct PerfettoDsAsyncFlusher*);
#ifdef PERFETTO_C_V59
uint64_t PerfettoDsOnFlushArgsGetReason(struct PerfettoDsOnFlushArgs*);
bool PerfettoDsSetSupportsTracingV2(struct PerfettoDsImpl*, bool supports);
#endif
void* PerfettoDsImplGetInstanceLocked(struct PerfettoDsImpl* ds_impl, PerfettoDsInstanceIndex inst_id);
void PerfettoDsImplReleaseInstanceLocked(struct PerfettoDsImpl* ds_impl, PerfettoDsInstanceIndex inst_id);
void* PerfettoDsImplGetCustomTls(struct PerfettoDsImpl*, struct PerfettoDsTracerImpl*, PerfettoDsInstanceIndex);
void* PerfettoDsImplGetIncrementalState(struct PerfettoDsImpl*, struct PerfettoDsTracerImpl*, PerfettoDsInstanceIndex);
struct PerfettoDsImplTracerIterator PerfettoDsImplTraceIterateBegin(struct PerfettoDsImpl* ds_impl);
void PerfettoDsImplTraceIterateNext(struct PerfettoDsImpl*, struct PerfettoDsImplTracerIterator*);
void PerfettoDsImplTraceIterateBreak(struct PerfettoDsImpl*, struct PerfettoDsImplTracerIterator*);
uint32_t PerfettoDsGetDefaultClockId(void);
struct PerfettoDsTimestamp PerfettoDsGetTimestamp(void);

/* Packets and stream writer. */

#ifdef PERFETTO_C_V59
void PerfettoDsTracerImplPacketBegin(struct PerfettoDsTracerImpl* tracer, struct PerfettoPbMsgWriter* writer);
void PerfettoDsTracerImplPacketEnd(struct PerfettoDsTracerImpl* tracer, struct PerfettoPbMsgWriter* writer);
void PerfettoPbMsgWriterUpdateWritePtr(struct PerfettoPbMsgWriter*);
void PerfettoPbMsgWriterNewChunk(struct PerfettoPbMsgWriter*);
void PerfettoPbMsgWriterAppendBytesSlowpath(struct PerfettoPbMsgWriter*, const uint8_t* src, size_t size);
void PerfettoPbMsgWriterReserveBytesSlowpath(struct PerfettoPbMsgWriter*, size_t size);
uint8_t* PerfettoPbMsgWriterAnnotatePatch(struct PerfettoPbMsgWriter*, uint8_t* patch_addr);
#else
struct PerfettoStreamWriter PerfettoDsTracerImplPacketBegin(struct PerfettoDsTracerImpl* tracer);
void PerfettoDsTracerImplPacketEnd(struct PerfettoDsTracerImpl* tracer, struct PerfettoStreamWriter* writer);
void PerfettoStreamWriterUpdateWritePtr(struct PerfettoStreamWriter*);
void PerfettoStreamWriterNewChunk(struct PerfettoStreamWriter*);
void PerfettoStreamWriterAppendBytesSlowpath(struct PerfettoStreamWriter*, const uint8_t* src, size_t size);
void PerfettoStreamWriterReserveBytesSlowpath(struct PerfettoStreamWriter*, size_t size);
uint8_t* PerfettoStreamWriterAnnotatePatch(struct PerfettoStreamWriter*, uint8_t* patch_addr);
#endif
void PerfettoDsTracerImplFlush(struct PerfettoDsTracerImpl* tracer, PerfettoDsTracerOnFlushCb cb, void* user_arg);
uint64_t PerfettoDsTracerImplGetDropCount(struct PerfettoDsTracerImpl* tracer);

/* Heap buffer. */

#ifdef PERFETTO_C_V59
struct PerfettoHeapBuffer* PerfettoHeapBufferCreate(struct PerfettoPbMsgWriter*);
void PerfettoHeapBufferCopyInto(struct PerfettoHeapBuffer*, struct PerfettoPbMsgWriter*, void* dst, size_t size);
void PerfettoHeapBufferDestroy(struct PerfettoHeapBuffer*, struct PerfettoPbMsgWriter*);
#else
struct PerfettoHeapBuffer* PerfettoHeapBufferCreate(struct PerfettoStreamWriter*);
void PerfettoHeapBufferCopyInto(struct PerfettoHeapBuffer*, struct PerfettoStreamWriter*, void* dst, size_t size);
void PerfettoHeapBufferDestroy(struct PerfettoHeapBuffer*, struct PerfettoStreamWriter*);
#endif

/* Decoder. */

struct PerfettoPbDecoderField PerfettoPbDecoderParseField(struct PerfettoPbDecoder* decoder);
uint32_t PerfettoPbDecoderSkipField(struct PerfettoPbDecoder* decoder);

/* Sessions. */

struct PerfettoTracingSessionImpl* PerfettoTracingSessionSystemCreate(void);
struct PerfettoTracingSessionImpl* PerfettoTracingSessionInProcessCreate(void);
void PerfettoTracingSessionSetup(struct PerfettoTracingSessionImpl*, void* cfg_begin, size_t cfg_len);
void PerfettoTracingSessionSetStopCb(struct PerfettoTracingSessionImpl*, PerfettoTracingSessionStopCb cb, void* user_arg);
void PerfettoTracingSessionStartAsync(struct PerfettoTracingSessionImpl*);
void PerfettoTracingSessionStartBlocking(struct PerfettoTracingSessionImpl*);
void PerfettoTracingSessionStopAsync(struct PerfettoTracingSessionImpl*);
void PerfettoTracingSessionStopBlocking(struct PerfettoTracingSessionImpl*);
void PerfettoTracingSessionFlushAsync(struct PerfettoTracingSessionImpl*, uint32_t timeout_ms, PerfettoTracingSessionFlushCb cb, void* user_arg);
bool PerfettoTracingSessionFlushBlocking(struct PerfettoTracingSessionImpl*, uint32_t timeout_ms);
void PerfettoTracingSessionReadTraceBlocking(struct PerfettoTracingSessionImpl*, PerfettoTracingSessionReadCb cb, void* user_arg);
void PerfettoTracingSessionDestroy(struct PerfettoTracingSessionImpl*);

/* Track events: common. */

void PerfettoTeInit(void);
struct PerfettoTeCategoryImpl* PerfettoTeCategoryImplCreate(struct PerfettoTeCategoryDescriptor* desc);
void PerfettoTePublishCategories(void);
PERFETTO_ATOMIC(bool)* PerfettoTeCategoryImplGetEnabled(struct PerfettoTeCategoryImpl*);
void PerfettoTeCategoryImplSetCallback(struct PerfettoTeCategoryImpl* cat, PerfettoTeCategoryImplCallback cb, void* user_arg);
uint64_t PerfettoTeCategoryImplGetIid(struct PerfettoTeCategoryImpl* cat);
void PerfettoTeCategoryImplDestroy(struct PerfettoTeCategoryImpl*);
struct PerfettoTeTimestamp PerfettoTeGetTimestamp(void);

/* Track events: high level. */

void PerfettoTeHlEmitImpl(struct PerfettoTeCategoryImpl* cat, int32_t type, const char* name, struct PerfettoTeHlExtra* const* extra_data);

/* Track events: low level. */

struct PerfettoTeLlImplIterator PerfettoTeLlImplBegin(struct PerfettoTeCategoryImpl* cat, struct PerfettoTeTimestamp ts);
void PerfettoTeLlImplNext(struct PerfettoTeCategoryImpl* cat, struct PerfettoTeTimestamp ts, struct PerfettoTeLlImplIterator*);
void PerfettoTeLlImplBreak(struct PerfettoTeCategoryImpl*, struct PerfettoTeLlImplIterator*);
bool PerfettoTeLlImplDynCatEnabled(struct PerfettoDsTracerImpl*, PerfettoDsInstanceIndex, const struct PerfettoTeCategoryDescriptor*);
bool PerfettoTeLlImplTrackSeen(struct PerfettoTeLlImplIncr*, uint64_t uuid);
uint64_t PerfettoTeLlImplIntern(struct PerfettoTeLlImplIncr*, int32_t type, const void* data, size_t data_size, bool* seen);

/* Threads. */

pid_t PerfettoGetThreadIdImpl(void);

/* The library was compiled with these sizes. Its tests check sizes and offsets of all structs. */
PERFETTO_C_ASSERT(sizeof(PERFETTO_ATOMIC(bool)) == 1);

#ifdef __cplusplus
}
#endif

#endif /* ESATTO_ABI_H_ */
