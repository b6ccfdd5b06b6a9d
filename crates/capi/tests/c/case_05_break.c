/* Leaving a loop over instances early. */

#include "common.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct PerfettoDsImpl *ds = PerfettoDsImplCreate(), *other = PerfettoDsImplCreate();
  register_as(ds, "c.break");
  register_as(other, "c.other");
  struct bytes config = config_for("c.break", NULL), of_other = config_for("c.other", NULL);
  struct PerfettoTracingSessionImpl *first = start(&config), *second = start(&config), *third = start(&of_other);

  int turns = 0;
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    turns++;
    /* The thread is in no other trace point meanwhile. */
    CHECK(PerfettoDsImplTraceIterateBegin(other).tracer == NULL);
    PerfettoDsImplTraceIterateBreak(ds, &it);
    break;
  }
  CHECK(turns == 1);
  CHECK(trace_text(ds, "after a break") == 2);
  CHECK(trace_text(other, "after a break") == 1);

  /* In the second turn. */
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  PerfettoDsImplTraceIterateNext(ds, &it);
  CHECK(it.tracer);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  CHECK(trace_text(ds, "again") == 2);

  /* With an open packet, which is lost. Nothing else is. */
  it = PerfettoDsImplTraceIterateBegin(ds);
  struct PerfettoStreamWriter w;
  begin_packet(it.tracer, &w);
  write_bytes(&w, "\xa2\x38\x06\x0a\x04lost", 9);
  PerfettoDsImplTraceIterateBreak(ds, &it);
  CHECK(trace_text(ds, "in the end") == 2);
  stop_and_finish(first, "trace");
  stop_and_finish(second, "second");
  stop_and_finish(third, "third");
  return 0;
}
