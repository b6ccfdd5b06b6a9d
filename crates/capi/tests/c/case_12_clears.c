/* Incremental state that is cleared: the program keeps it, or has it made again, or has no callback
 * for it. */

#include "common.h"

static int created, deleted, asked;
static bool keep;
static int user;

static void* create(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer,
                    void* user_arg) {
  CHECK(type && instance == 0 && tracer && user_arg == &user);
  created++;
  return malloc(1);
}

static void delete(void* obj) {
  deleted++;
  free(obj);
}

static bool clear(void* obj, void* user_arg) {
  CHECK(obj && user_arg == &user);
  asked++;
  return keep;
}

static struct PerfettoDsImpl* make(const char* name, PerfettoDsOnClearCustomState on_clear) {
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  PerfettoDsSetOnCreateIncr(ds, create);
  PerfettoDsSetOnDeleteIncr(ds, delete);
  PerfettoDsSetCbUserArg(ds, &user);
  if (on_clear) PerfettoDsSetOnClearIncr(ds, on_clear);
  struct bytes descriptor = {{0}, 0};
  put_text(&descriptor, 1, name);
  put_number(&descriptor, 4, 1); /* handles_incremental_state_clear */
  PERFETTO_ATOMIC(bool)* enabled;
  CHECK(PerfettoDsImplRegister(ds, &enabled, descriptor.at, descriptor.len));
  return ds;
}

static void* state(struct PerfettoDsImpl* ds) {
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  void* now = PerfettoDsImplGetIncrementalState(ds, it.tracer, it.inst_id);
  CHECK(now && now == PerfettoDsImplGetIncrementalState(ds, it.tracer, it.inst_id));
  PerfettoDsImplTraceIterateBreak(ds, &it);
  return now;
}

static struct PerfettoTracingSessionImpl* start_clearing(const char* name) {
  struct bytes config = config_for(name, NULL), clears = {{0}, 0};
  put_number(&clears, 1, 10); /* clear_period_ms */
  put_message(&config, 21, &clears);
  return start(&config);
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct PerfettoDsImpl *with_callback = make("c.cleared", clear), *without = make("c.recreated", NULL);

  struct PerfettoTracingSessionImpl* session = start_clearing("c.cleared");
  keep = true;
  void* first = state(with_callback);
  CHECK(created == 1);
  while (asked < 2) {
    usleep(1000);
    CHECK(state(with_callback) == first);
  }
  CHECK(created == 1 && deleted == 0);
  keep = false;
  while (deleted == 0) {
    usleep(1000);
    state(with_callback);
  }
  CHECK(created == deleted + 1);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionDestroy(session);

  session = start_clearing("c.recreated");
  int before = created, were_asked = asked;
  state(without);
  CHECK(created == before + 1);
  while (created == before + 1) {
    usleep(1000);
    state(without);
  }
  CHECK(asked == were_asked);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionDestroy(session);
  return 0;
}
