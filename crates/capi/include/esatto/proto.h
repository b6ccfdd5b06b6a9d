/* Encoding of messages: packets of data sources, configs, descriptors. For C and C++.
 *
 * A message is encoded at its final place. Its length stands before it and is filled in when it
 * ends. If that place has gone to the service meanwhile, the library patches the length. So only
 * one message is written at a time: while it is open, write nothing to its parent. */

#ifndef ESATTO_PROTO_H_
#define ESATTO_PROTO_H_

#include <stdlib.h>
#include <string.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef PERFETTO_C_V59
typedef struct PerfettoPbMsgWriter esatto_writer;
#define ESATTO_WRITER_(name) PerfettoPbMsgWriter##name
#else
typedef struct PerfettoStreamWriter esatto_writer;
#define ESATTO_WRITER_(name) PerfettoStreamWriter##name
#endif

struct esatto_message {
  esatto_writer* writer;
  struct esatto_message* parent;
  uint8_t* length; /* null: another writer fills it in, or the place has gone to the service */
  size_t begin;    /* start of the content, counted from the first byte of the writer */
};

/* Bytes of a length. */
#define ESATTO_LENGTH_BYTES_ 4

static inline size_t esatto_written_(const esatto_writer* writer) {
  return writer->written_previously + (size_t)(writer->write_ptr - writer->begin);
}

/* The message of a packet or a heap buffer, which has no length before it. */
static inline struct esatto_message esatto_root_message_(esatto_writer* writer) {
  struct esatto_message message = {writer, NULL, NULL, 0};
  message.begin = esatto_written_(writer);
  return message;
}

/* Leaves the current piece of memory. From now on the library fills in the lengths in it. */
static inline void esatto_leave_piece_(struct esatto_message* message) {
  esatto_writer* writer = message->writer;
  for (; message && message->length && message->length >= writer->begin && message->length < writer->end; message = message->parent)
    message->length = ESATTO_WRITER_(AnnotatePatch)(writer, message->length);
}

static inline void esatto_append_(struct esatto_message* message, const void* from, size_t size) {
  esatto_writer* writer = message->writer;
  if (__builtin_expect(size > (size_t)(writer->end - writer->write_ptr), false)) {
    esatto_leave_piece_(message);
    ESATTO_WRITER_(AppendBytesSlowpath)(writer, (const uint8_t*)from, size);
  } else if (size) {
    memcpy(writer->write_ptr, from, size);
    writer->write_ptr += size;
  }
}

/* Returns the address after the last byte. */
static inline uint8_t* esatto_encode_varint_(uint8_t* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = (uint8_t)(value | 0x80);
  *to++ = (uint8_t)value;
  return to;
}

static inline uint8_t* esatto_encode_fixed_(uint8_t* to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) *to++ = (uint8_t)(value >> 8 * i);
  return to;
}

enum { ESATTO_WIRE_VARINT_ = 0, ESATTO_WIRE_FIXED64_ = 1, ESATTO_WIRE_BYTES_ = 2, ESATTO_WIRE_FIXED32_ = 5 };

static inline uint8_t* esatto_encode_tag_(uint8_t* to, uint32_t field, uint32_t wire_type) {
  return esatto_encode_varint_(to, (uint64_t)field << 3 | wire_type);
}

/* Fields of the types uint32, uint64, bool and enumerations. */
static inline void esatto_put_uint(struct esatto_message* message, uint32_t field, uint64_t value) {
  uint8_t bytes[16];
  uint8_t* end = esatto_encode_varint_(esatto_encode_tag_(bytes, field, ESATTO_WIRE_VARINT_), value);
  esatto_append_(message, bytes, (size_t)(end - bytes));
}

/* Fields of the types int32 and int64. */
static inline void esatto_put_int(struct esatto_message* message, uint32_t field, int64_t value) {
  esatto_put_uint(message, field, (uint64_t)value);
}

