/* The categories that sessions enable. */

#include "events.h"

static struct PerfettoTeCategoryDescriptor a_desc = {"a", NULL, NULL, 0}, b_desc = {"b", NULL, NULL, 0};
static const char* tags[] = {"slow"};
static struct PerfettoTeCategoryDescriptor tagged_desc = {"tagged", "with a tag", tags, 1};

static bool on(struct PerfettoTeCategoryImpl* cat) { return *PerfettoTeCategoryImplGetEnabled(cat); }

static void stop(struct PerfettoTracingSessionImpl* session) {
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionDestroy(session);
}

static struct PerfettoTracingSessionImpl* start_with(struct bytes config) { return start(&config); }

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  PerfettoTeInit();
  PerfettoTeInit();
  struct PerfettoTeCategoryImpl *a = PerfettoTeCategoryImplCreate(&a_desc), *b = PerfettoTeCategoryImplCreate(&b_desc);
  struct PerfettoTeCategoryImpl* tagged = PerfettoTeCategoryImplCreate(&tagged_desc);
  PerfettoTePublishCategories();
  CHECK(!on(a) && !on(b) && !on(tagged) && !*perfetto_te_any_categories_enabled);

  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  register_as(ds, "c.other");
  struct PerfettoTracingSessionImpl* other = start_with(config_for("c.other", NULL));
  CHECK(!on(a) && !on(b) && !*perfetto_te_any_categories_enabled);

  struct PerfettoTracingSessionImpl* empty = start_with(config_for_categories(NULL));
  CHECK(!on(a) && !on(b) && !on(tagged) && *perfetto_te_any_categories_enabled);

  struct PerfettoTracingSessionImpl* of_a = start_with(config_for_categories("a"));
  CHECK(on(a) && !on(b) && !on(tagged));
  instant(a, "of a");
  instant(b, "of b");
  PerfettoTracingSessionStopBlocking(of_a);
  CHECK(!on(a));
  finish(of_a, "of_a");
  stop_and_finish(empty, "empty");
  stop(other);

  /* A star enables all, with or without tags: no category is off by default. */
  struct PerfettoTracingSessionImpl* all = start_with(config_for_categories("*"));
  CHECK(on(a) && on(b) && on(tagged));
  /* A category that is created while a session records. */
  static struct PerfettoTeCategoryDescriptor late_desc = {"late", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* late = PerfettoTeCategoryImplCreate(&late_desc);
  CHECK(on(late));
  stop(all);
  CHECK(!on(a) && !on(b) && !on(tagged) && !on(late));

  /* Tags. */
  struct bytes te = {{0}, 0}, more = {{0}, 0};
  put_text(&te, 4, "slow");
  put_message(&more, 113, &te);
  struct PerfettoTracingSessionImpl* slow = start_with(config_for("track_event", &more));
  CHECK(!on(a) && !on(b) && on(tagged));
  stop(slow);
  uint64_t iid = PerfettoTeCategoryImplGetIid(late);
  PerfettoTeCategoryImplDestroy(late);
  /* All numbers are different. */
  late = PerfettoTeCategoryImplCreate(&b_desc);
  CHECK(PerfettoTeCategoryImplGetIid(late) != iid);
  PerfettoTeCategoryImplDestroy(late);
  return 0;
}
