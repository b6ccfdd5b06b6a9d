/* Trace points do nothing before initialisation. */

#include "events.h"

static PERFETTO_ATOMIC(bool)* in_a_static = &perfetto_atomic_false;

/* As inline functions of headers do it: returns true if the body would run. */
static int data_source_macro(PERFETTO_ATOMIC(bool)* enabled, struct PerfettoDsImpl* ds) {
  int turns = 0;
  if (!atomic_load_explicit(enabled, memory_order_relaxed)) return turns;
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer;
       PerfettoDsImplTraceIterateNext(ds, &it))
    turns++;
  return turns;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  CHECK(in_a_static == &perfetto_atomic_false && !*in_a_static);
  CHECK(perfetto_te_any_categories == NULL && perfetto_te_any_categories_enabled == NULL);
  CHECK(perfetto_te_process_track_uuid == 0);
  CHECK(data_source_macro(in_a_static, NULL) == 0);

  /* A type that was made and not registered. The ABI cannot free it. */
  static struct PerfettoDsImpl* ds;
  ds = PerfettoDsImplCreate();
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer == NULL && it.tls == NULL && it.inst_id == 0);

  /* A category without track events. */
  static struct PerfettoTeCategoryDescriptor desc = {"early", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(&desc);
  CHECK(!*PerfettoTeCategoryImplGetEnabled(cat) && PerfettoTeCategoryImplGetIid(cat) != 0);
  instant(cat, "nobody records");
  CHECK(PerfettoTeLlImplBegin(cat, PerfettoTeGetTimestamp()).ds.tracer == NULL);

  /* It exists after the initialisation of track events. */
  init_producer();
  PerfettoTeInit();
  CHECK(perfetto_te_process_track_uuid != 0 && perfetto_te_any_categories && perfetto_te_any_categories_enabled);
  CHECK(!*perfetto_te_any_categories_enabled);
  PerfettoTePublishCategories();
  struct PerfettoTracingSessionImpl* session = record("early", cat);
  CHECK(*perfetto_te_any_categories_enabled);
  instant(cat, "recorded");
  stop_and_finish(session, "trace");
  return 0;
}
