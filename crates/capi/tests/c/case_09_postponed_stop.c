/* A stop that the data source postpones. */

#include "common.h"

static struct PerfettoDsImpl* ds;
static _Atomic(struct PerfettoDsAsyncStopper*) stopper;
static _Atomic(bool) has_returned, is_done;

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  CHECK(type == ds && instance == 0 && !user_arg && !ctx);
  stopper = PerfettoDsOnStopArgsPostpone(args);
  CHECK(stopper);
}

static void* stop(void* session) {
  PerfettoTracingSessionStopBlocking((struct PerfettoTracingSessionImpl*)session);
  CHECK(is_done);
  has_returned = true;
  return NULL;
}

static void* let_go(void* arg) {
  is_done = true;
  PerfettoDsStopDone((struct PerfettoDsAsyncStopper*)arg);
  return NULL;
}

static void flushed(void* user_arg) { *(_Atomic(bool)*)user_arg = true; }

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.stop");
  struct bytes config = config_for("c.stop", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  WAIT_FOR(*enabled);
  CHECK(trace_text(ds, "before") == 1);

  pthread_t stopping = spawn(stop, session);
  WAIT_FOR(stopper);
  CHECK(*enabled && trace_text(ds, "meanwhile") == 1);
  static _Atomic(bool) is_flushed;
  flush_thread(ds, flushed, (void*)&is_flushed);
  WAIT_FOR(is_flushed);
  usleep(20000);
  CHECK(!has_returned && *enabled);

  on_a_thread(let_go, (void*)stopper);
  join(stopping);
  CHECK(has_returned && !*enabled);
  CHECK(trace_text(ds, "after") == 0);
  finish(session, "trace");
  return 0;
}
