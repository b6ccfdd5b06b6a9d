/* Forks in callbacks: on the library's thread, and on a program's thread in the callback of a
 * category. */

#include "sound.h"

static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static struct PerfettoTeCategoryImpl* cat;
static int forks;

static void fork_and_look(void) {
  pid_t pid = fork_in_time();
  if (!pid) {
    CHECK(!*enabled);
    PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "of the child", no_extras);
    CHECK(!*PerfettoTeCategoryImplGetEnabled(cat));
    CHECK(PerfettoDsImplTraceIterateBegin(ds).tracer == NULL);
    struct PerfettoTeCategoryImpl* another = PerfettoTeCategoryImplCreate(NULL);
    PerfettoTeCategoryImplDestroy(another);
    exit(0);
  }
  wait_for_child(pid);
  forks++;
}

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  (void)type, (void)instance, (void)config, (void)size, (void)user_arg, (void)args;
  fork_and_look();
  return NULL;
}

static void on_start(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnStartArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx, (void)args;
  fork_and_look();
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx;
  struct PerfettoDsAsyncStopper* stopper = PerfettoDsOnStopArgsPostpone(args);
  pid_t pid = fork_in_time();
  if (!pid) {
    PerfettoDsStopDone(stopper);
    exit(0);
  }
  wait_for_child(pid);
  PerfettoDsStopDone(stopper);
  forks++;
}

static void on_destroy(struct PerfettoDsImpl* type, void* user_arg, void* ctx) {
  (void)type, (void)user_arg, (void)ctx;
  fork_and_look();
}

static void on_category(struct PerfettoTeCategoryImpl* category, PerfettoDsInstanceIndex instance, bool created,
                        bool global_state_changed, void* user_arg) {
  (void)category, (void)instance, (void)created, (void)global_state_changed, (void)user_arg;
  fork_and_look();
}

int main(void) {
  init();
  PerfettoTeInit();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStartCallback(ds, on_start);
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnDestroyCallback(ds, on_destroy);
  CHECK(register_as(ds, "sound.fork", &enabled));
  static struct PerfettoTeCategoryDescriptor desc = {"sound", NULL, NULL, 0};
  cat = PerfettoTeCategoryImplCreate(&desc);
  struct PerfettoTracingSessionImpl* events = start("track_event");
  PerfettoTeCategoryImplSetCallback(cat, on_category, NULL);
  CHECK(forks == 1);
  struct PerfettoTracingSessionImpl* packets = start("sound.fork");
  CHECK(forks == 3);
  PerfettoTracingSessionStopBlocking(packets);
  PerfettoTracingSessionDestroy(packets);
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "of the parent", no_extras);
  struct trace trace = stop_and_read(events);
  CHECK(has(&trace, "of the parent") && !has(&trace, "of the child"));
  CHECK(forks == 6);
  return 0;
}
