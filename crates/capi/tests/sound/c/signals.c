/* Signal handlers that trace interrupt the library at any point. */

#include <signal.h>
#include <sys/time.h>

#include "sound.h"

static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static struct PerfettoTeCategoryImpl* cat;
static _Atomic(unsigned) handled;

/* A text of events in handlers. None of its bytes in the trace is zero. */
#define MARK 0x123456789abcdef

static struct PerfettoTeHlExtraDebugArgString text = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "text", "value"};
static struct PerfettoTeHlExtraNamedTrack track = {{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "a track", 1, 2, false};

static void trace_all(const char* name, const char* dynamic_name, const char* packet, int64_t value) {
  struct PerfettoTeHlExtraDebugArgInt64 number = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, "number", value};
  struct PerfettoTeHlExtra* extras[] = {&text.header, &number.header, &track.header, NULL};
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, name, extras);
  struct PerfettoTeCategoryDescriptor desc = {dynamic_name, NULL, NULL, 0};
  struct PerfettoTeHlExtraDynamicCategory dynamic = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, &desc};
  struct PerfettoTeHlExtra* others[] = {&dynamic.header, NULL};
  PerfettoTeHlEmitImpl(perfetto_te_any_categories, PERFETTO_TE_TYPE_INSTANT, name, others);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  while (it.tracer) {
    write_packet(it.tracer, packet);
    PerfettoDsImplTraceIterateNext(ds, &it);
  }
  struct PerfettoTeLlImplIterator ll = PerfettoTeLlImplBegin(cat, PerfettoTeGetTimestamp());
  if (ll.ds.tracer) {
    bool seen;
    PerfettoTeLlImplIntern(ll.incr, 2, name, strlen(name), &seen);
    PerfettoTeLlImplBreak(cat, &ll);
  }
}

static void handler(int signal) {
  (void)signal;
  handled++;
  trace_all("in a handler", "dynamic", "of a handler", MARK);
}

int main(void) {
  init();
  PerfettoTeInit();
  ds = PerfettoDsImplCreate();
  CHECK(register_as(ds, "sound.signals", &enabled));
  static struct PerfettoTeCategoryDescriptor desc = {"sound", NULL, NULL, 0};
  cat = PerfettoTeCategoryImplCreate(&desc);
  struct PerfettoTracingSessionImpl* events = start("track_event");
  struct PerfettoTracingSessionImpl* packets = start("sound.signals");
  /* After this the handler needs no allocation, which it must not do. */
  trace_all("in a handler", "dynamic", "at first", 7);
  alarm(60);
  signal(SIGPROF, handler);
  struct itimerval often = {{0, 150}, {0, 150}};
  CHECK(!setitimer(ITIMER_PROF, &often, NULL));
  char name[32];
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPROF);
  for (unsigned i = 0; i < 20000 || handled < 200; i++) {
    snprintf(name, sizeof name, "name %u", i);
    trace_all(name, name, name, 7);
    if (i % 16 == 0) {
      /* These calls allocate. A handler that also allocates must not interrupt them. */
      CHECK(!pthread_sigmask(SIG_BLOCK, &signals, NULL));
      struct PerfettoTeCategoryImpl* another = PerfettoTeCategoryImplCreate(&desc);
      PerfettoTePublishCategories();
      PerfettoTeCategoryImplDestroy(another);
      CHECK(!pthread_sigmask(SIG_UNBLOCK, &signals, NULL));
    }
  }
  struct itimerval never = {{0, 0}, {0, 0}};
  CHECK(!setitimer(ITIMER_PROF, &never, NULL));
  trace_all("last", "last", "the last one", 7);
  struct trace trace = stop_and_read(packets);
  CHECK(has(&trace, "the last one") && has(&trace, "of a handler"));
  trace = stop_and_read(events);
  struct bytes mark = {{0}, 0};
  put_varint(&mark, MARK);
  CHECK(has(&trace, (const char*)mark.at));
  return 0;
}
