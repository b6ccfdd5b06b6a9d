/* Threads that are cancelled (pthread_cancel) while they use the library.
 *
 * First each step runs on a thread on which a cancellation is pending: the first cancellation point
 * would end the thread, so the step must reach its end. Then threads trace in a loop, and are
 * cancelled at any time, some in the body of a packet. */

#include <sys/prctl.h>

#include "sound.h"

static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static struct PerfettoTeCategoryImpl* cat;
static _Atomic(int) calls;

/* A function of the program that is a cancellation point. */
static void pause_here(void) {
  calls++;
  usleep(1);
}

static void* on_create(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance,
                       struct PerfettoDsTracerImpl* tracer, void* user_arg) {
  (void)type, (void)instance, (void)tracer, (void)user_arg;
  pause_here();
  return malloc(10);
}

static void on_delete(void* object) {
  pause_here();
  free(object);
}

static void on_flushed(void* user_arg) {
  (void)user_arg;
  pause_here();
}

static void on_read(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more,
                    void* to) {
  (void)session, (void)data, (void)size, (void)has_more, (void)to;
  pause_here();
}

static void on_category(struct PerfettoTeCategoryImpl* category, PerfettoDsInstanceIndex instance, bool created,
                        bool global, void* user_arg) {
  (void)category, (void)instance, (void)created, (void)global, (void)user_arg;
  pause_here();
}

static void instant(void) { PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "instant", no_extras); }

static void begin(void) { PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_SLICE_BEGIN, "slice", no_extras); }

static void end(void) { PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_SLICE_END, NULL, no_extras); }

static void full(void) {
  struct PerfettoTeHlExtraNamedTrack track = {{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "track", 1, 0, false};
  struct PerfettoTeHlExtraDebugArgString arg = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "arg", "value"};
  struct PerfettoTeCategoryDescriptor other = {"dynamic", NULL, NULL, 0};
  struct PerfettoTeHlExtraDynamicCategory dynamic = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, &other};
  struct PerfettoTeHlExtra flush = {PERFETTO_TE_HL_EXTRA_TYPE_FLUSH};
  struct PerfettoTeHlExtra* extras[] = {&track.header, &arg.header, &dynamic.header, &flush, NULL};
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "with extras", extras);
}

static void counter(void) {
  struct PerfettoTeRegisteredTrackImpl impl = {NULL, 0, 77};
  struct PerfettoTeHlExtraRegisteredTrack track = {{PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK}, &impl};
  struct PerfettoTeHlExtraCounterInt64 value = {{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64}, 5};
  struct PerfettoTeHlExtra* extras[] = {&track.header, &value.header, NULL};
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_COUNTER, NULL, extras);
}

/* After a while the library looks at the name of the thread again. */
static void renamed(void) {
  prctl(PR_SET_NAME, "renamed");
  for (int i = 0; i < 5000; i++) full();
}

static void packets(void) {
  static const char text[3000];
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  while (it.tracer) {
    PerfettoDsImplGetIncrementalState(ds, it.tracer, it.inst_id);
    for (int i = 0; i < 2000; i++) {
      struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(it.tracer);
      sw_bytes(&w, "\xc2\x38\x06\x0a\x04pack", 10);
      PerfettoDsTracerImplPacketEnd(it.tracer, &w);
      w = PerfettoDsTracerImplPacketBegin(it.tracer);
      sw_bytes(&w, "\xc2\x38\xbb\x17\x0a\xb8\x17", 7);
      sw_bytes(&w, text, sizeof text);
      PerfettoDsTracerImplPacketEnd(it.tracer, &w);
    }
    PerfettoDsTracerImplFlush(it.tracer, on_flushed, NULL);
    PerfettoDsImplTraceIterateNext(ds, &it);
  }
}

static void low_level(void) {
  struct PerfettoTeLlImplIterator ll = PerfettoTeLlImplBegin(cat, PerfettoTeGetTimestamp());
  CHECK(ll.ds.tracer);
  bool seen;
  PerfettoTeLlImplIntern(ll.incr, 2, "by hand", 7, &seen);
  write_packet(ll.ds.tracer, "by hand");
  PerfettoTeLlImplBreak(cat, &ll);
}

