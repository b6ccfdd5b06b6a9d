/* The flag that a macro reads is the one that the getter returns. */

#include "events.h"

/* As in headers: `enabled` is copied when the category is registered. */
struct category {
  PERFETTO_ATOMIC(bool)* enabled;
  struct PerfettoTeCategoryImpl* impl;
  struct PerfettoTeCategoryDescriptor desc;
};

static struct category a = {&perfetto_atomic_false, NULL, {"a", NULL, NULL, 0}};
static struct category b = {&perfetto_atomic_false, NULL, {"b", NULL, NULL, 0}};

static bool on(struct category* c) {
  bool by_macro = atomic_load_explicit(c->enabled, memory_order_relaxed);
  if (c->impl) CHECK(by_macro == *PerfettoTeCategoryImplGetEnabled(c->impl));
  return by_macro;
}

static void enlist(struct category* c) {
  c->impl = PerfettoTeCategoryImplCreate(&c->desc);
  c->enabled = PerfettoTeCategoryImplGetEnabled(c->impl);
  CHECK(c->enabled && c->enabled != &perfetto_atomic_false);
  CHECK(c->enabled == PerfettoTeCategoryImplGetEnabled(c->impl));
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  CHECK(!on(&a) && !on(&b));
  init_producer();
  PerfettoTeInit();
  enlist(&a);
  enlist(&b);
  PerfettoTePublishCategories();
  CHECK(!on(&a) && !on(&b) && a.enabled != b.enabled && !perfetto_atomic_false);
  struct bytes config = config_for_categories("a");
  struct PerfettoTracingSessionImpl* session = start(&config);
  CHECK(on(&a) && !on(&b) && !perfetto_atomic_false);
  CHECK(*perfetto_te_any_categories_enabled);
  CHECK(perfetto_te_any_categories_enabled == PerfettoTeCategoryImplGetEnabled(perfetto_te_any_categories));
  PerfettoTracingSessionStopBlocking(session);
  CHECK(!on(&a) && !on(&b) && !*perfetto_te_any_categories_enabled);
  PerfettoTracingSessionDestroy(session);
  PerfettoTeCategoryImplDestroy(a.impl);
  a.impl = NULL;
  a.enabled = &perfetto_atomic_false;
  CHECK(!on(&a));
  return 0;
}
