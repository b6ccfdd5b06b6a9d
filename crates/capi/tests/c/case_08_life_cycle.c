/* An instance, from setup to destruction. */

#include "common.h"

static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled = &perfetto_atomic_false;
static int user;
static struct { int anything; } context;
static char order[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* DataSourceConfig.for_testing { message_count, message_size } */
static const char own_config[] = {0x08, 5, 0x20, 7};

static void note(char what) {
  pthread_mutex_lock(&lock);
  CHECK(strlen(order) + 1 < sizeof order);
  order[strlen(order)] = what;
  pthread_mutex_unlock(&lock);
}

static bool was(const char* expected) {
  pthread_mutex_lock(&lock);
  bool same = strcmp(order, expected) == 0;
  if (!same) fprintf(stderr, "%s, not %s\n", order, expected);
  pthread_mutex_unlock(&lock);
  return same;
}

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && args == NULL && !*enabled);
  struct PerfettoPbDecoder d = {(const uint8_t*)config, (const uint8_t*)config + size};
  bool has_name = false, has_own = false;
  for (;;) {
    struct PerfettoPbDecoderField f = PerfettoPbDecoderParseField(&d);
    if (f.status == PERFETTO_PB_DECODER_DONE) break;
    CHECK(f.status == PERFETTO_PB_DECODER_OK);
    if (f.id == 1) has_name = f.value.delimited.len == 6 && memcmp(f.value.delimited.start, "c.life", 6) == 0;
    if (f.id == 1001)
      has_own = f.value.delimited.len == sizeof own_config &&
                memcmp(f.value.delimited.start, own_config, sizeof own_config) == 0;
  }
  CHECK(has_name && has_own);
  note('u');
  return &context;
}

static void on_start(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnStartArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && ctx == &context && args == NULL && *enabled);
  note('s');
}

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && ctx == &context && args && *enabled);
  note('e');
}

static void on_flush(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                     struct PerfettoDsOnFlushArgs* args) {
  CHECK(type == ds && instance == 0 && user_arg == &user && ctx == &context && args && *enabled);
  note('f');
}

static void on_destroy(struct PerfettoDsImpl* type, void* user_arg, void* ctx) {
  CHECK(type == ds && user_arg == &user && ctx == &context);
  note('d');
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnStartCallback(ds, on_start);
  PerfettoDsSetOnStopCallback(ds, on_stop);
  PerfettoDsSetOnDestroyCallback(ds, on_destroy);
  PerfettoDsSetOnFlushCallback(ds, on_flush);
  PerfettoDsSetCbUserArg(ds, &user);
  CHECK(PerfettoDsSetBufferExhaustedPolicy(ds, 2) && !PerfettoDsSetBufferExhaustedPolicy(ds, 3));
  CHECK(PerfettoDsSetBufferExhaustedPolicyConfigurable(ds, true));
  enabled = register_as(ds, "c.life");
  CHECK(enabled != &perfetto_atomic_false && !*enabled && register_as(ds, "c.life") == enabled);
  CHECK(!PerfettoDsSetBufferExhaustedPolicy(ds, 0) && !PerfettoDsSetBufferExhaustedPolicyConfigurable(ds, true));

  struct bytes more = {{0}, 0};
  put_bytes(&more, 1001, own_config, sizeof own_config);
  struct bytes config = config_for("c.life", &more);
  for (int turn = 0; turn < 2; turn++) {
    memset(order, 0, sizeof order);
    struct PerfettoTracingSessionImpl* session = start(&config);
    WAIT_FOR(*enabled);
    if (is_system_wide()) WAIT_FOR(strcmp(order, "us") == 0);
    CHECK(was("us"));
    CHECK(trace_text(ds, "alive") == 1);
    CHECK(PerfettoTracingSessionFlushBlocking(session, 0));
    CHECK(was("usf"));
    PerfettoTracingSessionStopBlocking(session);
    /* A service flushes before it stops. */
    if (is_system_wide()) WAIT_FOR(strchr(order, 'd'));
    CHECK(!*enabled && (was("usffed") || was("usfed")));
    finish(session, turn ? "second" : "trace");
  }
  return 0;
}
