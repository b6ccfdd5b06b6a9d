/* The process ends in every possible way while sessions record and threads trace. */

#include "sound.h"

static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static struct PerfettoTeCategoryImpl* cat;
static struct PerfettoTracingSessionImpl* session;
static int mode, context;
static _Atomic(int) running;

static void trace_once(void) {
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "instant", no_extras);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  while (it.tracer) {
    write_packet(it.tracer, "packet");
    PerfettoDsImplTraceIterateNext(ds, &it);
  }
  struct PerfettoTeLlImplIterator ll = PerfettoTeLlImplBegin(cat, PerfettoTeGetTimestamp());
  if (ll.ds.tracer) {
    bool seen;
    PerfettoTeLlImplIntern(ll.incr, 2, "by hand", 7, &seen);
    write_packet(ll.ds.tracer, "by hand");
    PerfettoTeLlImplBreak(cat, &ll);
  }
}

static void* trace(void* none) {
  for (;; running++) trace_once();
  return none;
}

static void at_exit(void) { trace_once(); }

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  (void)type, (void)instance, (void)config, (void)size, (void)user_arg, (void)args;
  return &context;
}

static void on_start(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnStartArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx, (void)args;
  if (mode == 6) exit(0);
}

static void* on_create(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance,
                       struct PerfettoDsTracerImpl* tracer, void* user_arg) {
  (void)type, (void)instance, (void)tracer, (void)user_arg;
  return malloc(10);
}

static void on_delete(void* object) {
  free(object);
  trace_once(); /* is ignored */
}

/* Traces repeatedly while the state of the thread, and perhaps of the library, is destroyed. */
static pthread_key_t key;

static void at_end_of_thread(void* rounds) {
  trace_once();
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == NULL || (PerfettoDsImplReleaseInstanceLocked(ds, 0), true));
  struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(NULL);
  sw_byte(&w, 1);
  if ((uintptr_t)rounds > 1) pthread_setspecific(key, (char*)rounds - 1);
}

static void* short_lived(void* none) {
  pthread_setspecific(key, (void*)3);
  if (mode & 1) trace_once();
  CHECK(!*enabled || PerfettoDsImplGetInstanceLocked(ds, 0) == &context); /* never released */
  return none;
}

static void* exit_from_here(void* none) {
  exit(0);
  return none;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  mode = atoi(argv[1]);
  alarm(60);
  atexit(at_exit); /* called after the library's handler */
  CHECK(!pthread_key_create(&key, at_end_of_thread));
  ds = PerfettoDsImplCreate();
  init();
  PerfettoTeInit();
  atexit(at_exit); /* called before it */
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStartCallback(ds, on_start);
  PerfettoDsSetOnCreateTls(ds, on_create);
  PerfettoDsSetOnDeleteTls(ds, on_delete);
  PerfettoDsSetOnCreateIncr(ds, on_create);
  PerfettoDsSetOnDeleteIncr(ds, on_delete);
  CHECK(register_as(ds, "sound.ends", &enabled));
  static struct PerfettoTeCategoryDescriptor desc = {"sound", NULL, NULL, 0};
  cat = PerfettoTeCategoryImplCreate(&desc);
  session = start("track_event");
  struct PerfettoTracingSessionImpl* another = start("sound.ends");
  (void)another;

  pthread_t threads[3];
  for (int i = 0; i < 20; i++) {
    CHECK(!pthread_create(&threads[0], NULL, short_lived, NULL));
    CHECK(!pthread_join(threads[0], NULL));
  }
  for (int i = 0; i < 3; i++) CHECK(!pthread_create(&threads[i], NULL, trace, NULL));
  while (running < 100) usleep(100);
  struct PerfettoDsImplTracerIterator it;
  switch (mode) {
    case 1:
      exit(0);
    case 2:
      CHECK(!pthread_create(&threads[0], NULL, exit_from_here, NULL));
      pthread_exit(NULL);
    case 3:
      quick_exit(0);
    case 4:
      it = PerfettoDsImplTraceIterateBegin(ds);
      CHECK(it.tracer);
      PerfettoDsTracerImplPacketBegin(it.tracer);
      exit(0);
    case 5:
      CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == &context);
      exit(0);
    case 7:
      PerfettoTracingSessionDestroy(another);
      PerfettoTracingSessionStopAsync(session);
      exit(0);
  }
  return 0;
}
