/* Trace points of the C ABI, each as a macro of a header would expand it. The program runs with any
 * library that has the ABI.
 *
 * trace_points TRACE BATCHES PAUSE_US [CASE OPERATIONS]
 *
 * Measures every case on one thread and on two, and prints a line of JSON for each. The last line
 * holds the number of events. Their trace goes to a file. With a case, it only runs that case, on
 * one thread and without a pause, for profilers that count instructions. */

#define _GNU_SOURCE

#include <unistd.h>

#include "harness.h"
#include "library.h"
#include "session.h"

#define TEXT "fifteen bytes !"
/* Keeps a call and its arguments in the loop. */
#define KEEP(value) __asm__ volatile("" : : "r"(value) : "memory")

static struct PerfettoTeCategoryDescriptor bench_desc = {"bench", NULL, NULL, 0};
static struct PerfettoTeCategoryDescriptor off_desc = {"off", NULL, NULL, 0};
/* The initial value of a category with static storage. */
static struct category {
  PERFETTO_ATOMIC(bool)* enabled;
  struct PerfettoTeCategoryImpl* impl;
} bench = {&perfetto_atomic_false, NULL}, off = {&perfetto_atomic_false, NULL};
static struct source {
  PERFETTO_ATOMIC(bool)* enabled;
  struct PerfettoDsImpl* impl;
} bench_source = {&perfetto_atomic_false, NULL}, off_source = {&perfetto_atomic_false, NULL};
static struct PerfettoTeRegisteredTrackImpl depth;

static inline bool is_on(PERFETTO_ATOMIC(bool)* flag) { return atomic_load_explicit(flag, memory_order_relaxed); }

