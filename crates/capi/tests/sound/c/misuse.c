/* Forbidden calls. Upstream survives some of them, and the library all. Its other packets stay
 * whole. */

#include <stdint.h>

#include "sound.h"

static uint8_t* const dangling = (uint8_t*)1;
static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static int postponed_twice;

static void before_init(void) {
  PerfettoProducerBackendInitArgsSetShmemSizeHintKb(NULL, 1);
  PerfettoProducerBackendInitArgsSetMachineId(NULL, 1);
  PerfettoProducerBackendInitArgsDestroy(NULL);
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(NULL);
  CHECK(cat && !*PerfettoTeCategoryImplGetEnabled(cat));
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "nowhere", no_extras);
  PerfettoTePublishCategories();
  PerfettoTeCategoryImplDestroy(cat);
  struct PerfettoTeTimestamp ts = PerfettoTeGetTimestamp();
  CHECK(PerfettoTeLlImplBegin(cat, ts).ds.tracer == NULL);
  struct PerfettoDsImpl* unregistered = PerfettoDsImplCreate();
  CHECK(PerfettoDsImplTraceIterateBegin(unregistered).tracer == NULL);
  CHECK(PerfettoDsImplGetInstanceLocked(unregistered, 0) == NULL);
  PerfettoDsImplReleaseInstanceLocked(unregistered, 0);
  CHECK(PerfettoDsSetBufferExhaustedPolicy(unregistered, 2) && !PerfettoDsSetBufferExhaustedPolicy(unregistered, 3));
}

static void heap_buffers(void) {
  CHECK(PerfettoHeapBufferCreate(NULL) == NULL);
  PerfettoHeapBufferDestroy(NULL, NULL);
  PerfettoHeapBufferCopyInto(NULL, NULL, dangling, 0);
  struct PerfettoStreamWriter w;
  struct PerfettoHeapBuffer* buffer = PerfettoHeapBufferCreate(&w);
  uint8_t out[8] = "------";
  PerfettoStreamWriterUpdateWritePtr(&w);
  PerfettoStreamWriterAppendBytesSlowpath(&w, NULL, 0);
  PerfettoStreamWriterAppendBytesSlowpath(&w, dangling, 0);
  PerfettoStreamWriterReserveBytesSlowpath(&w, 0);
  PerfettoHeapBufferCopyInto(buffer, &w, NULL, 8);
  PerfettoHeapBufferCopyInto(buffer, &w, dangling, 0);
  PerfettoHeapBufferCopyInto(buffer, &w, out, sizeof out);
  CHECK(out[0] == '-');
  sw_bytes(&w, "abc", 3);
  PerfettoHeapBufferCopyInto(buffer, &w, out, SIZE_MAX);
  CHECK(!memcmp(out, "abc-", 4));
  struct PerfettoStreamWriter other;
  struct PerfettoHeapBuffer* another = PerfettoHeapBufferCreate(&other);
  PerfettoHeapBufferCopyInto(buffer, &other, out, sizeof out);
  PerfettoHeapBufferDestroy(another, &other);
  PerfettoHeapBufferDestroy(buffer, &w);
  PerfettoHeapBufferDestroy(buffer, &w);
  PerfettoHeapBufferCopyInto(buffer, &w, out, sizeof out);
  sw_byte(&w, 'x');
}

static void decoders(void) {
  CHECK(PerfettoPbDecoderParseField(NULL).status == PERFETTO_PB_DECODER_ERROR);
  CHECK(PerfettoPbDecoderSkipField(NULL) == PERFETTO_PB_DECODER_ERROR);
  struct PerfettoPbDecoder d = {NULL, NULL};
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_DONE);
  d = (struct PerfettoPbDecoder){dangling, dangling};
  CHECK(PerfettoPbDecoderSkipField(&d) == PERFETTO_PB_DECODER_DONE);
  uint8_t bytes[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1};
  d = (struct PerfettoPbDecoder){bytes, bytes + sizeof bytes};
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_ERROR && d.read_ptr == bytes);
  d = (struct PerfettoPbDecoder){bytes + 4, bytes};
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_DONE);
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx;
  struct PerfettoDsAsyncStopper* stopper = PerfettoDsOnStopArgsPostpone(args);
  CHECK(stopper && PerfettoDsOnStopArgsPostpone(args) == NULL);
  PerfettoDsStopDone(stopper);
  postponed_twice++;
}

static void on_flush(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnFlushArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx;
  struct PerfettoDsAsyncFlusher* flusher = PerfettoDsOnFlushArgsPostpone(args);
  CHECK(flusher && PerfettoDsOnFlushArgsPostpone(args) == NULL);
  PerfettoDsFlushDone(flusher);
}

