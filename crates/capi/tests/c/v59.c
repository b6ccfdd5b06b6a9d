/* Differences of v59 from v58. */

#include <esatto/abi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "%d: not so: %s\n", __LINE__, #condition); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

static uint64_t reason;
static bool found;

static void on_flush(struct PerfettoDsImpl* ds, uint32_t instance, void* user_arg, void* context,
                     struct PerfettoDsOnFlushArgs* args) {
  (void)ds, (void)instance, (void)user_arg, (void)context;
  if (!reason) reason = PerfettoDsOnFlushArgsGetReason(args);
}

static void on_read(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more, void* user_arg) {
  (void)session, (void)has_more, (void)user_arg;
  for (size_t i = 0; i + 5 <= size; i++) found |= memcmp((const char*)data + i, "hello", 5) == 0;
}

int main(void) {
  struct PerfettoPbMsgWriter w;
  memset(&w, 0xee, sizeof w);
  struct PerfettoHeapBuffer* heap = PerfettoHeapBufferCreate(&w);
  CHECK(w.encoding == 0);
  PerfettoHeapBufferDestroy(heap, &w);

  PerfettoProducerInProcessInit(NULL);
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled = NULL;
  CHECK(PerfettoDsSetSupportsTracingV2(ds, true));
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  CHECK(PerfettoDsImplRegister(ds, &enabled, "\x0a\x05" "c.v59", 7) && enabled);
  CHECK(!PerfettoDsSetSupportsTracingV2(ds, true));
  struct PerfettoTracingSessionImpl* session = PerfettoTracingSessionInProcessCreate();
  static const char config[] = "\x0a\x03\x08\x80\x20" "\x12\x09\x0a\x07\x0a\x05" "c.v59";
  PerfettoTracingSessionSetup(session, (void*)config, sizeof config - 1);
  PerfettoTracingSessionStartBlocking(session);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  memset(&w, 0xee, sizeof w);
  PerfettoDsTracerImplPacketBegin(it.tracer, &w);
  CHECK(w.encoding == 0 && w.impl);
  /* for_testing = 900 { str = 1 } */
  PerfettoPbMsgWriterAppendBytesSlowpath(&w, (const uint8_t*)"\xa2\x38\x07\x0a\x05hello", 10);
  PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  CHECK(PerfettoTracingSessionFlushBlocking(session, 5000));
  CHECK(reason == PERFETTO_DS_FLUSH_REASON_EXPLICIT);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionReadTraceBlocking(session, on_read, NULL);
  CHECK(found);
  return 0;
}
