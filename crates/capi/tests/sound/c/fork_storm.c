/* Forks while other threads hold the library's locks. The child can use all of the library. */

#include "sound.h"

static _Atomic(bool) over;

static void on_category(struct PerfettoTeCategoryImpl* cat, PerfettoDsInstanceIndex instance, bool created,
                        bool global_state_changed, void* user_arg) {
  (void)instance, (void)created, (void)global_state_changed, (void)user_arg;
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "from the callback", no_extras);
}

static void emit_dynamic(const char* name) {
  struct PerfettoTeCategoryDescriptor desc = {name, NULL, NULL, 0};
  struct PerfettoTeHlExtraDynamicCategory extra = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, &desc};
  struct PerfettoTeHlExtra* extras[] = {&extra.header, NULL};
  PerfettoTeHlEmitImpl(perfetto_te_any_categories, PERFETTO_TE_TYPE_INSTANT, name, extras);
}

static void use_everything(unsigned number) {
  char name[32];
  snprintf(name, sizeof name, "name %u", number % 3000);
  static struct PerfettoTeCategoryDescriptor desc = {"coming and going", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(&desc);
  PerfettoTeCategoryImplSetCallback(cat, on_category, NULL);
  PerfettoTePublishCategories();
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, name, no_extras);
  emit_dynamic(name);
  PerfettoTeCategoryImplDestroy(cat);
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, NULL);
  CHECK(PerfettoDsSetBufferExhaustedPolicy(ds, 0));
  const char* triggers[] = {"trigger", NULL};
  PerfettoProducerActivateTriggers(triggers, 1);
  PerfettoProducerInProcessInit(NULL);
  PerfettoTeInit();
}

static void* use(void* first) {
  for (unsigned number = (unsigned)(uintptr_t)first; !over; number++) use_everything(number);
  return NULL;
}

/* Creates and destroys sessions, and creates types of data sources. */
static void* control(void* none) {
  for (int i = 0; !over; i++) {
    struct PerfettoTracingSessionImpl* session = start("track_event");
    PERFETTO_ATOMIC(bool)* enabled = NULL;
    if (i < 20) CHECK(register_as(PerfettoDsImplCreate(), "sound.storm", &enabled));
    PerfettoTracingSessionStopBlocking(session);
    PerfettoTracingSessionDestroy(session);
  }
  return none;
}

static void child(void) {
  use_everything(7);
  PerfettoProducerInProcessInit(NULL);
  PERFETTO_ATOMIC(bool)* enabled = NULL;
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  CHECK(register_as(ds, "sound.child", &enabled) && !*enabled);
  struct PerfettoTracingSessionImpl* session = start("track_event");
  use_everything(8);
  static struct PerfettoTeCategoryDescriptor desc = {"of the child", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(&desc);
  CHECK(*PerfettoTeCategoryImplGetEnabled(cat) && *perfetto_te_any_categories_enabled);
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "event of the child", no_extras);
  struct trace trace = stop_and_read(session);
  CHECK(has(&trace, "event of the child"));
  _exit(0);
}

int main(void) {
  init();
  PerfettoTeInit();
  pthread_t threads[3];
  CHECK(!pthread_create(&threads[0], NULL, use, (void*)0));
  CHECK(!pthread_create(&threads[1], NULL, use, (void*)1000000));
  CHECK(!pthread_create(&threads[2], NULL, control, NULL));
  for (int i = 0; i < 60; i++) {
    usleep(2000);
    pid_t pid = fork_in_time();
    if (!pid) child();
    wait_for_child(pid);
  }
  over = true;
  for (int i = 0; i < 3; i++) CHECK(!pthread_join(threads[i], NULL));
  return 0;
}