static void types(void) {
  PerfettoDsSetOnSetupCallback(NULL, NULL);
  PerfettoDsSetCbUserArg(NULL, NULL);
  CHECK(!PerfettoDsSetBufferExhaustedPolicy(NULL, 0) && !PerfettoDsSetBufferExhaustedPolicyConfigurable(NULL, true));
  CHECK(!PerfettoDsImplRegister(NULL, &enabled, NULL, 0));
  PerfettoDsImplUpdateDescriptor(NULL, dangling, 0);
  PerfettoDsImplUpdateDescriptor(PerfettoDsImplCreate(), NULL, 5);
  CHECK(PerfettoDsImplRegister(PerfettoDsImplCreate(), NULL, NULL, 5));
  PERFETTO_ATOMIC(bool)* other;
  CHECK(PerfettoDsImplRegister(PerfettoDsImplCreate(), &other, dangling, 0) && !*other);
  CHECK(PerfettoDsImplRegister(PerfettoDsImplCreate(), &other, "\xff\xff", 2) && !*other);
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  CHECK(register_as(ds, "sound.misuse", &enabled));
  CHECK(register_as(ds, "another name", &other) && other == enabled);
  CHECK(!PerfettoDsSetBufferExhaustedPolicy(ds, 0) && !PerfettoDsSetBufferExhaustedPolicyConfigurable(ds, true));
  PerfettoDsImplUpdateDescriptor(ds, NULL, 0);
  PerfettoDsImplUpdateDescriptor(ds, "\xff", 1);
  CHECK(PerfettoDsOnStopArgsPostpone(NULL) == NULL && PerfettoDsOnFlushArgsPostpone(NULL) == NULL);
  PerfettoDsStopDone(NULL);
  PerfettoDsFlushDone(NULL);
}

static void iterations(void) {
  struct PerfettoDsImplTracerIterator none = {0, NULL, NULL};
  CHECK(PerfettoDsImplTraceIterateBegin(NULL).tracer == NULL);
  PerfettoDsImplTraceIterateNext(NULL, NULL);
  PerfettoDsImplTraceIterateNext(ds, NULL);
  PerfettoDsImplTraceIterateNext(ds, &none);
  PerfettoDsImplTraceIterateBreak(NULL, NULL);
  PerfettoDsImplTraceIterateBreak(ds, NULL);
  PerfettoDsImplTraceIterateBreak(ds, &none);
  CHECK(PerfettoDsImplGetCustomTls(NULL, NULL, 0) == NULL && PerfettoDsImplGetIncrementalState(ds, NULL, 0) == NULL);
  CHECK(PerfettoDsImplGetInstanceLocked(NULL, 0) == NULL && PerfettoDsImplGetInstanceLocked(ds, 99) == NULL);
  CHECK(PerfettoDsImplGetInstanceLocked(ds, UINT32_MAX) == NULL);
  PerfettoDsImplReleaseInstanceLocked(NULL, 0);
  PerfettoDsImplReleaseInstanceLocked(ds, UINT32_MAX);
  PerfettoDsTracerImplFlush(NULL, NULL, NULL);
  CHECK(PerfettoDsTracerImplGetDropCount(NULL) == 0);

  /* A packet without an instance has room for everything that the program writes. */
  struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(NULL);
  for (int i = 0; i < 10000; i++) sw_byte(&w, 'x');
  PerfettoStreamWriterReserveBytesSlowpath(&w, 100000);
  memset(w.write_ptr - 100000, 'x', 100000);
  PerfettoStreamWriterUpdateWritePtr(&w);
  CHECK(PerfettoStreamWriterAnnotatePatch(&w, w.write_ptr - 4) == NULL);
  PerfettoDsTracerImplPacketEnd(NULL, &w);
  PerfettoDsTracerImplPacketEnd(NULL, NULL);
  PerfettoStreamWriterUpdateWritePtr(NULL);
  PerfettoStreamWriterNewChunk(NULL);
  PerfettoStreamWriterAppendBytesSlowpath(NULL, dangling, 0);
  PerfettoStreamWriterReserveBytesSlowpath(NULL, 5);
  CHECK(PerfettoStreamWriterAnnotatePatch(NULL, NULL) == NULL);

  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  struct PerfettoDsImplTracerIterator inner = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(inner.tracer == NULL);
  w = PerfettoDsTracerImplPacketBegin(it.tracer);
  sw_bytes(&w, "\xff\xff\xff", 3); /* dropped, because another packet begins */
  w = PerfettoDsTracerImplPacketBegin(it.tracer);
  PerfettoDsTracerImplFlush(it.tracer, NULL, NULL); /* happens when the packet has ended */
  PerfettoStreamWriterAppendBytesSlowpath(&w, NULL, 0);
  PerfettoStreamWriterAppendBytesSlowpath(&w, dangling, 0);
  PerfettoStreamWriterReserveBytesSlowpath(&w, 0);
  CHECK(PerfettoStreamWriterAnnotatePatch(&w, NULL) == NULL);
  CHECK(PerfettoStreamWriterAnnotatePatch(&w, dangling) == NULL);
  PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  sw_byte(&w, 'x'); /* after the end: in the rest of the window, or in memory that nothing reads */
  write_packet(it.tracer, "whole");
  w = PerfettoDsTracerImplPacketBegin(it.tracer);
  sw_bytes(&w, "\xff\xff\xff", 3); /* dropped, because it never ends */
  struct PerfettoDsImplTracerIterator copy = it;
  PerfettoDsImplTraceIterateBreak(ds, &it);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  PerfettoDsImplTraceIterateNext(ds, &it);
  PerfettoDsImplTraceIterateNext(ds, &copy);
  CHECK(!it.tracer && !copy.tracer);
  PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  it.inst_id = 99;
  write_packet(it.tracer, "with a wrong number");
  PerfettoDsImplTraceIterateNext(ds, &it);
  CHECK(!it.tracer);
  it = PerfettoDsImplTraceIterateBegin(ds);
  write_packet(it.tracer, "the last");
  PerfettoDsImplTraceIterateNext(ds, &it);
}

