/* An instance whose stop is done has no more turns, although a thread inside a turn still holds its
 * lock. */

#include "common.h"

static int context;
static bool postpones;
static struct PerfettoDsImpl* ds;
static _Atomic(struct PerfettoDsAsyncStopper*) stopper;
static _Atomic(bool) is_locked, may_release, released, stop_called, destroyed, has_returned;

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  (void)type, (void)instance, (void)config, (void)size, (void)user_arg, (void)args;
  return &context;
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx;
  if (postpones) {
    stopper = PerfettoDsOnStopArgsPostpone(args);
    CHECK(stopper);
  }
  stop_called = true;
}

static void on_destroy(struct PerfettoDsImpl* type, void* user_arg, void* ctx) {
  (void)type, (void)user_arg;
  CHECK(ctx == &context && released);
  destroyed = true;
}

/* Locks the instance inside a turn, and keeps both until it may continue. */
static void* hold(void* arg) {
  (void)arg;
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer && it.inst_id == 0);
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == &context);
  is_locked = true;
  WAIT_FOR(may_release);
  /* The instance ends: no thread can lock it again, not even this one. */
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == NULL);
  CHECK(!destroyed && !has_returned);
  released = true;
  PerfettoDsImplReleaseInstanceLocked(ds, 0);
  PerfettoDsImplTraceIterateNext(ds, &it);
  CHECK(!it.tracer);
  return NULL;
}

static void* stop(void* session) {
  PerfettoTracingSessionStopBlocking((struct PerfettoTracingSessionImpl*)session);
  CHECK(released);
  has_returned = true;
  return NULL;
}

static void* let_go(void* arg) {
  PerfettoDsStopDone((struct PerfettoDsAsyncStopper*)arg);
  return NULL;
}

static bool has_turns(void) { return trace_text(ds, "a turn") != 0; }

static void locked_while_it_stops(bool is_postponed) {
  postpones = is_postponed;
  is_locked = may_release = released = stop_called = destroyed = has_returned = false;
  struct bytes config = config_for("c.locked", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  WAIT_FOR(has_turns());
  pthread_t holding = spawn(hold, NULL);
  WAIT_FOR(is_locked);
  pthread_t stopping = spawn(stop, session);
  WAIT_FOR(stop_called);
  if (is_postponed) {
    CHECK(has_turns());
    on_a_thread(let_go, (void*)stopper);
    CHECK(!has_turns());
  } else {
    /* The library stops the instance shortly after the callback. */
    WAIT_FOR(!has_turns());
  }
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == NULL);
  usleep(20000);
  CHECK(!destroyed && !has_returned);
  may_release = true;
  join(holding);
  join(stopping);
  WAIT_FOR(destroyed);
  PerfettoTracingSessionDestroy(session);
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnDestroyCallback(ds, on_destroy);
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.locked");
  locked_while_it_stops(true);
  CHECK(!*enabled);
  locked_while_it_stops(false);
  CHECK(!*enabled);
  return 0;
}
