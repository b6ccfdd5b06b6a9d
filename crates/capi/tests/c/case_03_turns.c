/* A loop over instances has one round per session. */

#include "common.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.turns");
  CHECK(!*enabled);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer == NULL && it.tls == NULL && it.inst_id == 0);

  struct bytes config = config_for("c.turns", NULL);
  struct PerfettoTracingSessionImpl* first = start(&config);
  CHECK(*enabled);
  int turns = 0;
  uint32_t only = 99;
  for (it = PerfettoDsImplTraceIterateBegin(ds); it.tracer; PerfettoDsImplTraceIterateNext(ds, &it)) {
    turns++;
    only = it.inst_id;
    CHECK(PerfettoDsImplTraceIterateBegin(ds).tracer == NULL);
  }
  CHECK(turns == 1);

  struct PerfettoTracingSessionImpl* second = start(&config);
  uint32_t seen = 0;
  turns = 0;
  for (it = PerfettoDsImplTraceIterateBegin(ds); it.tracer; PerfettoDsImplTraceIterateNext(ds, &it)) {
    CHECK(it.inst_id < 8 && !(seen & 1u << it.inst_id));
    seen |= 1u << it.inst_id;
    turns++;
  }
  CHECK(turns == 2 && seen & 1u << only);
  PerfettoTracingSessionStopBlocking(first);
  CHECK(*enabled && trace_text(ds, "second") == 1);
  PerfettoTracingSessionStopBlocking(second);
  CHECK(!*enabled && trace_text(ds, "nobody") == 0);
  PerfettoTracingSessionDestroy(first);
  finish(second, "second.pftrace");
  return 0;
}