static bool flush_failed;

static void on_flushed(struct PerfettoTracingSessionImpl* session, bool success, void* user_arg) {
  CHECK(session == user_arg);
  flush_failed = !success;
}

/* On the library's thread, which cannot wait for itself. */
static _Atomic(bool) was_in_callback;

static void in_callback(struct PerfettoTracingSessionImpl* session, void* user_arg) {
  (void)user_arg;
  PerfettoTracingSessionStartBlocking(session);
  PerfettoTracingSessionStopBlocking(session);
  CHECK(!PerfettoTracingSessionFlushBlocking(session, 100));
  PerfettoTracingSessionSetStopCb(session, NULL, NULL);
  PerfettoTracingSessionStopAsync(session);
  PerfettoTracingSessionDestroy(session);
  was_in_callback = true;
}

static void count(struct PerfettoTracingSessionImpl* session, void* user_arg) {
  (void)session;
  ++*(_Atomic(int)*)user_arg;
}

static void sessions(void) {
  PerfettoTracingSessionSetup(NULL, NULL, 5);
  PerfettoTracingSessionSetStopCb(NULL, NULL, NULL);
  PerfettoTracingSessionStartAsync(NULL);
  PerfettoTracingSessionStartBlocking(NULL);
  PerfettoTracingSessionStopAsync(NULL);
  PerfettoTracingSessionStopBlocking(NULL);
  PerfettoTracingSessionFlushAsync(NULL, 0, NULL, NULL);
  PerfettoTracingSessionFlushAsync(NULL, 0, on_flushed, NULL);
  CHECK(flush_failed && !PerfettoTracingSessionFlushBlocking(NULL, 0));
  PerfettoTracingSessionReadTraceBlocking(NULL, NULL, NULL);
  struct trace trace = {NULL, 0};
  PerfettoTracingSessionReadTraceBlocking(NULL, append, &trace);
  PerfettoTracingSessionDestroy(NULL);

  struct PerfettoTracingSessionImpl* session = PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionStartBlocking(session);
  CHECK(!PerfettoTracingSessionFlushBlocking(session, 1));
  PerfettoTracingSessionReadTraceBlocking(session, append, &trace);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionSetup(session, dangling, 0);
  PerfettoTracingSessionSetup(session, NULL, 100);
  PerfettoTracingSessionSetup(session, "\xff\xff\xff", 3);
  PerfettoTracingSessionStartBlocking(session);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionReadTraceBlocking(session, append, &trace);
  PerfettoTracingSessionDestroy(session);

  session = start("sound.misuse");
  PerfettoTracingSessionStartBlocking(session);
  PerfettoTracingSessionSetStopCb(session, in_callback, NULL);
  PerfettoTracingSessionStopAsync(session);
  while (!was_in_callback) usleep(1000);

  /* The wait for the callback ends, and only the last callback is called. */
  static _Atomic(int) first, last;
  session = start("sound.misuse");
  PerfettoTracingSessionSetStopCb(session, count, (void*)&first);
  PerfettoTracingSessionSetStopCb(session, count, (void*)&last);
  PerfettoTracingSessionDestroy(session);
  while (!last) usleep(1000);
  session = start("sound.misuse");
  PerfettoTracingSessionSetStopCb(session, count, (void*)&first);
  PerfettoTracingSessionSetStopCb(session, NULL, NULL);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionDestroy(session);
  PerfettoTracingSessionDestroy(start("sound.misuse"));
  CHECK(first == 0 && last == 1);
}

static void nothing_hangs(void) {
  PerfettoProducerActivateTriggers(NULL, 0);
  const char* names[] = {"", "\xff", NULL};
  PerfettoProducerActivateTriggers(names, UINT32_MAX);
  struct PerfettoProducerBackendInitArgs* args = PerfettoProducerBackendInitArgsCreate();
  PerfettoProducerBackendInitArgsSetShmemSizeHintKb(args, UINT32_MAX);
  PerfettoProducerInProcessInit(args);
  PerfettoProducerBackendInitArgsDestroy(args);
}

int main(void) {
  before_init();
  heap_buffers();
  decoders();
  init();
  nothing_hangs();
  types();
  struct PerfettoTracingSessionImpl* session = start("sound.misuse");
  iterations();
  struct trace trace = stop_and_read(session);
  CHECK(postponed_twice >= 1);
  CHECK(has(&trace, "whole") && has(&trace, "with a wrong number") && has(&trace, "the last"));
  sessions();
  return 0;
}