/* Fields of the types sint32 and sint64. */
static inline void esatto_put_sint(struct esatto_message* message, uint32_t field, int64_t value) {
  esatto_put_uint(message, field, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static inline void esatto_put_bool(struct esatto_message* message, uint32_t field, bool value) {
  esatto_put_uint(message, field, value ? 1 : 0);
}

/* Fields of the types fixed32 and sfixed32. */
static inline void esatto_put_fixed32(struct esatto_message* message, uint32_t field, uint32_t value) {
  uint8_t bytes[16];
  uint8_t* end = esatto_encode_fixed_(esatto_encode_tag_(bytes, field, ESATTO_WIRE_FIXED32_), value, 4);
  esatto_append_(message, bytes, (size_t)(end - bytes));
}

/* Fields of the types fixed64 and sfixed64. */
static inline void esatto_put_fixed64(struct esatto_message* message, uint32_t field, uint64_t value) {
  uint8_t bytes[16];
  uint8_t* end = esatto_encode_fixed_(esatto_encode_tag_(bytes, field, ESATTO_WIRE_FIXED64_), value, 8);
  esatto_append_(message, bytes, (size_t)(end - bytes));
}

static inline void esatto_put_float(struct esatto_message* message, uint32_t field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  esatto_put_fixed32(message, field, bits);
}

static inline void esatto_put_double(struct esatto_message* message, uint32_t field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  esatto_put_fixed64(message, field, bits);
}

static inline void esatto_put_bytes(struct esatto_message* message, uint32_t field, const void* from, size_t size) {
  uint8_t bytes[16];
  uint8_t* end = esatto_encode_varint_(esatto_encode_tag_(bytes, field, ESATTO_WIRE_BYTES_), size);
  esatto_append_(message, bytes, (size_t)(end - bytes));
  esatto_append_(message, from, size);
}

static inline void esatto_put_string(struct esatto_message* message, uint32_t field, const char* text) {
  esatto_put_bytes(message, field, text, strlen(text));
}

/* Opens a message in another one. It may have at most 256 MiB. */
static inline struct esatto_message esatto_message_begin(struct esatto_message* parent, uint32_t field) {
  uint8_t bytes[16];
  esatto_append_(parent, bytes, (size_t)(esatto_encode_tag_(bytes, field, ESATTO_WIRE_BYTES_) - bytes));
  esatto_writer* writer = parent->writer;
  if (writer->end - writer->write_ptr < ESATTO_LENGTH_BYTES_) {
    esatto_leave_piece_(parent);
    ESATTO_WRITER_(ReserveBytesSlowpath)(writer, ESATTO_LENGTH_BYTES_);
  } else {
    writer->write_ptr += ESATTO_LENGTH_BYTES_;
  }
  struct esatto_message message = {writer, parent, writer->write_ptr - ESATTO_LENGTH_BYTES_, esatto_written_(writer)};
  return message;
}

/* Ends a message. A second call does nothing. */
static inline void esatto_message_end(struct esatto_message* message) {
  if (!message->length) return;
  size_t size = esatto_written_(message->writer) - message->begin;
  for (int i = 0; i < ESATTO_LENGTH_BYTES_; i++)
    message->length[i] = (uint8_t)((size >> 7 * i & 0x7f) | (i + 1 < ESATTO_LENGTH_BYTES_ ? 0x80 : 0));
  message->length = NULL;
}

/* Numbers of a packed field: open it with esatto_message_begin, and append them one by one. */

static inline void esatto_put_packed_uint(struct esatto_message* packed, uint64_t value) {
  uint8_t bytes[16];
  esatto_append_(packed, bytes, (size_t)(esatto_encode_varint_(bytes, value) - bytes));
}

static inline void esatto_put_packed_fixed32(struct esatto_message* packed, uint32_t value) {
  uint8_t bytes[4];
  esatto_encode_fixed_(bytes, value, 4);
  esatto_append_(packed, bytes, 4);
}

static inline void esatto_put_packed_fixed64(struct esatto_message* packed, uint64_t value) {
  uint8_t bytes[8];
  esatto_encode_fixed_(bytes, value, 8);
  esatto_append_(packed, bytes, 8);
}

/* A message on the heap. */
struct esatto_buffer {
  struct PerfettoHeapBuffer* heap;
  esatto_writer writer;
  struct esatto_message message; /* write to this */
};

/* Opens the message. Do not move the struct before esatto_buffer_take. */
static inline void esatto_buffer_open(struct esatto_buffer* buffer) {
  buffer->heap = PerfettoHeapBufferCreate(&buffer->writer);
  buffer->message = esatto_root_message_(&buffer->writer);
}

/* Ends the message and returns its bytes, to be freed with free(). Returns null, with size 0, if
 * there is no memory. */
static inline void* esatto_buffer_take(struct esatto_buffer* buffer, size_t* size) {
  *size = esatto_written_(&buffer->writer);
  void* bytes = malloc(*size ? *size : 1);
  if (bytes) {
    PerfettoHeapBufferCopyInto(buffer->heap, &buffer->writer, bytes, *size);
  } else {
    *size = 0;
  }
  PerfettoHeapBufferDestroy(buffer->heap, &buffer->writer);
  return bytes;
}

#ifdef __cplusplus
}
#endif

#endif /* ESATTO_PROTO_H_ */