/* An event with the extras after its name: pointers to extras. */
#define EMIT(category, type, name, ...)                                                        \
  do {                                                                                         \
    if (is_on((category).enabled)) {                                                           \
      struct PerfettoTeHlExtra* const extras[] = {__VA_ARGS__ __VA_OPT__(, ) NULL};            \
      PerfettoTeHlEmitImpl((category).impl, PERFETTO_TE_TYPE_##type, name, extras);            \
    }                                                                                          \
  } while (0)
/* One extra. */
#define EXTRA(type, kind, ...) \
  (struct PerfettoTeHlExtra*)&(struct PerfettoTeHlExtra##type) { {PERFETTO_TE_HL_EXTRA_TYPE_##kind}, __VA_ARGS__ }
#define FIELD(type, kind, id, ...) \
  (struct PerfettoTeHlProtoField*)&(struct PerfettoTeHlProtoField##type) { {PERFETTO_TE_HL_PROTO_TYPE_##kind, id}, __VA_ARGS__ }

#define LOOP for (uint64_t i = 0; i < operations; i++)

static void disabled(uint64_t operations) {
  LOOP {
    EMIT(off, INSTANT, "off");
    KEEP(i);
  }
}

static void disabled_annotated(uint64_t operations) {
  LOOP {
    EMIT(off, INSTANT, "off", EXTRA(DebugArgInt64, DEBUG_ARG_INT64, "number", (int64_t)i),
         EXTRA(DebugArgString, DEBUG_ARG_STRING, "text", TEXT));
    KEEP(i);
  }
}

static void disabled_source(uint64_t operations) {
  LOOP {
    if (is_on(off_source.enabled)) PerfettoDsImplTraceIterateBegin(off_source.impl);
    KEEP(i);
  }
}

/* As a program does whose header does not look first. */
static void disabled_called(uint64_t operations) {
  struct PerfettoTeHlExtra* const none[] = {NULL};
  LOOP PerfettoTeHlEmitImpl(off.impl, PERFETTO_TE_TYPE_INSTANT, "off", none);
}

static void disabled_source_called(uint64_t operations) {
  LOOP {
    struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(off_source.impl);
    KEEP(it.tracer);
  }
}

static void instant(uint64_t operations) { LOOP EMIT(bench, INSTANT, "instant"); }

static void slice_pair(uint64_t operations) {
  LOOP {
    EMIT(bench, SLICE_BEGIN, "slice");
    EMIT(bench, SLICE_END, NULL);
  }
}

static void counter(uint64_t operations) {
  LOOP EMIT(bench, COUNTER, NULL, EXTRA(RegisteredTrack, REGISTERED_TRACK, &depth),
            EXTRA(CounterInt64, COUNTER_INT64, (int64_t)i));
}

static void one_number(uint64_t operations) {
  LOOP EMIT(bench, INSTANT, "number", EXTRA(DebugArgInt64, DEBUG_ARG_INT64, "number", (int64_t)i));
}

static void number_and_text(uint64_t operations) {
  LOOP EMIT(bench, INSTANT, "number and text", EXTRA(DebugArgInt64, DEBUG_ARG_INT64, "number", (int64_t)i),
            EXTRA(DebugArgString, DEBUG_ARG_STRING, "text", TEXT));
}

static void annotated_pair(uint64_t operations) {
  LOOP {
    EMIT(bench, SLICE_BEGIN, "annotated slice", EXTRA(DebugArgInt64, DEBUG_ARG_INT64, "number", (int64_t)i),
         EXTRA(DebugArgString, DEBUG_ARG_STRING, "text", TEXT));
    EMIT(bench, SLICE_END, NULL);
  }
}

static void six_annotations(uint64_t operations) {
  LOOP EMIT(bench, INSTANT, "six", EXTRA(DebugArgBool, DEBUG_ARG_BOOL, "bool", true),
            EXTRA(DebugArgUint64, DEBUG_ARG_UINT64, "unsigned", i),
            EXTRA(DebugArgInt64, DEBUG_ARG_INT64, "signed", -(int64_t)i),
            EXTRA(DebugArgDouble, DEBUG_ARG_DOUBLE, "double", (double)i),
            EXTRA(DebugArgString, DEBUG_ARG_STRING, "string", TEXT),
            EXTRA(DebugArgPointer, DEBUG_ARG_POINTER, "pointer", (uintptr_t)&depth));
}

static void named_track(uint64_t operations) {
  LOOP EMIT(bench, INSTANT, "on a track",
            EXTRA(NamedTrack, NAMED_TRACK, "track", i % 4, perfetto_te_process_track_uuid, false));
}

static void flow(uint64_t operations) {
  LOOP EMIT(bench, INSTANT, "flow", EXTRA(Flow, FLOW, i ^ perfetto_te_process_track_uuid));
}

/* A source location. */
static void proto_fields(uint64_t operations) {
  LOOP {
    struct PerfettoTeHlProtoField* const inner[] = {FIELD(Cstr, CSTR, 2, "a/file.c"), FIELD(Cstr, CSTR, 3, "function"),
                                                    FIELD(VarInt, VARINT, 4, i), NULL};
    struct PerfettoTeHlProtoField* const outer[] = {FIELD(Nested, NESTED, 33, inner), NULL};
    EMIT(bench, INSTANT, "proto fields", EXTRA(ProtoFields, PROTO_FIELDS, outer));
  }
}

static void dynamic_name(uint64_t operations) {
  char name[] = "name 0";
  LOOP {
    name[5] = (char)('0' + i % 10);
    EMIT(bench, INSTANT, name, &(struct PerfettoTeHlExtra){PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN});
  }
}

static void dynamic_category(uint64_t operations) {
  LOOP {
    if (is_on(perfetto_te_any_categories_enabled)) {
      struct PerfettoTeHlExtra* const extras[] = {EXTRA(DynamicCategory, DYNAMIC_CATEGORY, &bench_desc), NULL};
      PerfettoTeHlEmitImpl(perfetto_te_any_categories, PERFETTO_TE_TYPE_INSTANT, "dynamic category", extras);
    }
  }
}

/* Returns the number of a string in a table of the sequence. Announces it in the packet if it is
 * new. */
static inline uint64_t intern(struct PerfettoTeLlImplIterator* it, struct packet* p, int32_t table, const char* text,
                              const void* key, size_t size) {
  bool seen;
  uint64_t iid = PerfettoTeLlImplIntern(it->incr, table, key, size, &seen);
  if (!seen) {
    nested_begin(p, 12 /* interned_data */);
    nested_begin(p, (uint32_t)table);
    put_number(p, 1 /* iid */, iid);
    put_text(p, 2 /* name */, text);
    nested_end(p);
    nested_end(p);
  }
  return iid;
}

static void low_level(uint64_t operations) {
  LOOP {
    if (!is_on(bench.enabled)) continue;
    struct PerfettoTeTimestamp now = PerfettoTeGetTimestamp();
    for (struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(bench.impl, now); it.ds.tracer != NULL;
         PerfettoTeLlImplNext(bench.impl, now, &it)) {
      struct packet p;
      packet_begin(&p, it.ds.tracer);
      put_number(&p, 8 /* timestamp */, now.value);
      put_number(&p, 58 /* timestamp_clock_id */, now.clock_id);
      put_number(&p, 13 /* sequence_flags */, 2);
      uint64_t category = PerfettoTeCategoryImplGetIid(bench.impl);
      intern(&it, &p, 1 /* event_categories */, "bench", &category, sizeof category);
      uint64_t name = intern(&it, &p, 2 /* event_names */, "low level", "low level", strlen("low level"));
      nested_begin(&p, 11 /* track_event */);
      put_number(&p, 9 /* type */, PERFETTO_TE_TYPE_INSTANT);
      put_number(&p, 3 /* category_iids */, category);
      put_number(&p, 10 /* name_iid */, name);
      nested_end(&p);
      packet_end(&p);
    }
  }
}

static void data_source(uint64_t operations) {
  LOOP {
    if (!is_on(bench_source.enabled)) continue;
    for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(bench_source.impl); it.tracer != NULL;
         PerfettoDsImplTraceIterateNext(bench_source.impl, &it)) {
      struct PerfettoDsTimestamp now = PerfettoDsGetTimestamp();
      struct packet p;
      packet_begin(&p, it.tracer);
      put_number(&p, 8 /* timestamp */, now.value);
      put_number(&p, 58 /* timestamp_clock_id */, now.clock_id);
      nested_begin(&p, 11 /* track_event: these are counted */);
      put_number(&p, 9 /* type */, PERFETTO_TE_TYPE_INSTANT);
      put_text(&p, 23 /* name */, TEXT);
      nested_end(&p);
      packet_end(&p);
    }
  }
}

static const struct bench_case CASES[] = {
    {"disabled trace point", disabled, 20000, 0},
    {"disabled trace point with two annotations", disabled_annotated, 20000, 0},
    {"disabled data source", disabled_source, 20000, 0},
    {"disabled trace point, called", disabled_called, 20000, 0},
    {"disabled data source, called", disabled_source_called, 20000, 0},
    {"instant", instant, 800, 1},
    {"slice pair", slice_pair, 400, 2},
    {"counter", counter, 800, 1},
    {"low level by hand", low_level, 500, 1},
    {"data source packet", data_source, 500, 1},
    {"instant with int64", one_number, 600, 1},
    {"instant with int64 and 15-byte string", number_and_text, 400, 1},
    {"slice pair with int64 and 15-byte string", annotated_pair, 300, 2},
    {"instant with six annotations", six_annotations, 250, 1},
    {"instant on a named track", named_track, 600, 1},
    {"instant with flow", flow, 600, 1},
    {"instant with proto fields", proto_fields, 400, 1},
    {"instant with dynamic name", dynamic_name, 600, 1},
    {"instant of a dynamic category", dynamic_category, 600, 1},
};

/* A counter below the process. */
static void describe_depth(void) {
  struct config descriptor = {{0}, 0};
  depth.uuid = perfetto_te_process_track_uuid ^ 0x1234567;
  config_number(&descriptor, 1 /* uuid */, depth.uuid);
  config_number(&descriptor, 5 /* parent_uuid */, perfetto_te_process_track_uuid);
  config_text(&descriptor, 2 /* name */, "depth");
  config_text(&descriptor, 8 /* counter */, "");
  depth.descriptor = malloc(descriptor.len);
  memcpy(depth.descriptor, descriptor.at, descriptor.len);
  depth.descriptor_size = descriptor.len;
}

static struct category make_category(struct PerfettoTeCategoryDescriptor* desc) {
  struct PerfettoTeCategoryImpl* impl = PerfettoTeCategoryImplCreate(desc);
  return (struct category){PerfettoTeCategoryImplGetEnabled(impl), impl};
}

static struct source make_source(const char* name) {
  struct config descriptor = {{0}, 0};
  struct source source = {NULL, PerfettoDsImplCreate()};
  config_text(&descriptor, 1 /* name */, name);
  CHECK(PerfettoDsImplRegister(source.impl, &source.enabled, descriptor.at, descriptor.len));
  return source;
}

static void begin(void) {
  struct PerfettoProducerBackendInitArgs* args = PerfettoProducerBackendInitArgsCreate();
  PerfettoProducerInProcessInit(args);
  PerfettoProducerBackendInitArgsDestroy(args);
  PerfettoTeInit();
  bench = make_category(&bench_desc);
  off = make_category(&off_desc);
  PerfettoTePublishCategories();
  bench_source = make_source("bench");
  off_source = make_source("off");
  describe_depth();
}

/* Hands over the events of this thread. */
static uint64_t flush(void) {
  EMIT(bench, INSTANT, "last", &(struct PerfettoTeHlExtra){PERFETTO_TE_HL_EXTRA_TYPE_FLUSH});
  usleep(200000);
  return 1;
}

int main(int argc, char** argv) {
  CHECK(argc == 4 || argc == 6);
  begin();
  struct PerfettoTracingSessionImpl* session = session_start();
  CHECK(is_on(bench.enabled) && is_on(bench_source.enabled) && !is_on(off.enabled) && !is_on(off_source.enabled));
  uint64_t events = 0;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    if (argc == 6) {
      if (strcmp(CASES[i].name, argv[4]) != 0) continue;
      CASES[i].run(strtoull(argv[5], NULL, 10));
      continue;
    }
    for (int threads = 1; threads <= MAX_THREADS; threads++) {
      events += bench_measure(&CASES[i], (struct bench_plan){atoi(argv[2]), atoi(argv[3]), threads});
    }
  }
  if (argc == 4) {
    events += flush();
    session_finish(session, argv[1]);
    printf("{\"events\": %llu}\n", (unsigned long long)events);
  }
  return 0;
}
