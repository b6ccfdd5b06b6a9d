/* Functions that the programs of this folder share. */

#ifndef SOUND_H_
#define SOUND_H_

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../c/bytes.h"
#include "../../c/check.h"
#include <esatto/abi.h>

__attribute__((unused)) static struct PerfettoTeHlExtra* no_extras[] = {NULL};

/* A session with one data source. For track events it enables all categories. */
static inline struct PerfettoTracingSessionImpl* start(const char* name) {
  struct bytes buffer = {{0}, 0}, ds_config = {{0}, 0}, ds = {{0}, 0}, config = {{0}, 0}, te = {{0}, 0};
  put_number(&buffer, 1, 8192);
  put_text(&ds_config, 1, name);
  if (!strcmp(name, "track_event")) {
    put_text(&te, 2, "*");
    put_message(&ds_config, 113, &te);
  }
  put_message(&ds, 1, &ds_config);
  put_message(&config, 1, &buffer);
  put_message(&config, 2, &ds);
  struct PerfettoTracingSessionImpl* session =
      getenv("SYSTEM") ? PerfettoTracingSessionSystemCreate() : PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionSetup(session, config.at, config.len);
  PerfettoTracingSessionStartBlocking(session);
  return session;
}

/* Bytes read from a trace. */
struct trace {
  uint8_t* at;
  size_t len;
};

static inline void append(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more,
                          void* to) {
  struct trace* trace = (struct trace*)to;
  (void)session, (void)has_more;
  CHECK(data);
  trace->at = (uint8_t*)realloc(trace->at, trace->len + size + 1);
  memcpy(trace->at + trace->len, data, size);
  trace->len += size;
}

static inline struct trace stop_and_read(struct PerfettoTracingSessionImpl* session) {
  struct trace trace = {NULL, 0};
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionReadTraceBlocking(session, append, &trace);
  PerfettoTracingSessionDestroy(session);
  return trace;
}

static inline bool has(const struct trace* trace, const char* text) {
  return memmem(trace->at, trace->len, text, strlen(text)) != NULL;
}

static inline void init(void) {
  if (getenv("SYSTEM"))
    PerfettoProducerSystemInit(NULL);
  else
    PerfettoProducerInProcessInit(NULL);
}

static inline bool register_as(struct PerfettoDsImpl* ds, const char* name, PERFETTO_ATOMIC(bool) * *enabled) {
  struct bytes descriptor = {{0}, 0};
  put_text(&descriptor, 1, name);
  return PerfettoDsImplRegister(ds, enabled, descriptor.at, descriptor.len);
}

/* Writes as inline functions of headers do. */
static inline void sw_bytes(struct PerfettoStreamWriter* w, const void* from, size_t len) {
  if (len > (size_t)(w->end - w->write_ptr)) {
    PerfettoStreamWriterAppendBytesSlowpath(w, (const uint8_t*)from, len);
    return;
  }
  memcpy(w->write_ptr, from, len);
  w->write_ptr += len;
}

static inline void sw_byte(struct PerfettoStreamWriter* w, uint8_t byte) {
  if (w->write_ptr == w->end) PerfettoStreamWriterNewChunk(w);
  *w->write_ptr++ = byte;
}

/* Writes a packet with a text in TracePacket.for_testing. */
static inline void write_packet(struct PerfettoDsTracerImpl* tracer, const char* text) {
  struct bytes event = {{0}, 0}, packet = {{0}, 0};
  put_text(&event, 1, text);
  put_message(&packet, 900, &event);
  struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(tracer);
  sw_bytes(&w, packet.at, packet.len);
  PerfettoDsTracerImplPacketEnd(tracer, &w);
}

/* Forks. An alarm ends a child that hangs, and the test fails. */
static inline pid_t fork_in_time(void) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (!pid) alarm(100);
  return pid;
}

static inline void wait_for_child(pid_t pid) {
  int status;
  CHECK(waitpid(pid, &status, 0) == pid);
  if (status) fprintf(stderr, "the child: %x\n", status);
  CHECK(status == 0);
}

#endif
