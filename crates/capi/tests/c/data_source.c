/* A data source from registration to the end; the trace goes to the file of the first argument. */

#define _GNU_SOURCE

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common.h"

static char order[64];
static int user;
static struct { int stops; } context;
static struct PerfettoDsAsyncStopper* stopper;
static struct PerfettoDsAsyncFlusher* flusher;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int alive_tls, alive_incr, created_incr, kept_incr;
static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled = &perfetto_atomic_false;

static void note(char what) { order[strlen(order)] = what; }

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && args == NULL);
  struct PerfettoPbDecoder d = {(const uint8_t*)config, (const uint8_t*)config + size};
  bool has_name = false;
  for (;;) {
    struct PerfettoPbDecoderField f = PerfettoPbDecoderParseField(&d);
    CHECK(f.status != PERFETTO_PB_DECODER_ERROR);
    if (f.status == PERFETTO_PB_DECODER_DONE) break;
    if (f.id == 1) has_name = f.value.delimited.len == 9 && memcmp(f.value.delimited.start, "c.example", 9) == 0;
  }
  CHECK(has_name);
  note('u');
  return &context;
}

static void on_start(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnStartArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && ctx == &context && args == NULL && *enabled);
  note('s');
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && ctx == &context);
  pthread_mutex_lock(&lock);
  note('e');
  stopper = PerfettoDsOnStopArgsPostpone(args);
  CHECK(stopper);
  pthread_mutex_unlock(&lock);
}

static void on_destroy(struct PerfettoDsImpl* type, void* user_arg, void* ctx) {
  CHECK(type == ds && user_arg == &user && ctx == &context);
  note('d');
}

static void on_flush(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnFlushArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && ctx == &context);
  note('f');
  flusher = PerfettoDsOnFlushArgsPostpone(args);
  PerfettoDsFlushDone(flusher);
}

static void* create_tls(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer,
                        void* user_arg) {
  CHECK(type == ds && instance == 0 && tracer && user_arg == &user);
  CHECK(PerfettoDsImplTraceIterateBegin(ds).tracer == NULL);
  alive_tls++;
  return malloc(1);
}

static void delete_tls(void* obj) {
  alive_tls--;
  free(obj);
}

static void* create_incr(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer,
                         void* user_arg) {
  CHECK(type == ds && instance == 0 && tracer && user_arg == &user);
  alive_incr++;
  created_incr++;
  return malloc(1);
}

static void delete_incr(void* obj) {
  alive_incr--;
  free(obj);
}

static bool clear_incr(void* obj, void* user_arg) {
  CHECK(obj && user_arg == &user);
  kept_incr++;
  return true;
}

/* A length that is filled in later, as the inline layer of headers does it. */
struct message {
  uint8_t* size_field;
  size_t begin;
};

static size_t written(const struct PerfettoStreamWriter* w) { return w->written_previously + (size_t)(w->write_ptr - w->begin); }

static struct message begin_message(struct PerfettoStreamWriter* w, uint32_t field) {
  struct bytes tag = {{0}, 0};
  put_varint(&tag, field << 3 | 2);
  sw_put(w, &tag);
  if (w->end - w->write_ptr < 4)
    PerfettoStreamWriterReserveBytesSlowpath(w, 4);
  else
    w->write_ptr += 4;
  struct message m = {w->write_ptr - 4, written(w)};
  return m;
}

