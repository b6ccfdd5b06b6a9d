/* Differences between the libraries of v58 and v59 that a program sees (docs/spec/c-abi.md §18).
 * -DPERFETTO_C_V59 selects v59. */

#ifndef LIBRARY_H_
#define LIBRARY_H_

#include <string.h>

#include <esatto/abi.h>

#ifdef PERFETTO_C_V59
typedef struct PerfettoPbMsgWriter library_writer;
#define library_append PerfettoPbMsgWriterAppendBytesSlowpath
#define library_reserve PerfettoPbMsgWriterReserveBytesSlowpath
#define library_annotate_patch PerfettoPbMsgWriterAnnotatePatch
#else
typedef struct PerfettoStreamWriter library_writer;
#define library_append PerfettoStreamWriterAppendBytesSlowpath
#define library_reserve PerfettoStreamWriterReserveBytesSlowpath
#define library_annotate_patch PerfettoStreamWriterAnnotatePatch
#endif

/* Bytes of a length that is filled in later. */
#define PATCH_SIZE 4
#define MAX_DEPTH 4

/* A packet that is written as the inline functions of headers do: in place while there is space,
 * otherwise through the library. */
struct packet {
  library_writer writer;
  struct PerfettoDsTracerImpl* tracer;
  /* Open nested messages: the place of each length, and the bytes written before each message. */
  int depth;
  uint8_t* size_field[MAX_DEPTH];
  size_t begin[MAX_DEPTH];
};

static inline void packet_begin(struct packet* p, struct PerfettoDsTracerImpl* tracer) {
  p->tracer = tracer;
  p->depth = 0;
#ifdef PERFETTO_C_V59
  PerfettoDsTracerImplPacketBegin(tracer, &p->writer);
#else
  p->writer = PerfettoDsTracerImplPacketBegin(tracer);
#endif
}

static inline void packet_end(struct packet* p) { PerfettoDsTracerImplPacketEnd(p->tracer, &p->writer); }

/* The chunk is about to be left: from here on the library keeps the lengths that are in it. */
static inline void leave_chunk(struct packet* p) {
  for (int i = p->depth - 1; i >= 0; i--) {
    if (p->size_field[i] < p->writer.begin || p->size_field[i] >= p->writer.end) break;
    p->size_field[i] = library_annotate_patch(&p->writer, p->size_field[i]);
  }
}

static inline void put_bytes(struct packet* p, const void* from, size_t len) {
  if ((size_t)(p->writer.end - p->writer.write_ptr) < len) {
    leave_chunk(p);
    library_append(&p->writer, from, len);
    return;
  }
  memcpy(p->writer.write_ptr, from, len);
  p->writer.write_ptr += len;
}

static inline uint8_t* put_varint(uint8_t* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *at++ = (uint8_t)value;
  return at;
}

static inline void put_number(struct packet* p, uint32_t field, uint64_t value) {
  uint8_t bytes[15];
  uint8_t* end = put_varint(put_varint(bytes, field << 3), value);
  put_bytes(p, bytes, (size_t)(end - bytes));
}

static inline void put_text(struct packet* p, uint32_t field, const char* text) {
  uint8_t bytes[15];
  size_t len = strlen(text);
  uint8_t* end = put_varint(put_varint(bytes, field << 3 | 2), len);
  put_bytes(p, bytes, (size_t)(end - bytes));
  put_bytes(p, text, len);
}

static inline size_t packet_written(const struct packet* p) {
  return p->writer.written_previously + (size_t)(p->writer.write_ptr - p->writer.begin);
}

static inline void nested_begin(struct packet* p, uint32_t field) {
  uint8_t bytes[5];
  uint8_t* end = put_varint(bytes, field << 3 | 2);
  put_bytes(p, bytes, (size_t)(end - bytes));
  if (p->writer.end - p->writer.write_ptr < PATCH_SIZE) {
    leave_chunk(p);
    library_reserve(&p->writer, PATCH_SIZE);
  } else {
    p->writer.write_ptr += PATCH_SIZE;
  }
  p->size_field[p->depth] = p->writer.write_ptr - PATCH_SIZE;
  p->begin[p->depth] = packet_written(p);
  p->depth++;
}

static inline void nested_end(struct packet* p) {
  p->depth--;
  uint8_t* at = p->size_field[p->depth];
  size_t size = packet_written(p) - p->begin[p->depth];
  if (at == NULL) return;
  for (int i = 0; i < PATCH_SIZE; i++) {
    at[i] = (uint8_t)((size >> (7 * i) & 0x7f) | (i < PATCH_SIZE - 1 ? 0x80 : 0));
  }
}

#endif
