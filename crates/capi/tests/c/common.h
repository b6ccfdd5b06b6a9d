/* Functions that the test programs share. Each program gets a folder for its files, and changes to
 * it. */

#ifndef COMMON_H_
#define COMMON_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "check.h"
#include "version.h"

/* Waits for a condition. The time limit of the whole program ends a wait that is too long. */
#define WAIT_FOR(condition)           \
  do {                                \
    while (!(condition)) usleep(1000); \
  } while (0)

static inline void begin_test(int argc, char** argv) {
  CHECK(argc == 2 && chdir(argv[1]) == 0);
  alarm(120);
}

/* Returns true if the service is another process (BACKEND=system). */
static inline bool is_system_wide(void) {
  const char* backend = getenv("BACKEND");
  return backend && strcmp(backend, "system") == 0;
}

/* Initialises the producer, which asks for so much shared memory. */
static inline void init_producer_with(uint32_t shmem_kb) {
  struct PerfettoProducerBackendInitArgs* args = PerfettoProducerBackendInitArgsCreate();
  PerfettoProducerBackendInitArgsSetShmemSizeHintKb(args, shmem_kb);
  if (is_system_wide())
    PerfettoProducerSystemInit(args);
  else
    PerfettoProducerInProcessInit(args);
  PerfettoProducerBackendInitArgsDestroy(args);
}

static inline void init_producer(void) { init_producer_with(1024); }

/* Returns a config with one buffer and one data source, whose own config is `more`. */
static inline struct bytes config_for(const char* name, const struct bytes* more) {
  struct bytes buffer = {{0}, 0}, ds_config = {{0}, 0}, ds = {{0}, 0}, config = {{0}, 0};
  put_number(&buffer, 1, 8192);
  put_text(&ds_config, 1, name);
  if (more) {
    CHECK(ds_config.len + more->len <= sizeof ds_config.at);
    memcpy(ds_config.at + ds_config.len, more->at, more->len);
    ds_config.len += more->len;
  }
  put_message(&ds, 1, &ds_config);
  put_message(&config, 1, &buffer);
  put_message(&config, 2, &ds);
  return config;
}

/* The same for track events, with one pattern of categories only, or with an empty config. */
static inline struct bytes config_for_categories(const char* pattern) {
  struct bytes patterns = {{0}, 0}, te = {{0}, 0};
  if (pattern) {
    put_text(&patterns, 2, pattern);
    put_text(&patterns, 1, "*");
  }
  put_message(&te, 113, &patterns);
  return config_for("track_event", &te);
}

static inline struct PerfettoTracingSessionImpl* set_up(const struct bytes* config) {
  struct PerfettoTracingSessionImpl* session =
      is_system_wide() ? PerfettoTracingSessionSystemCreate() : PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionSetup(session, (void*)config->at, config->len);
  return session;
}

static inline struct PerfettoTracingSessionImpl* start(const struct bytes* config) {
  struct PerfettoTracingSessionImpl* session = set_up(config);
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

/* Writes the trace to a file, and ends the session. */
static inline void finish(struct PerfettoTracingSessionImpl* session, const char* path) {
  FILE* file = fopen(path, "wb");
  CHECK(file);
  last_was_read = 0;
  PerfettoTracingSessionReadTraceBlocking(session, append, file);
  CHECK(last_was_read);
  CHECK(fclose(file) == 0);
  PerfettoTracingSessionDestroy(session);
}

static inline void stop_and_finish(struct PerfettoTracingSessionImpl* session, const char* path) {
  PerfettoTracingSessionStopBlocking(session);
  finish(session, path);
}

/* Registers a type under a name, without options. */
static inline PERFETTO_ATOMIC(bool)* register_as(struct PerfettoDsImpl* ds, const char* name) {
  struct bytes descriptor = {{0}, 0};
  put_text(&descriptor, 1, name);
  put_number(&descriptor, 2, 1); /* will_notify_on_stop, the default of inline functions of headers */
  PERFETTO_ATOMIC(bool)* enabled = NULL;
  CHECK(PerfettoDsImplRegister(ds, &enabled, descriptor.at, descriptor.len) && enabled);
  return enabled;
}

/* Writes with a stream writer, as inline functions of headers do. */

static inline void begin_packet(struct PerfettoDsTracerImpl* tracer, struct PerfettoStreamWriter* w) {
#ifdef PERFETTO_C_V59
  memset(w, 0xee, sizeof *w);
  PerfettoDsTracerImplPacketBegin(tracer, w);
  CHECK(w->encoding == 0);
#else
  *w = PerfettoDsTracerImplPacketBegin(tracer);
#endif
  CHECK(w->write_ptr >= w->begin && w->end >= w->write_ptr);
}

static inline void end_packet(struct PerfettoDsTracerImpl* tracer, struct PerfettoStreamWriter* w) {
  PerfettoDsTracerImplPacketEnd(tracer, w);
}

static inline size_t room(const struct PerfettoStreamWriter* w) { return (size_t)(w->end - w->write_ptr); }

static inline void write_bytes(struct PerfettoStreamWriter* w, const void* from, size_t len) {
  if (len > room(w)) {
    PerfettoStreamWriterAppendBytesSlowpath(w, (const uint8_t*)from, len);
    return;
  }
  if (len) memcpy(w->write_ptr, from, len);
  w->write_ptr += len;
}

static inline void write_all(struct PerfettoStreamWriter* w, const struct bytes* from) { write_bytes(w, from->at, from->len); }

/* Writes TracePacket.for_testing = 900 { str = 1 } in each instance. Returns their number. */
static inline int trace_text(struct PerfettoDsImpl* ds, const char* text) {
  struct bytes event = {{0}, 0}, packet = {{0}, 0};
  put_text(&event, 1, text);
  put_message(&packet, 900, &event);
  int turns = 0;
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    struct PerfettoStreamWriter w;
    begin_packet(it.tracer, &w);
    write_all(&w, &packet);
    end_packet(it.tracer, &w);
    turns++;
  }
  return turns;
}

/* Hands over the packets of this thread. */
static inline void flush_thread(struct PerfettoDsImpl* ds, PerfettoDsTracerOnFlushCb cb, void* user_arg) {
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  PerfettoDsTracerImplFlush(it.tracer, cb, user_arg);
  PerfettoDsImplTraceIterateBreak(ds, &it);
}

static inline pthread_t spawn(void* (*what)(void*), void* arg) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, what, arg) == 0);
  return thread;
}

static inline void join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

/* Runs a function on a new thread, and waits for its end. */
static inline void on_a_thread(void* (*what)(void*), void* arg) { join(spawn(what, arg)); }

#endif
