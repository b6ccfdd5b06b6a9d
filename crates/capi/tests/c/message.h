/* Messages whose lengths of four bytes are filled in later, as inline functions of headers encode
 * them (docs/spec/c-abi.md §16). Before the writer continues in another chunk, the lengths in the
 * old one get another place, from the innermost outwards. */

#ifndef MESSAGE_H_
#define MESSAGE_H_

#include "common.h"

struct message {
  uint8_t* size_field; /* null: not needed */
  size_t begin;
  struct PerfettoStreamWriter* to;
  struct message* parent;
};

static inline size_t written(const struct PerfettoStreamWriter* w) {
  return w->written_previously + (size_t)(w->write_ptr - w->begin);
}

static inline struct message root_message(struct PerfettoStreamWriter* to) {
  struct message m = {NULL, written(to), to, NULL};
  return m;
}

static inline void leave_chunk(struct message* m) {
  for (; m; m = m->parent) {
    struct PerfettoStreamWriter* w = m->to;
    if (!m->size_field || m->size_field < w->begin || m->size_field >= w->end) break;
    m->size_field = PerfettoStreamWriterAnnotatePatch(w, m->size_field);
  }
}

static inline void m_raw(struct message* m, const void* from, size_t len) {
  if (len > room(m->to)) leave_chunk(m);
  write_bytes(m->to, from, len);
}

static inline void m_varint(struct message* m, uint64_t v) {
  struct bytes b = {{0}, 0};
  put_varint(&b, v);
  m_raw(m, b.at, b.len);
}

static inline void m_tag(struct message* m, uint32_t field, uint32_t wire_type) {
  m_varint(m, (uint64_t)field << 3 | wire_type);
}

static inline void m_number(struct message* m, uint32_t field, uint64_t v) {
  m_tag(m, field, 0);
  m_varint(m, v);
}

static inline void m_zigzag(struct message* m, uint32_t field, int64_t v) {
  m_number(m, field, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static inline void m_fixed32(struct message* m, uint32_t field, const void* v) {
  m_tag(m, field, 5);
  m_raw(m, v, 4);
}

static inline void m_fixed64(struct message* m, uint32_t field, const void* v) {
  m_tag(m, field, 1);
  m_raw(m, v, 8);
}

static inline void m_bytes(struct message* m, uint32_t field, const void* from, size_t len) {
  m_tag(m, field, 2);
  m_varint(m, len);
  m_raw(m, from, len);
}

static inline void m_text(struct message* m, uint32_t field, const char* text) { m_bytes(m, field, text, strlen(text)); }

static inline struct message m_begin(struct message* parent, uint32_t field) {
  m_tag(parent, field, 2);
  struct PerfettoStreamWriter* w = parent->to;
  if (room(parent->to) < PERFETTO_STREAM_WRITER_PATCH_SIZE) {
    leave_chunk(parent);
    PerfettoStreamWriterReserveBytesSlowpath(w, PERFETTO_STREAM_WRITER_PATCH_SIZE);
  } else {
    w->write_ptr += PERFETTO_STREAM_WRITER_PATCH_SIZE;
  }
  struct message m = {w->write_ptr - PERFETTO_STREAM_WRITER_PATCH_SIZE, written(parent->to), parent->to, parent};
  return m;
}

static inline void m_end(struct message* m) {
  if (!m->size_field) return;
  size_t size = written(m->to) - m->begin;
  for (int i = 0; i < 4; i++) m->size_field[i] = (uint8_t)((size >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
}

#endif
