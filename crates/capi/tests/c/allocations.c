/* Trace points do not allocate between chunk boundaries, once a thread has seen events of their
 * kind. */

#include "common.h"

static _Thread_local long allocations;

/* Also counts allocations of the library, because the dynamic linker searches the program first. */
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);

void* malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}

void* calloc(size_t n, size_t size) {
  allocations++;
  return __libc_calloc(n, size);
}

void* realloc(void* from, size_t size) {
  allocations++;
  return __libc_realloc(from, size);
}

static struct PerfettoTeCategoryDescriptor desc = {"hot", "with a description", (const char*[]){"tag"}, 1};
static struct PerfettoTeCategoryImpl* hot;
static struct PerfettoDsImpl* ds;
static struct PerfettoTeRegisteredTrackImpl track;

#define EMIT(type, name, ...)                                                  \
  PerfettoTeHlEmitImpl(hot, PERFETTO_TE_TYPE_##type, name,                     \
                       (struct PerfettoTeHlExtra* const[]){__VA_ARGS__ NULL})
#define EXTRA(type, kind, ...) \
  (struct PerfettoTeHlExtra*)&(struct PerfettoTeHlExtra##type){{PERFETTO_TE_HL_EXTRA_TYPE_##kind}, __VA_ARGS__},

static void high_level(int i) {
  /* At another address each time. */
  char name[2][8] = {"name", "name"};
  EMIT(INSTANT, name[i % 2]);
  EMIT(SLICE_BEGIN, "slice", EXTRA(DebugArgInt64, DEBUG_ARG_INT64, "number", i)
       EXTRA(DebugArgString, DEBUG_ARG_STRING, "text", "fifteen bytes !"));
  EMIT(SLICE_END, NULL);
  EMIT(INSTANT, "all", EXTRA(DebugArgBool, DEBUG_ARG_BOOL, "a", true) EXTRA(DebugArgUint64, DEBUG_ARG_UINT64, "b", 1)
       EXTRA(DebugArgInt64, DEBUG_ARG_INT64, "c", 2) EXTRA(DebugArgDouble, DEBUG_ARG_DOUBLE, "d", 3.0)
       EXTRA(DebugArgPointer, DEBUG_ARG_POINTER, "e", 4) EXTRA(DebugArgString, DEBUG_ARG_STRING, "f", "\303\244"));
  EMIT(COUNTER, NULL, EXTRA(RegisteredTrack, REGISTERED_TRACK, &track) EXTRA(CounterInt64, COUNTER_INT64, i));
  EMIT(INSTANT, "flow", EXTRA(Flow, FLOW, 5) EXTRA(Flow, TERMINATING_FLOW, 6));
  EMIT(INSTANT, "not interned", &(struct PerfettoTeHlExtra){PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN},);
  EMIT(INSTANT, "dynamic", EXTRA(DynamicCategory, DYNAMIC_CATEGORY, &desc));
}

static void low_level(void) {
  struct PerfettoTeTimestamp now = PerfettoTeGetTimestamp();
  for (struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(hot, now); it.ds.tracer != NULL;
       PerfettoTeLlImplNext(hot, now, &it)) {
    bool seen;
    PerfettoTeLlImplIntern(it.incr, 2, "interned", 8, &seen);
    PerfettoTeLlImplTrackSeen(it.incr, 77);
    struct PerfettoStreamWriter w;
    begin_packet(it.ds.tracer, &w);
    write_bytes(&w, "\x68\x02\x5a\x04\x48\x03\x50\x01", 8);
    end_packet(it.ds.tracer, &w);
  }
}

static void data_source(void) {
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer != NULL;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    struct PerfettoStreamWriter w;
    begin_packet(it.tracer, &w);
    write_bytes(&w, "\x40\x01", 2);
    end_packet(it.tracer, &w);
  }
}

static void all(int i) {
  high_level(i);
  low_level();
  data_source();
}

static void flush(void) {
  EMIT(INSTANT, "flush", &(struct PerfettoTeHlExtra){PERFETTO_TE_HL_EXTRA_TYPE_FLUSH},);
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer != NULL;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    PerfettoDsTracerImplFlush(it.tracer, NULL, NULL);
  }
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  PerfettoTeInit();
  hot = PerfettoTeCategoryImplCreate(&desc);
  ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled;
  CHECK(PerfettoDsImplRegister(ds, &enabled, "\x0a\x03mem", 5));
  static uint8_t descriptor[] = {0x08, 0x4d, 0x12, 0x01, 't', 0x42, 0x00};
  track = (struct PerfettoTeRegisteredTrackImpl){descriptor, sizeof descriptor, 0x4d};
  struct bytes patterns = {{0}, 0}, te = {{0}, 0};
  put_text(&patterns, 2, "*");
  put_message(&te, 113, &patterns);
  struct bytes config = config_for("track_event", &te), other = config_for("mem", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  struct PerfettoTracingSessionImpl* second = start(&other);

  /* The first round makes names, descriptors and tables. */
  all(0);
  all(1);
  for (int round = 0; round < 20; round++) {
    /* A chunk has 4 KiB, and these events take some 350 bytes. */
    flush();
    all(0);
    long before = allocations;
    CHECK(before > 0);
    for (int i = 0; i < 5; i++) all(i);
    if (allocations != before) {
      fprintf(stderr, "round %d: %ld allocations\n", round, allocations - before);
      return 1;
    }
  }
  PerfettoTracingSessionDestroy(second);
  PerfettoTracingSessionDestroy(session);
  return 0;
}
