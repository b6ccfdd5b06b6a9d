/* Threads use objects that other threads create and destroy. */

#include "sound.h"

enum { CATEGORIES = 4, ALIVE = 0x600d, SESSIONS = 60 };

static _Atomic(bool) over;
static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static struct PerfettoTeCategoryDescriptor descs[CATEGORIES] = {{"one", NULL, NULL, 0},
                                                                {"two", "the second", NULL, 0},
                                                                {"three", NULL, NULL, 0},
                                                                {"four", NULL, NULL, 0}};
static _Atomic(struct PerfettoTeCategoryImpl*) cats[CATEGORIES];
static _Atomic(int) set_up, destroyed, locked, objects, flushed, told;
static _Atomic(struct PerfettoDsAsyncStopper*) stopper;
static _Atomic(struct PerfettoDsAsyncFlusher*) flusher;

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  (void)instance, (void)config, (void)size, (void)args;
  CHECK(type == ds && user_arg == &set_up);
  int* context = malloc(sizeof *context);
  *context = ALIVE;
  set_up++;
  return context;
}

static void on_start(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnStartArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)args;
  CHECK(*(int*)ctx == ALIVE && *enabled);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  while (it.tracer) {
    write_packet(it.tracer, "of the library's thread");
    PerfettoDsImplTraceIterateNext(ds, &it);
  }
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  (void)type, (void)user_arg;
  CHECK(*(int*)ctx == ALIVE);
  if (instance & 1) return;
  struct PerfettoDsAsyncStopper* mine = PerfettoDsOnStopArgsPostpone(args);
  mine = atomic_exchange(&stopper, mine);
  if (mine) PerfettoDsStopDone(mine);
}

static void on_flush(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnFlushArgs* args) {
  (void)type, (void)instance, (void)user_arg;
  CHECK(*(int*)ctx == ALIVE);
  struct PerfettoDsAsyncFlusher* mine = atomic_exchange(&flusher, PerfettoDsOnFlushArgsPostpone(args));
  if (mine) PerfettoDsFlushDone(mine);
}

static void on_destroy(struct PerfettoDsImpl* type, void* user_arg, void* ctx) {
  (void)type, (void)user_arg;
  CHECK(*(int*)ctx == ALIVE);
  *(int*)ctx = 0;
  free(ctx);
  destroyed++;
}

static __thread int object_thread;

static void* on_create(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance,
                       struct PerfettoDsTracerImpl* tracer, void* user_arg) {
  (void)type, (void)user_arg;
  /* It is not created yet. */
  CHECK(PerfettoDsImplGetCustomTls(ds, tracer, instance) == NULL || objects > 0);
  CHECK(PerfettoDsImplTraceIterateBegin(ds).tracer == NULL);
  objects++;
  int** object = malloc(sizeof *object);
  *object = &object_thread;
  return object;
}

/* Only the thread that made it deletes it. */
static void on_delete(void* object) {
  CHECK(*(int**)object == &object_thread);
  free(object);
  objects--;
}

static bool on_clear(void* object, void* user_arg) {
  CHECK(*(int**)object == &object_thread && user_arg == &set_up);
  return rand() & 1;
}

static void on_flushed(void* user_arg) { ++*(_Atomic(int)*)user_arg; }

static void* packets(void* none) {
  while (!over) {
    struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
    for (int i = 0; it.tracer; i++) {
      CHECK(*(int**)PerfettoDsImplGetCustomTls(ds, it.tracer, it.inst_id) == &object_thread);
      CHECK(*(int**)PerfettoDsImplGetIncrementalState(ds, it.tracer, it.inst_id) == &object_thread);
      write_packet(it.tracer, "packet");
      if (i % 8 == 0) PerfettoDsTracerImplFlush(it.tracer, on_flushed, &flushed);
      PerfettoDsImplTraceIterateNext(ds, &it);
    }
    usleep(50);
  }
  return none;
}

static void* locks(void* none) {
  while (!over) {
    for (uint32_t instance = 0; instance < 8; instance++) {
      int* context = PerfettoDsImplGetInstanceLocked(ds, instance);
      if (!context) continue;
      /* Not called if the stop was completed meanwhile. */
      int* again = PerfettoDsImplGetInstanceLocked(ds, instance);
      CHECK(again == context || !again);
      CHECK(*context == ALIVE);
      usleep(100);
      if (again) PerfettoDsImplReleaseInstanceLocked(ds, instance);
      CHECK(*context == ALIVE);
      PerfettoDsImplReleaseInstanceLocked(ds, instance);
      locked++;
    }
    usleep(50);
  }
  return none;
}

static void* completes(void* none) {
  while (!over || stopper || flusher) {
    struct PerfettoDsAsyncStopper* stop = atomic_exchange(&stopper, NULL);
    if (stop) PerfettoDsStopDone(stop);
    struct PerfettoDsAsyncFlusher* flush = atomic_exchange(&flusher, NULL);
    if (flush) PerfettoDsFlushDone(flush);
    usleep(200);
  }
  return none;
}

static void on_category(struct PerfettoTeCategoryImpl* cat, PerfettoDsInstanceIndex instance, bool created,
                        bool global_state_changed, void* user_arg) {
  (void)global_state_changed, (void)instance, (void)created;
  CHECK(user_arg == &told);
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "from the callback", no_extras);
  told++;
}

