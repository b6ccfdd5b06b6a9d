/* A session in the process that records the category "bench" and the data source "bench". */

#ifndef SESSION_H_
#define SESSION_H_

#include <stdio.h>

#include "harness.h"
#include "library.h"

/* A message under construction. */
struct config {
  uint8_t at[256];
  size_t len;
};

static inline void config_number(struct config* to, uint32_t field, uint64_t value) {
  to->len = (size_t)(put_varint(put_varint(to->at + to->len, field << 3), value) - to->at);
}

static inline void config_bytes(struct config* to, uint32_t field, const void* from, size_t len) {
  CHECK(to->len + len + 10 < sizeof to->at);
  to->len = (size_t)(put_varint(put_varint(to->at + to->len, field << 3 | 2), len) - to->at);
  memcpy(to->at + to->len, from, len);
  to->len += len;
}

static inline void config_text(struct config* to, uint32_t field, const char* text) {
  config_bytes(to, field, text, strlen(text));
}

static inline void config_message(struct config* to, uint32_t field, const struct config* message) {
  config_bytes(to, field, message->at, message->len);
}

/* A ring buffer of 128 MiB, as in the group sdk; it holds everything. */
static inline struct PerfettoTracingSessionImpl* session_start(void) {
  struct config buffer = {{0}, 0}, categories = {{0}, 0}, all = {{0}, 0};
  struct config events = {{0}, 0}, events_source = {{0}, 0}, own = {{0}, 0}, own_source = {{0}, 0};
  config_number(&buffer, 1 /* size_kb */, 131072);
  config_message(&all, 1 /* buffers */, &buffer);
  config_text(&categories, 1 /* disabled_categories */, "*");
  config_text(&categories, 2 /* enabled_categories */, "bench");
  config_text(&events, 1 /* name */, "track_event");
  config_message(&events, 113 /* track_event_config */, &categories);
  config_message(&events_source, 1 /* config */, &events);
  config_message(&all, 2 /* data_sources */, &events_source);
  config_text(&own, 1 /* name */, "bench");
  config_message(&own_source, 1 /* config */, &own);
  config_message(&all, 2 /* data_sources */, &own_source);
  struct PerfettoTracingSessionImpl* session = PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionSetup(session, all.at, all.len);
  PerfettoTracingSessionStartBlocking(session);
  return session;
}

static void session_piece(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more,
                          void* file) {
  (void)session, (void)has_more;
  if (size > 0) CHECK(fwrite(data, size, 1, file) == 1);
}

/* Ends it, with its trace in a file. */
static inline void session_finish(struct PerfettoTracingSessionImpl* session, const char* path) {
  FILE* file = fopen(path, "wb");
  CHECK(file);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionReadTraceBlocking(session, session_piece, file);
  CHECK(fclose(file) == 0);
  PerfettoTracingSessionDestroy(session);
}

#endif
