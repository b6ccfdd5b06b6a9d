/* An instance exists as long as the program holds its lock. */

#include "common.h"

static int context;
static _Atomic(bool) stop_called, released, destroyed;

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  (void)type, (void)instance, (void)config, (void)size, (void)user_arg, (void)args;
  return &context;
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx, (void)args;
  stop_called = true;
}

static void on_destroy(struct PerfettoDsImpl* type, void* user_arg, void* ctx) {
  (void)type, (void)user_arg;
  CHECK(ctx == &context && released);
  destroyed = true;
}

static void* stop(void* session) {
  PerfettoTracingSessionStopBlocking((struct PerfettoTracingSessionImpl*)session);
  CHECK(released);
  return NULL;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct PerfettoDsImpl *ds = PerfettoDsImplCreate(), *plain = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnDestroyCallback(ds, on_destroy);
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.lock");
  register_as(plain, "c.plain");
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == NULL);
  struct bytes config = config_for("c.lock", NULL), of_plain = config_for("c.plain", NULL);
  struct PerfettoTracingSessionImpl *session = start(&config), *other = start(&of_plain);

  /* An instance without a context cannot be locked. */
  CHECK(PerfettoDsImplGetInstanceLocked(plain, 0) == NULL);
  PerfettoTracingSessionStopBlocking(other);
  PerfettoTracingSessionDestroy(other);
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 1) == NULL && PerfettoDsImplGetInstanceLocked(ds, 7) == NULL);

  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  CHECK(PerfettoDsImplGetInstanceLocked(ds, it.inst_id) == &context);
  /* A thread may lock it several times. */
  CHECK(PerfettoDsImplGetInstanceLocked(ds, it.inst_id) == &context);
  PerfettoDsImplReleaseInstanceLocked(ds, it.inst_id);
  PerfettoDsImplTraceIterateBreak(ds, &it);

  pthread_t stopping = spawn(stop, session);
  WAIT_FOR(stop_called);
  usleep(20000);
  CHECK(!destroyed);
  released = true;
  PerfettoDsImplReleaseInstanceLocked(ds, 0);
  join(stopping);
  WAIT_FOR(destroyed);
  CHECK(!*enabled && PerfettoDsImplGetInstanceLocked(ds, 0) == NULL);
  PerfettoTracingSessionDestroy(session);
  return 0;
}
