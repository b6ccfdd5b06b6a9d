/* A thread hands over its data, and a callback reports it. */

#include "common.h"

static _Atomic(int) calls;
static _Atomic(pthread_t) caller;

static void flushed(void* user_arg) {
  CHECK(user_arg == &calls);
  caller = pthread_self();
  calls++;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.flush");
  struct bytes config = config_for("c.flush", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  WAIT_FOR(*enabled);
  CHECK(trace_text(ds, "flushed") == 1);
  flush_thread(ds, flushed, &calls);
  WAIT_FOR(calls == 1);
  CHECK(!pthread_equal(caller, pthread_self()));
  /* With nothing to hand over, and without a callback. */
  flush_thread(ds, flushed, &calls);
  WAIT_FOR(calls == 2);
  flush_thread(ds, NULL, NULL);
  CHECK(trace_text(ds, "behind") == 1);
  stop_and_finish(session, "trace");
  CHECK(calls == 2);
  return 0;
}
