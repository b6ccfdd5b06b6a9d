/* A flush that the data source postpones. */

#include "common.h"

static struct PerfettoDsImpl* ds;
static _Atomic(struct PerfettoDsAsyncFlusher*) flusher;
static _Atomic(bool) has_returned, is_done, postpone = true;

static void on_flush(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnFlushArgs* args) {
  CHECK(type == ds && instance == 0 && !user_arg && !ctx);
  if (postpone) flusher = PerfettoDsOnFlushArgsPostpone(args);
}

static void* flush(void* session) {
  CHECK(PerfettoTracingSessionFlushBlocking((struct PerfettoTracingSessionImpl*)session, 60000));
  CHECK(is_done);
  has_returned = true;
  return NULL;
}

static void* let_go(void* arg) {
  is_done = true;
  PerfettoDsFlushDone((struct PerfettoDsAsyncFlusher*)arg);
  return NULL;
}

static void flush_is_over(struct PerfettoTracingSessionImpl* session, bool success, void* user_arg) {
  CHECK(session);
  *(_Atomic(int)*)user_arg = success ? 1 : -1;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.flusher");
  struct bytes config = config_for("c.flusher", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  WAIT_FOR(*enabled);
  CHECK(trace_text(ds, "before") == 1);

  pthread_t flushing = spawn(flush, session);
  WAIT_FOR(flusher);
  CHECK(trace_text(ds, "meanwhile") == 1);
  usleep(20000);
  CHECK(!has_returned);
  on_a_thread(let_go, (void*)flusher);
  join(flushing);

  /* The same, with a callback. */
  static _Atomic(int) over;
  flusher = NULL;
  PerfettoTracingSessionFlushAsync(session, 60000, flush_is_over, (void*)&over);
  WAIT_FOR(flusher);
  usleep(20000);
  CHECK(!over);
  PerfettoDsFlushDone(flusher);
  WAIT_FOR(over);
  CHECK(over == 1);

  /* No thread completes it in time. */
  flusher = NULL;
  CHECK(!PerfettoTracingSessionFlushBlocking(session, 50));
  WAIT_FOR(flusher);
  PerfettoDsFlushDone(flusher);
  postpone = false;
  CHECK(PerfettoTracingSessionFlushBlocking(session, 0));
  PerfettoTracingSessionFlushAsync(session, 0, NULL, NULL);
  CHECK(trace_text(ds, "after") == 1);
  stop_and_finish(session, "trace");
  return 0;
}
