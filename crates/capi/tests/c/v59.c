/* What v59 has otherwise than v58; declared here, as the header is v58's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct PerfettoPbMsgWriter {
  void* impl;
  uint8_t *begin, *end, *write_ptr;
  size_t written_previously;
  uint32_t encoding;
};

_Static_assert(sizeof(struct PerfettoPbMsgWriter) == 48, "as in v59");
_Static_assert(offsetof(struct PerfettoPbMsgWriter, encoding) == 40, "as in v59");

struct iterator {
  uint32_t inst_id;
  void *tls, *tracer;
};

void PerfettoProducerInProcessInit(const void*);
void* PerfettoDsImplCreate(void);
bool PerfettoDsSetSupportsTracingV2(void*, bool);
bool PerfettoDsImplRegister(void*, void**, const void*, size_t);
void PerfettoDsSetOnFlushCallback(void*, void (*)(void*, uint32_t, void*, void*, void*));
uint64_t PerfettoDsOnFlushArgsGetReason(void*);
struct iterator PerfettoDsImplTraceIterateBegin(void*);
void PerfettoDsImplTraceIterateBreak(void*, struct iterator*);
void PerfettoDsTracerImplPacketBegin(void*, struct PerfettoPbMsgWriter*);
void PerfettoDsTracerImplPacketEnd(void*, struct PerfettoPbMsgWriter*);
void PerfettoPbMsgWriterAppendBytesSlowpath(struct PerfettoPbMsgWriter*, const void*, size_t);
void* PerfettoHeapBufferCreate(struct PerfettoPbMsgWriter*);
void PerfettoHeapBufferDestroy(void*, struct PerfettoPbMsgWriter*);
void* PerfettoTracingSessionInProcessCreate(void);
void PerfettoTracingSessionSetup(void*, const void*, size_t);
void PerfettoTracingSessionStartBlocking(void*);
bool PerfettoTracingSessionFlushBlocking(void*, uint32_t);
void PerfettoTracingSessionStopBlocking(void*);
void PerfettoTracingSessionReadTraceBlocking(void*, void (*)(void*, const void*, size_t, bool, void*), void*);

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "%d: not so: %s\n", __LINE__, #condition); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

static uint64_t reason;
static bool found;

static void on_flush(void* ds, uint32_t instance, void* user_arg, void* context, void* args) {
  (void)ds, (void)instance, (void)user_arg, (void)context;
  if (!reason) reason = PerfettoDsOnFlushArgsGetReason(args);
}

static void on_read(void* session, const void* data, size_t size, bool has_more, void* user_arg) {
  (void)session, (void)has_more, (void)user_arg;
  for (size_t i = 0; i + 5 <= size; i++) found |= memcmp((const char*)data + i, "hello", 5) == 0;
}

int main(void) {
  struct PerfettoPbMsgWriter w;
  memset(&w, 0xee, sizeof w);
  void* heap = PerfettoHeapBufferCreate(&w);
  CHECK(w.encoding == 0);
  PerfettoHeapBufferDestroy(heap, &w);

  PerfettoProducerInProcessInit(NULL);
  void *ds = PerfettoDsImplCreate(), *enabled = NULL;
  CHECK(PerfettoDsSetSupportsTracingV2(ds, true));
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  CHECK(PerfettoDsImplRegister(ds, &enabled, "\x0a\x05" "c.v59", 7) && enabled);
  CHECK(!PerfettoDsSetSupportsTracingV2(ds, true));
  void* session = PerfettoTracingSessionInProcessCreate();
  static const char config[] = "\x0a\x03\x08\x80\x20" "\x12\x09\x0a\x07\x0a\x05" "c.v59";
  PerfettoTracingSessionSetup(session, config, sizeof config - 1);
  PerfettoTracingSessionStartBlocking(session);
  struct iterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  memset(&w, 0xee, sizeof w);
  PerfettoDsTracerImplPacketBegin(it.tracer, &w);
  CHECK(w.encoding == 0 && w.impl);
  /* for_testing = 900 { str = 1 } */
  PerfettoPbMsgWriterAppendBytesSlowpath(&w, "\xa2\x38\x07\x0a\x05hello", 10);
  PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  CHECK(PerfettoTracingSessionFlushBlocking(session, 5000));
  CHECK(reason == 4); /* explicit */
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionReadTraceBlocking(session, on_read, NULL);
  CHECK(found);
  return 0;
}
