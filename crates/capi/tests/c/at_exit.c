/* Events and packets of the functions that run at the end of a program, after its thread-locals. */

#include "events.h"

static struct PerfettoTeCategoryImpl* cat;
static struct PerfettoDsImpl* ds;

static void handler(void) {
  emit(cat, PERFETTO_TE_TYPE_SLICE_BEGIN, "handler", NULL);
  for (int i = 0; i < 100; i++) instant(cat, "closing");
  emit(cat, PERFETTO_TE_TYPE_SLICE_END, NULL);
  trace_text(ds, "totals at the end");
}

static void early_handler(void) { instant(cat, "early handler"); }

__attribute__((destructor)) static void destructor(void) {
  if (cat) instant(cat, "destructor");
}

int main(int argc, char** argv) {
  /* Functions run in the reverse order: this one after those of the library. */
  atexit(early_handler);
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  cat = init_with_category(&desc);
  ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.exits");
  atexit(handler);
  WAIT_FOR(*enabled && *PerfettoTeCategoryImplGetEnabled(cat));
  instant(cat, "main");
  trace_text(ds, "packet of main");
  return 0;
}