/* The only thread that creates and destroys them. Other threads use them meanwhile. */
static void* categories(void* none) {
  for (unsigned i = 0; !over; i++) {
    unsigned n = i % CATEGORIES;
    struct PerfettoTeCategoryImpl* new = PerfettoTeCategoryImplCreate(&descs[n]);
    if (i & 4) PerfettoTeCategoryImplSetCallback(new, on_category, &told);
    PerfettoTePublishCategories();
    struct PerfettoTeCategoryImpl* old = atomic_exchange(&cats[n], new);
    if (old) PerfettoTeCategoryImplDestroy(old);
    usleep(200);
  }
  return none;
}

static void* events(void* none) {
  char name[16];
  for (unsigned i = 0; !over; i++) {
    struct PerfettoTeCategoryImpl* cat = cats[i % CATEGORIES];
    snprintf(name, sizeof name, "%u", i % 2000);
    struct bytes descriptor = {{0}, 0};
    put_number(&descriptor, 1, i % 100 + 1);
    uint8_t* at = malloc(descriptor.len);
    memcpy(at, descriptor.at, descriptor.len);
    struct PerfettoTeRegisteredTrackImpl track = {at, descriptor.len, i % 100 + 1};
    struct PerfettoTeHlExtraRegisteredTrack on = {{PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK}, &track};
    struct PerfettoTeCategoryDescriptor desc = {name, NULL, NULL, 0};
    struct PerfettoTeHlExtraDynamicCategory dynamic = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, &desc};
    struct PerfettoTeHlExtra *extras[] = {&on.header, NULL}, *dynamics[] = {&dynamic.header, NULL};
    PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, name, extras);
    PerfettoTeHlEmitImpl(perfetto_te_any_categories, PERFETTO_TE_TYPE_INSTANT, name, dynamics);
    free(at);
    struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(cat, PerfettoTeGetTimestamp());
    while (it.ds.tracer) {
      bool seen;
      PerfettoTeLlImplIntern(it.incr, 2, name, strlen(name), &seen);
      PerfettoTeLlImplNext(cat, PerfettoTeGetTimestamp(), &it);
    }
  }
  return none;
}

/* A short-lived thread, which ends with a locked instance and inside a packet. */
static void* ends(void* none) {
  PerfettoDsImplGetInstanceLocked(ds, 0);
  PerfettoDsImplGetInstanceLocked(ds, 1);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  if (it.tracer) PerfettoDsTracerImplPacketBegin(it.tracer);
  return none;
}

static void on_stopped(struct PerfettoTracingSessionImpl* session, void* user_arg) {
  CHECK(session);
  *(_Atomic(bool)*)user_arg = true;
}

static void sessions(void) {
  for (int i = 0; i < SESSIONS; i++) {
    struct PerfettoTracingSessionImpl* te = start("track_event");
    struct PerfettoTracingSessionImpl* one = start("sound.races");
    struct PerfettoTracingSessionImpl* two = start("sound.races");
    CHECK(*enabled);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, ends, NULL));
    CHECK(PerfettoTracingSessionFlushBlocking(one, 0));
    static _Atomic(bool) stopped;
    stopped = false;
    PerfettoTracingSessionSetStopCb(one, on_stopped, (void*)&stopped);
    switch (i % 4) {
      case 0:
        PerfettoTracingSessionStopBlocking(two);
        CHECK(*enabled);
        break;
      case 1: {
        struct trace trace = stop_and_read(te);
        CHECK(i < 4 || has(&trace, "one"));
        free(trace.at);
        te = NULL;
        break;
      }
      case 2:
        PerfettoTracingSessionStopAsync(two);
        break;
    }
    CHECK(!pthread_join(thread, NULL));
    PerfettoTracingSessionStopAsync(one);
    while (!stopped) usleep(100);
    /* The destruction ends it, unless it has ended before. */
    PerfettoTracingSessionDestroy(two);
    PerfettoTracingSessionDestroy(one);
    PerfettoTracingSessionDestroy(te);
  }
}

int main(void) {
  init();
  PerfettoTeInit();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStartCallback(ds, on_start);
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  PerfettoDsSetOnDestroyCallback(ds, on_destroy);
  PerfettoDsSetOnCreateTls(ds, on_create);
  PerfettoDsSetOnDeleteTls(ds, on_delete);
  PerfettoDsSetOnCreateIncr(ds, on_create);
  PerfettoDsSetOnDeleteIncr(ds, on_delete);
  PerfettoDsSetOnClearIncr(ds, on_clear);
  PerfettoDsSetCbUserArg(ds, &set_up);
  CHECK(register_as(ds, "sound.races", &enabled));
  for (int n = 0; n < CATEGORIES; n++) cats[n] = PerfettoTeCategoryImplCreate(&descs[n]);
  void* (*all[])(void*) = {packets, packets, locks, locks, completes, categories, events, events};
  enum { THREADS = sizeof all / sizeof *all };
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, all[i], NULL));
  sessions();
  /* A session that was destroyed ends a little later. */
  for (int i = 0; i < 5000 && (*enabled || destroyed != set_up); i++) usleep(1000);
  CHECK(!*enabled && destroyed == set_up);
  over = true;
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
  /* The library's thread deletes its objects only when it traces again. */
  CHECK(objects <= 8 && set_up >= 2 * SESSIONS && locked > 0 && flushed > 0 && told > 0);
  return 0;
}
