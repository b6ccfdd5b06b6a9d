/* Several sessions with different configs, and incremental state that is cleared. */

#include <unistd.h>

#include "common.h"

static int created, deleted, asked;
static bool keep;
static struct PerfettoDsImpl *with_callback, *without;

static void* create(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer,
                    void* user_arg) {
  (void)type, (void)instance, (void)tracer, (void)user_arg;
  created++;
  return malloc(1);
}

static void delete(void* obj) {
  deleted++;
  free(obj);
}

static bool clear(void* obj, void* user_arg) {
  CHECK(obj && user_arg == NULL);
  asked++;
  return keep;
}

static struct PerfettoDsImpl* make(const char* name, bool (*on_clear)(void*, void*)) {
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  PerfettoDsSetOnCreateIncr(ds, create);
  PerfettoDsSetOnDeleteIncr(ds, delete);
  if (on_clear) PerfettoDsSetOnClearIncr(ds, on_clear);
  struct bytes descriptor = {{0}, 0};
  put_text(&descriptor, 1, name);
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

static void incremental_state_is_cleared_as_the_program_says(void) {
  struct PerfettoTracingSessionImpl* session = start_clearing("c.cleared");
  keep = true;
  void* first = state(with_callback);
  CHECK(created == 1);
  while (asked == 0) {
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
  int before = created;
  state(without);
  CHECK(created == before + 1);
  while (created == before + 1) {
    usleep(1000);
    state(without);
  }
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionDestroy(session);
}

static struct bytes track_events(const char* category) {
  struct bytes patterns = {{0}, 0}, te = {{0}, 0};
  if (category) {
    put_text(&patterns, 2, category);
    put_text(&patterns, 1, "*");
  }
  put_message(&te, 113, &patterns);
  return config_for("track_event", &te);
}

static struct bytes seen;

static void look(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more, void* text) {
  (void)session, (void)has_more;
  size_t len = strlen((const char*)text);
  for (size_t i = 0; i + len <= size; i++) seen.len += memcmp((const char*)data + i, text, len) == 0;
}

static bool has(struct PerfettoTracingSessionImpl* session, const char* text) {
  seen.len = 0;
  PerfettoTracingSessionReadTraceBlocking(session, look, (void*)text);
  return seen.len != 0;
}

static void each_session_has_what_its_config_wants(void) {
  static struct PerfettoTeCategoryDescriptor a_desc = {"a", NULL, NULL, 0}, b_desc = {"b", NULL, NULL, 0};
  static struct PerfettoTeCategoryDescriptor dyn_desc = {"dyn", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl *a = PerfettoTeCategoryImplCreate(&a_desc), *b = PerfettoTeCategoryImplCreate(&b_desc);
  struct bytes config = track_events(NULL);
  struct PerfettoTracingSessionImpl* none = start(&config);
  CHECK(!*PerfettoTeCategoryImplGetEnabled(a) && *perfetto_te_any_categories_enabled);
  struct PerfettoTracingSessionImpl* other = start_clearing("c.cleared");
  CHECK(!*PerfettoTeCategoryImplGetEnabled(a));
  config = track_events("a");
  struct PerfettoTracingSessionImpl* of_a = start(&config);
  CHECK(*PerfettoTeCategoryImplGetEnabled(a) && !*PerfettoTeCategoryImplGetEnabled(b));
  config = track_events("dyn");
  struct PerfettoTracingSessionImpl* of_dyn = start(&config);
  CHECK(!*PerfettoTeCategoryImplGetEnabled(b));
  struct PerfettoTeHlExtraDynamicCategory extra = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, &dyn_desc};
  struct PerfettoTeHlExtra *nothing[] = {NULL}, *dynamic[] = {&extra.header, NULL};
  PerfettoTeHlEmitImpl(a, PERFETTO_TE_TYPE_INSTANT, "event of a", nothing);
  PerfettoTeHlEmitImpl(perfetto_te_any_categories, PERFETTO_TE_TYPE_INSTANT, "event of dyn", dynamic);
  /* A category that comes while sessions record. */
  static struct PerfettoTeCategoryDescriptor late_desc = {"a", "later", NULL, 0};
  struct PerfettoTeCategoryImpl* late = PerfettoTeCategoryImplCreate(&late_desc);
  CHECK(*PerfettoTeCategoryImplGetEnabled(late));
  PerfettoTracingSessionStopBlocking(of_a);
  PerfettoTracingSessionStopBlocking(of_dyn);
  PerfettoTracingSessionStopBlocking(none);
  PerfettoTracingSessionStopBlocking(other);
  CHECK(!*PerfettoTeCategoryImplGetEnabled(a) && !*PerfettoTeCategoryImplGetEnabled(late));
  CHECK(has(of_a, "event of a"));
  CHECK(has(of_dyn, "event of dyn"));
  CHECK(!has(none, "event of"));
  PerfettoTracingSessionDestroy(none);
  PerfettoTracingSessionDestroy(other);
  PerfettoTracingSessionDestroy(of_a);
  PerfettoTracingSessionDestroy(of_dyn);
}

static void two_instances_get_a_turn_each(void) {
  struct bytes config = config_for("c.recreated", NULL);
  struct PerfettoTracingSessionImpl *first = start(&config), *second = start(&config);
  uint32_t turns = 0;
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(without); it.tracer;
       PerfettoDsImplTraceIterateNext(without, &it)) {
    CHECK(!(turns & 1u << it.inst_id));
    turns |= 1u << it.inst_id;
  }
  CHECK(turns == 3);
  PerfettoTracingSessionDestroy(first);
  PerfettoTracingSessionDestroy(second);
}

int main(void) {
  init_in_process();
  PerfettoTeInit();
  with_callback = make("c.cleared", clear);
  without = make("c.recreated", NULL);
  incremental_state_is_cleared_as_the_program_says();
  each_session_has_what_its_config_wants();
  two_instances_get_a_turn_each();
  return 0;
}