static void registration(void) {
  static struct PerfettoTeCategoryDescriptor desc = {"registered", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* category = PerfettoTeCategoryImplCreate(&desc);
  PerfettoTePublishCategories();
  PerfettoTeCategoryImplSetCallback(category, on_category, NULL);
  PerfettoTeCategoryImplDestroy(category);
  struct PerfettoDsImpl* another = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool) * flag;
  CHECK(register_as(another, "sound.cancel.another", &flag));
  const char* triggers[] = {"trigger", NULL};
  PerfettoProducerActivateTriggers(triggers, 1000);
}

static void session(void) {
  struct PerfettoTracingSessionImpl* session = start("sound.cancel");
  PerfettoTracingSessionFlushBlocking(session, 1000);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionReadTraceBlocking(session, on_read, NULL);
  PerfettoTracingSessionDestroy(session);
}

static void initialisation(void) {
  init();
  PerfettoTeInit();
}

struct step {
  void (*function)(void);
  bool has_ended;
};

static void* run_step(void* argument) {
  struct step* step = (struct step*)argument;
  pthread_cancel(pthread_self());
  step->function();
  step->has_ended = true;
  pthread_testcancel();
  return NULL;
}

static void cancelled_in(const char* name, void (*function)(void)) {
  struct step step = {function, false};
  pthread_t thread;
  void* result;
  CHECK(!pthread_create(&thread, NULL, run_step, &step));
  CHECK(!pthread_join(thread, &result));
  if (!step.has_ended) fprintf(stderr, "cancelled in: %s\n", name);
  CHECK(step.has_ended && result == PTHREAD_CANCELED);
}

static void* loop(void* number) {
  for (int i = 0;; i++) {
    begin();
    counter();
    instant();
    end();
    if (i % 100 == 0) {
      full();
      pthread_testcancel();
    }
    if ((uintptr_t)number % 3 == 0) continue;
    struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
    while (it.tracer) {
      struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(it.tracer);
      sw_bytes(&w, "\xc2\x38\x06\x0a\x04", 5);
      /* A cancellation here leaves the packet open. */
      if ((uintptr_t)number % 3 == 1) usleep(1);
      sw_bytes(&w, "body", 4);
      PerfettoDsTracerImplPacketEnd(it.tracer, &w);
      if (i % 50 == 0) PerfettoDsTracerImplFlush(it.tracer, on_flushed, NULL);
      PerfettoDsImplTraceIterateNext(ds, &it);
    }
  }
  return NULL;
}

int main(void) {
  alarm(300);
  cancelled_in("initialisation", initialisation);
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnCreateTls(ds, on_create);
  PerfettoDsSetOnDeleteTls(ds, on_delete);
  PerfettoDsSetOnCreateIncr(ds, on_create);
  PerfettoDsSetOnDeleteIncr(ds, on_delete);
  PerfettoDsSetBufferExhaustedPolicy(ds, PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_STALL_AND_DROP);
  CHECK(register_as(ds, "sound.cancel", &enabled));
  static struct PerfettoTeCategoryDescriptor desc = {"sound", NULL, NULL, 0};
  cat = PerfettoTeCategoryImplCreate(&desc);
  PerfettoTePublishCategories();
  cancelled_in("registration", registration);
  struct PerfettoTracingSessionImpl* events = start("track_event");
  struct PerfettoTracingSessionImpl* of_packets = start("sound.cancel");
  CHECK(*enabled);

  cancelled_in("a first event", instant);
  cancelled_in("an event with extras", full);
  cancelled_in("a counter", counter);
  cancelled_in("events of a renamed thread", renamed);
  int before = calls;
  cancelled_in("packets", packets);
  CHECK(calls > before);
  cancelled_in("events by hand", low_level);
  cancelled_in("a session", session);

  for (uintptr_t round = 0; round < 150; round++) {
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) CHECK(!pthread_create(&threads[i], NULL, loop, (void*)(round + i)));
    usleep(500 + round * 37 % 1000);
    for (int i = 0; i < 2; i++) CHECK(!pthread_cancel(threads[i]));
    for (int i = 0; i < 2; i++) {
      void* result;
      CHECK(!pthread_join(threads[i], &result));
      CHECK(result == PTHREAD_CANCELED);
    }
  }

  /* The threads were faster than the service, so the memory may be full. */
  PerfettoTracingSessionFlushBlocking(events, 60000);
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "the last", no_extras);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  for (; it.tracer; PerfettoDsImplTraceIterateNext(ds, &it)) write_packet(it.tracer, "the last packet");
  struct trace trace = stop_and_read(events);
  CHECK(has(&trace, "the last"));
  trace = stop_and_read(of_packets);
  CHECK(has(&trace, "the last packet"));
  return 0;
}