static void end_message(struct PerfettoStreamWriter* w, struct message* m) {
  if (!m->size_field) return;
  size_t size = written(w) - m->begin;
  for (int i = 0; i < 4; i++) m->size_field[i] = (uint8_t)((size >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
}

/* Before the chunk may change: lengths in it go elsewhere. Innermost first. */
static void leave_chunk(struct PerfettoStreamWriter* w, struct message** open, int depth) {
  for (int i = depth - 1; i >= 0; i--) {
    if (!open[i]->size_field || open[i]->size_field < w->begin || open[i]->size_field >= w->end) break;
    open[i]->size_field = PerfettoStreamWriterAnnotatePatch(w, open[i]->size_field);
  }
}

/* TracePacket.for_testing = 900 { str = 1, payload = 5 { str = 1 repeated } } */
static void write_packet(struct PerfettoDsTracerImpl* tracer, const char* text, int pieces, size_t piece_size) {
  struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(tracer);
  CHECK(w.write_ptr >= w.begin && w.end >= w.write_ptr);
  struct message event = begin_message(&w, 900);
  struct bytes str = {{0}, 0};
  put_text(&str, 1, text);
  sw_put(&w, &str);
  struct message payload = begin_message(&w, 5);
  struct message* open[] = {&event, &payload};
  char* piece = malloc(piece_size);
  for (int i = 0; i < pieces; i++) {
    struct bytes head = {{0}, 0};
    memset(piece, 'a' + i % 26, piece_size);
    put_varint(&head, 1 << 3 | 2);
    put_varint(&head, piece_size);
    leave_chunk(&w, open, (size_t)(w.end - w.write_ptr) < head.len ? 2 : 0);
    sw_put(&w, &head);
    leave_chunk(&w, open, (size_t)(w.end - w.write_ptr) < piece_size ? 2 : 0);
    sw_bytes(&w, piece, piece_size);
  }
  free(piece);
  end_message(&w, &payload);
  end_message(&w, &event);
  PerfettoDsTracerImplPacketEnd(tracer, &w);
}

static int trace(const char* text, int pieces, size_t piece_size) {
  int turns = 0;
  if (!*enabled) return 0;
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    turns++;
    CHECK(PerfettoDsImplGetCustomTls(ds, it.tracer, it.inst_id));
    CHECK(PerfettoDsImplGetIncrementalState(ds, it.tracer, it.inst_id));
    CHECK(PerfettoDsImplTraceIterateBegin(ds).tracer == NULL);
    write_packet(it.tracer, text, pieces, piece_size);
    CHECK(PerfettoDsTracerImplGetDropCount(it.tracer) == 0);
  }
  return turns;
}

static void flushed(void* user_arg) { *(volatile int*)user_arg = 1; }

static void* other_thread(void* arg) {
  (void)arg;
  CHECK(trace("other thread", 1, 10) == 1 && alive_tls == 2 && alive_incr == 2);
  return NULL;
}

static void* finish_stop(void* arg) {
  (void)arg;
  for (;;) {
    pthread_mutex_lock(&lock);
    struct PerfettoDsAsyncStopper* now = stopper;
    pthread_mutex_unlock(&lock);
    if (now) {
      usleep(20000);
      /* While it is put off, the instance records. */
      CHECK(trace("while stopping", 1, 10) == 1);
      struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
      PerfettoDsTracerImplFlush(it.tracer, NULL, NULL);
      PerfettoDsImplTraceIterateBreak(ds, &it);
      PerfettoDsStopDone(now);
      return NULL;
    }
    usleep(1000);
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  init_in_process();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStartCallback(ds, on_start);
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnDestroyCallback(ds, on_destroy);
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  PerfettoDsSetOnCreateTls(ds, create_tls);
  PerfettoDsSetOnDeleteTls(ds, delete_tls);
  PerfettoDsSetOnCreateIncr(ds, create_incr);
  PerfettoDsSetOnDeleteIncr(ds, delete_incr);
  PerfettoDsSetOnClearIncr(ds, clear_incr);
  PerfettoDsSetCbUserArg(ds, &user);
  struct bytes descriptor = {{0}, 0};
  put_text(&descriptor, 1, "c.example");
  CHECK(PerfettoDsImplRegister(ds, &enabled, descriptor.at, descriptor.len));
  CHECK(enabled != &perfetto_atomic_false && !*enabled);
  PERFETTO_ATOMIC(bool)* same = NULL;
  CHECK(PerfettoDsImplRegister(ds, &same, descriptor.at, descriptor.len) && same == enabled);
  CHECK(!PerfettoDsSetBufferExhaustedPolicy(ds, 0));
  CHECK(trace("before", 1, 1) == 0);

  struct bytes config = config_for("c.example", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  CHECK(*enabled && strcmp(order, "us") == 0);
  CHECK(trace("small", 1, 5) == 1);
  CHECK(alive_tls == 1 && alive_incr == 1);
  CHECK(trace("large", 40, 1000) == 1);
  CHECK(trace("one large piece", 1, 30000) == 1);
  CHECK(trace("behind", 2, 5) == 1);

  /* Leaving early. */
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  CHECK(trace("after break", 1, 5) == 1);

  /* A packet that is not ended is not there. */
  it = PerfettoDsImplTraceIterateBegin(ds);
  struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(it.tracer);
  sw_bytes(&w, "\x40\x01", 2);
  PerfettoDsImplTraceIterateNext(ds, &it);
  CHECK(it.tracer == NULL);

  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(alive_tls == 1 && alive_incr == 1);

  /* The instance is there as long as it is locked. */
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == &context);
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == &context);
  PerfettoDsImplReleaseInstanceLocked(ds, 0);
  PerfettoDsImplReleaseInstanceLocked(ds, 0);
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 1) == NULL);

  static volatile int was_flushed;
  it = PerfettoDsImplTraceIterateBegin(ds);
  PerfettoDsTracerImplFlush(it.tracer, flushed, (void*)&was_flushed);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  CHECK(PerfettoTracingSessionFlushBlocking(session, 0));
  while (!was_flushed) usleep(1000);
  CHECK(flusher && strcmp(order, "usf") == 0);

  CHECK(pthread_create(&thread, NULL, finish_stop, NULL) == 0);
  PerfettoTracingSessionStopBlocking(session);
  CHECK(pthread_join(thread, NULL) == 0);
  /* The service asks for a flush before the stop. */
  CHECK(strncmp(order, "usf", 3) == 0 && strcmp(order + strlen(order) - 2, "ed") == 0);
  CHECK(!*enabled && PerfettoDsImplGetInstanceLocked(ds, 0) == NULL);
  CHECK(trace("after the stop", 1, 5) == 0);
  finish(session, argv[1]);
  struct PerfettoDsTimestamp first = PerfettoDsGetTimestamp(), later = PerfettoDsGetTimestamp();
  CHECK(first.clock_id == PerfettoDsGetDefaultClockId() && first.value && later.value >= first.value);
  CHECK(PerfettoGetThreadIdImpl() == (int)syscall(SYS_gettid));
  return 0;
}
