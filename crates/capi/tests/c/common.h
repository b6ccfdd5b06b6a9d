/* What the test programs share. */

#ifndef COMMON_H_
#define COMMON_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfetto_c.h"

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

/* A message under construction, of few bytes. */
struct bytes {
  uint8_t at[512];
  size_t len;
};

static inline void put_varint(struct bytes* to, uint64_t v) {
  while (v >= 0x80) {
    to->at[to->len++] = (uint8_t)(v | 0x80);
    v >>= 7;
  }
  to->at[to->len++] = (uint8_t)v;
}

static inline void put_number(struct bytes* to, uint32_t field, uint64_t v) {
  put_varint(to, field << 3);
  put_varint(to, v);
}

static inline void put_bytes(struct bytes* to, uint32_t field, const void* from, size_t len) {
  put_varint(to, field << 3 | 2);
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

/* A config with one buffer and one data source, whose own config is `more`. */
static inline struct bytes config_for(const char* name, const struct bytes* more) {
  struct bytes buffer = {{0}, 0}, ds_config = {{0}, 0}, ds = {{0}, 0}, config = {{0}, 0};
  put_number(&buffer, 1, 8192);
  put_text(&ds_config, 1, name);
  if (more) {
    memcpy(ds_config.at + ds_config.len, more->at, more->len);
    ds_config.len += more->len;
  }
  put_message(&ds, 1, &ds_config);
  put_message(&config, 1, &buffer);
  put_message(&config, 2, &ds);
  return config;
}

static inline struct PerfettoTracingSessionImpl* start(const struct bytes* config) {
  struct PerfettoTracingSessionImpl* session = PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionSetup(session, (void*)config->at, config->len);
  PerfettoTracingSessionStartBlocking(session);
  return session;
}

static int last_was_read;

static inline void append(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more,
                          void* file) {
  (void)session;
  CHECK(!last_was_read);
  last_was_read = !has_more;
  if (size) CHECK(fwrite(data, size, 1, (FILE*)file) == 1);
}

/* Reads what was recorded into a file, and ends the session. */
static inline void finish(struct PerfettoTracingSessionImpl* session, const char* path) {
  FILE* file = fopen(path, "wb");
  CHECK(file);
  last_was_read = 0;
  PerfettoTracingSessionReadTraceBlocking(session, append, file);
  CHECK(last_was_read);
  CHECK(fclose(file) == 0);
  PerfettoTracingSessionDestroy(session);
}

static inline void init_in_process(void) {
  struct PerfettoProducerBackendInitArgs* args = PerfettoProducerBackendInitArgsCreate();
  PerfettoProducerBackendInitArgsSetShmemSizeHintKb(args, 1024);
  PerfettoProducerInProcessInit(args);
  PerfettoProducerBackendInitArgsDestroy(args);
}

/* Writing with a stream writer, as the inline layer of headers does. */

static inline void sw_bytes(struct PerfettoStreamWriter* w, const void* from, size_t len) {
  if (len > (size_t)(w->end - w->write_ptr)) {
    PerfettoStreamWriterAppendBytesSlowpath(w, (const uint8_t*)from, len);
    return;
  }
  memcpy(w->write_ptr, from, len);
  w->write_ptr += len;
}

static inline void sw_put(struct PerfettoStreamWriter* w, const struct bytes* from) { sw_bytes(w, from->at, from->len); }

#endif
