/* A program that ends while its threads trace and a service records it. */

#include "events.h"

static struct PerfettoTeCategoryImpl* cat;
static struct PerfettoDsImpl* ds;
static _Atomic(unsigned) rounds;

static void* trace_for_ever(void* arg) {
  struct PerfettoTeHlExtraDebugArgString text = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "thread", arg};
  for (;;) {
    emit(cat, PERFETTO_TE_TYPE_SLICE_BEGIN, "round", X(text));
    trace_text(ds, "packet");
    emit(cat, PERFETTO_TE_TYPE_SLICE_END, NULL);
    rounds++;
    /* A pause, so that the service keeps up. */
    if (rounds % 50 == 0) usleep(1000);
  }
  return NULL;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  cat = init_with_category(&desc);
  ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.exits");
  WAIT_FOR(*enabled && *PerfettoTeCategoryImplGetEnabled(cat));
  instant(cat, "first");
  flush_thread(ds, NULL, NULL);
  spawn(trace_for_ever, "one");
  spawn(trace_for_ever, "two");
  WAIT_FOR(rounds > 2000);
  return 0;
}
