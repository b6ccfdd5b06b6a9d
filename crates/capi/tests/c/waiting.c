/* What waits for what: stops for locks, flushes for data sources, sessions for triggers; and writers for nobody. */

#include <pthread.h>
#include <unistd.h>

#include "common.h"

static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static int context;
static _Atomic(bool) in_flush, stop_called, destroyed, released, let_go;
static _Atomic(struct PerfettoDsAsyncFlusher*) flusher;

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  (void)type, (void)instance, (void)config, (void)size, (void)args;
  CHECK(user_arg == NULL);
  return &context;
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx, (void)args;
  stop_called = true;
}

static void on_destroy(struct PerfettoDsImpl* type, void* user_arg, void* ctx) {
  (void)type, (void)user_arg, (void)ctx;
  CHECK(released);
  destroyed = true;
}

static void on_flush(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnFlushArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx;
  if (let_go) return;
  flusher = PerfettoDsOnFlushArgsPostpone(args);
  in_flush = true;
}

static void flush_is_over(struct PerfettoTracingSessionImpl* session, bool success, void* user_arg) {
  (void)session;
  CHECK(success);
  *(_Atomic(bool)*)user_arg = true;
}

static void stop_is_over(struct PerfettoTracingSessionImpl* session, void* user_arg) {
  CHECK(session);
  *(_Atomic(bool)*)user_arg = true;
}

static void* stop_blocking(void* session) {
  PerfettoTracingSessionStopBlocking((struct PerfettoTracingSessionImpl*)session);
  CHECK(destroyed && released);
  return NULL;
}

static void wait_for(_Atomic(bool)* what) {
  while (!*what) usleep(1000);
}

static void a_flush_waits_for_the_data_source(struct PerfettoTracingSessionImpl* session) {
  static _Atomic(bool) over;
  PerfettoTracingSessionFlushAsync(session, 0, flush_is_over, (void*)&over);
  wait_for(&in_flush);
  usleep(20000);
  CHECK(!over);
  let_go = true;
  PerfettoDsFlushDone(flusher);
  wait_for(&over);
}

/* The service does not look while it is in a callback of the program; then the memory is full. */
static _Atomic(bool) blocked, go_on;

static void block(void* user_arg) {
  (void)user_arg;
  blocked = true;
  wait_for(&go_on);
}

static void what_does_not_fit_is_dropped_and_counted(void) {
  static char text[1000];
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  PerfettoDsTracerImplFlush(it.tracer, block, NULL);
  wait_for(&blocked);
  CHECK(PerfettoDsTracerImplGetDropCount(it.tracer) == 0);
  for (int i = 0; i < 2048; i++) {
    struct bytes head = {{0}, 0};
    put_varint(&head, 900 << 3 | 2);
    put_varint(&head, sizeof text + 3);
    put_varint(&head, 1 << 3 | 2);
    put_varint(&head, sizeof text);
    struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(it.tracer);
    sw_put(&w, &head);
    sw_bytes(&w, text, sizeof text);
    PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  }
  CHECK(PerfettoDsTracerImplGetDropCount(it.tracer) > 0);
  PerfettoDsImplTraceIterateNext(ds, &it);
  CHECK(!it.tracer);
  go_on = true;
}

static void a_stop_waits_for_the_lock(struct PerfettoTracingSessionImpl* session) {
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer && PerfettoDsImplGetInstanceLocked(ds, it.inst_id) == &context);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, stop_blocking, session) == 0);
  wait_for(&stop_called);
  usleep(20000);
  CHECK(!destroyed);
  released = true;
  PerfettoDsImplReleaseInstanceLocked(ds, 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(!*enabled && PerfettoDsImplGetInstanceLocked(ds, 0) == NULL);
}

static void a_session_waits_for_a_trigger(void) {
  struct bytes config = config_for("c.waiting", NULL), trigger = {{0}, 0}, triggers = {{0}, 0};
  put_text(&trigger, 1, "c_trigger");
  put_number(&trigger, 3, 1);
  put_number(&triggers, 1, 2); /* it stops the session */
  put_message(&triggers, 2, &trigger);
  put_number(&triggers, 3, 60000);
  put_message(&config, 17, &triggers);
  static _Atomic(bool) over;
  struct PerfettoTracingSessionImpl* session = PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionSetStopCb(session, stop_is_over, (void*)&over);
  PerfettoTracingSessionSetup(session, config.at, config.len);
  PerfettoTracingSessionStartBlocking(session);
  usleep(20000);
  CHECK(!over);
  const char* names[] = {"something else", "c_trigger", NULL};
  PerfettoProducerActivateTriggers(names, 60000);
  wait_for(&over);
  PerfettoTracingSessionDestroy(session);
}

static void the_number_of_types_is_bounded(void) {
  int registered = 1;
  for (int i = 0; i < 40; i++) {
    PERFETTO_ATOMIC(bool)* flag = NULL;
    struct bytes descriptor = {{0}, 0};
    put_text(&descriptor, 1, "c.many");
    if (PerfettoDsImplRegister(PerfettoDsImplCreate(), &flag, descriptor.at, descriptor.len)) {
      CHECK(flag && !*flag);
      registered++;
    }
  }
  CHECK(registered == 32);
}

int main(void) {
  PerfettoProducerInProcessInit(NULL);
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnDestroyCallback(ds, on_destroy);
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  struct bytes descriptor = {{0}, 0};
  put_text(&descriptor, 1, "c.waiting");
  CHECK(PerfettoDsImplRegister(ds, &enabled, descriptor.at, descriptor.len));
  struct bytes config = config_for("c.waiting", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  a_flush_waits_for_the_data_source(session);
  what_does_not_fit_is_dropped_and_counted();
  a_stop_waits_for_the_lock(session);
  PerfettoTracingSessionDestroy(session);
  a_session_waits_for_a_trigger();
  the_number_of_types_is_bounded();
  return 0;
}
