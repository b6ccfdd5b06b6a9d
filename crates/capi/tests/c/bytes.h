/* Short messages that a program encodes itself: configs, descriptors. */

#ifndef BYTES_H_
#define BYTES_H_

#include <stdint.h>
#include <string.h>

#include "check.h"

/* A short message under construction. */
struct bytes {
  uint8_t at[1024];
  size_t len;
};

static inline void put_varint(struct bytes* to, uint64_t v) {
  CHECK(to->len + 10 <= sizeof to->at);
  while (v >= 0x80) {
    to->at[to->len++] = (uint8_t)(v | 0x80);
    v >>= 7;
  }
  to->at[to->len++] = (uint8_t)v;
}

static inline void put_number(struct bytes* to, uint32_t field, uint64_t v) {
  put_varint(to, (uint64_t)field << 3);
  put_varint(to, v);
}

static inline void put_bytes(struct bytes* to, uint32_t field, const void* from, size_t len) {
  put_varint(to, (uint64_t)field << 3 | 2);
  put_varint(to, len);
  CHECK(to->len + len <= sizeof to->at);
  memcpy(to->at + to->len, from, len);
  to->len += len;
}

static inline void put_text(struct bytes* to, uint32_t field, const char* text) {
  put_bytes(to, field, text, strlen(text));
}

static inline void put_message(struct bytes* to, uint32_t field, const struct bytes* message) {
  put_bytes(to, field, message->at, message->len);
}

#endif
