/* Tracks below tracks that have no events of their own, in two sessions at once. The first one
 * clears the incremental state again and again. */

#include <esatto/trace.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net");
static struct esatto_track requests, depth, mode, worldwide, of_a_thread;
static int clears;

static void* create(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer, void* user_arg) {
  (void)type, (void)instance, (void)tracer, (void)user_arg;
  return malloc(1);
}

static bool clear(void* state, void* user_arg) {
  (void)state, (void)user_arg;
  clears++;
  return true;
}

/* A data source that counts how often the incremental state was cleared. */
static struct PerfettoDsImpl* clear_counter(void) {
  struct PerfettoDsImpl* type = PerfettoDsImplCreate();
  struct esatto_buffer descriptor;
  PERFETTO_ATOMIC(bool)* enabled;
  size_t size;
  PerfettoDsSetOnCreateIncr(type, create);
  PerfettoDsSetOnDeleteIncr(type, free);
  PerfettoDsSetOnClearIncr(type, clear);
  esatto_buffer_open(&descriptor);
  esatto_put_string(&descriptor.message, 1, "c.clears");
  esatto_put_bool(&descriptor.message, 4, true); /* handles_incremental_state_clear */
  void* bytes = esatto_buffer_take(&descriptor, &size);
  CHECK(PerfettoDsImplRegister(type, &enabled, bytes, size));
  free(bytes);
  return type;
}

static int clears_until_now(struct PerfettoDsImpl* type) {
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(type);
  if (it.tracer) {
    PerfettoDsImplGetIncrementalState(type, it.tracer, it.inst_id);
    PerfettoDsImplTraceIterateBreak(type, &it);
  }
  return clears;
}

static struct PerfettoTracingSessionImpl* start_clearing(void) {
  const char* const sources[] = {"c.clears", NULL};
  struct esatto_config options = {.data_sources = sources};
  struct esatto_buffer config;
  size_t size;
  void* bytes = esatto_config_bytes(&options, &size);
  esatto_buffer_open(&config);
  esatto_append_(&config.message, bytes, size);
  free(bytes);
  struct esatto_message clearing = esatto_message_begin(&config.message, 21);
  esatto_put_uint(&clearing, 1, 10); /* clear_period_ms */
  esatto_message_end(&clearing);
  bytes = esatto_buffer_take(&config, &size);
  struct PerfettoTracingSessionImpl* session = esatto_session_start_with(ESATTO_IN_PROCESS, bytes, size);
  free(bytes);
  return session;
}

static void* events(void* name) {
  {
    ESATTO_SLICE(&net, name, ESATTO_ON(&requests));
    ESATTO_COUNTER_ON(&net, &depth, 7);
  }
  ESATTO_STATE_ON(&net, &mode, "busy");
  ESATTO_COUNTER_ON(&net, &worldwide, 8);
  ESATTO_COUNTER_ON(&net, &of_a_thread, 9);
  return NULL;
}

/* Runs on a thread without events. */
static void* open_track_of_thread(void* nothing) {
  CHECK(esatto_track_open(&of_a_thread, ESATTO_TRACK_OF_VALUES, "of a thread", &(struct esatto_track_options){.parent = esatto_thread_track()}));
  return nothing;
}

static void on_a_thread(void* (*what)(void*), void* arg) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, what, arg) == 0 && pthread_join(thread, NULL) == 0);
}

/* The groups have no events, and are closed before the others have any. */
static void open_tracks(void) {
  struct esatto_track disk, queue, world;
  CHECK(esatto_track_open(&disk, ESATTO_TRACK_OF_SLICES, "disk", &(struct esatto_track_options){.parent = esatto_process_track()}));
  CHECK(esatto_track_open(&queue, ESATTO_TRACK_OF_SLICES, "queue", &(struct esatto_track_options){.below = &disk, .id = 1}));
  CHECK(esatto_track_open(&requests, ESATTO_TRACK_OF_SLICES, "requests", &(struct esatto_track_options){.below = &queue}));
  CHECK(esatto_track_open(&depth, ESATTO_TRACK_OF_VALUES, "depth", &(struct esatto_track_options){.below = &queue, .unit = "requests"}));
  CHECK(esatto_track_open(&mode, ESATTO_TRACK_OF_STATES, "mode", &(struct esatto_track_options){.below = &disk}));
  CHECK(esatto_track_open(&world, ESATTO_TRACK_OF_SLICES, "world", NULL));
  CHECK(esatto_track_open(&worldwide, ESATTO_TRACK_OF_VALUES, "worldwide", &(struct esatto_track_options){.below = &world}));
  esatto_track_close(&disk);
  esatto_track_close(&queue);
  esatto_track_close(&world);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  struct PerfettoDsImpl* counter = clear_counter();
  open_tracks();
  on_a_thread(open_track_of_thread, NULL);
  struct PerfettoTracingSessionImpl* first = start_clearing();
  events("first");
  struct PerfettoTracingSessionImpl* second = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  events("both");
  on_a_thread(events, (void*)"on a thread");
  /* After the third clear of this data source, the second one has reached the track events. */
  while (clears_until_now(counter) < 3) usleep(1000);
  events("after clears");
  CHECK(esatto_session_finish(first, argv[1]) == 0 && esatto_session_finish(second, argv[2]) == 0);
  esatto_track_close(&requests);
  esatto_track_close(&depth);
  esatto_track_close(&mode);
  esatto_track_close(&worldwide);
  esatto_track_close(&of_a_thread);
  return 0;
}
