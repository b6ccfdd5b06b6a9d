/* Tracks whose ids or names are those of other levels: each must be a track of its own. The slices
 * of each test overlap, and each lasts 100 ns: nested ones would end in the wrong order. */

#include <esatto/trace.h>
#include <pthread.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net");
static uint64_t now;

static struct PerfettoTeTimestamp at(uint64_t ns) {
  struct PerfettoTeTimestamp time = esatto_now();
  time.value = now + ns;
  return time;
}

#define BEGIN(name, ns, ...) ESATTO_BEGIN(&net, name, ESATTO_AT(at(ns)), __VA_ARGS__)
#define END(ns, ...) ESATTO_END(&net, ESATTO_AT(at(ns)), __VA_ARGS__)

static struct esatto_track open_track(enum esatto_track_kind kind, const char* name, struct esatto_track_options options) {
  struct esatto_track track;
  CHECK(esatto_track_open(&track, kind, name, &options));
  return track;
}

static struct esatto_track lane(const char* name, struct esatto_track_options options) {
  return open_track(ESATTO_TRACK_OF_SLICES, name, options);
}

#define OPTIONS(...) ((struct esatto_track_options){__VA_ARGS__})
#define IN_PROCESS .parent = esatto_process_track()

static void equal_ids(void) {
  for (int i = 0; i < 6; i++) {
    uint64_t id = 1 + i % 3;
    struct esatto_track disk = lane("disk", OPTIONS(IN_PROCESS, .id = id));
    struct esatto_track queue = lane("queue", OPTIONS(.below = &disk, .id = id));
    struct esatto_track bytes = open_track(ESATTO_TRACK_OF_VALUES, "bytes", OPTIONS(.below = &disk, .id = id));
    if (i < 3)
      BEGIN("of a disk", i, ESATTO_ON(&queue));
    else
      END(100 + i % 3, ESATTO_ON(&queue));
    ESATTO_COUNTER_ON(&net, &bytes, 100 * id);
    esatto_track_close(&disk);
    esatto_track_close(&queue);
    esatto_track_close(&bytes);
  }
}

static void equal_and_swapped_names(void) {
  struct esatto_track cache = lane("cache", OPTIONS(IN_PROCESS)), below = lane("cache", OPTIONS(.below = &cache));
  struct esatto_track a = lane("a", OPTIONS(IN_PROCESS)), b_of_a = lane("b", OPTIONS(.below = &a));
  struct esatto_track b = lane("b", OPTIONS(IN_PROCESS)), a_of_b = lane("a", OPTIONS(.below = &b));
  const struct esatto_track* all[] = {&cache, &below, &b_of_a, &a_of_b};
  for (int i = 0; i < 4; i++) BEGIN("of a name", i, ESATTO_ON(all[i]));
  for (int i = 0; i < 4; i++) END(100 + i, ESATTO_ON(all[i]));
}

static void nested_paths(void) {
  for (int i = 0; i < 6; i++) {
    uint64_t id = 1 + i % 3;
    if (i < 3)
      BEGIN("of a path", i, ESATTO_ON_NESTED(ESATTO_NEST_PROCESS, ESATTO_NEST("outer", .id = id), ESATTO_NEST("inner", .id = id)));
    else
      END(100 + i % 3, ESATTO_ON_NESTED(ESATTO_NEST_PROCESS, ESATTO_NEST("outer", .id = id), ESATTO_NEST("inner", .id = id)));
  }
}

/* The number of the thread is the id of its track. */
static void* of_a_thread(void* begins) {
  static struct esatto_track tracks[2];
  int i = begins == NULL;
  tracks[i] = lane("work", OPTIONS(.parent = esatto_thread_track(), .id = (uint64_t)PerfettoGetThreadIdImpl()));
  BEGIN("of a thread", i, ESATTO_ON(&tracks[i]));
  if (i == 0) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, of_a_thread, NULL) == 0 && pthread_join(other, NULL) == 0);
    END(100, ESATTO_ON(&tracks[0]));
    END(101, ESATTO_ON(&tracks[1]));
  }
  return NULL;
}

/* The same track, given in different ways. */
static void equal_paths(void) {
  struct esatto_track group = lane("group", OPTIONS(IN_PROCESS, .id = 5)), member = lane("member", OPTIONS(.below = &group, .id = 5));
  struct esatto_track own = lane("own", OPTIONS(.parent = esatto_thread_track(), .id = 3)), own_inner = lane("inner", OPTIONS(.below = &own));
  struct PerfettoTeHlNestedTrackNamed named = {{PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED}, "member", 5, false, 0, 0, 0, NULL, 0};

  BEGIN("equal", 0, ESATTO_ON(&group));
  END(100, ESATTO_ON_NAMED("group", 5));
  BEGIN("equal", 200, ESATTO_ON_NESTED(ESATTO_NEST_PROCESS, ESATTO_NEST("group", .id = 5)));
  END(300, ESATTO_ON(&group));
  BEGIN("equal", 400, ESATTO_ON(&member));
  END(500, ESATTO_ON_NESTED(ESATTO_NEST_PROCESS, ESATTO_NEST("group", .id = 5), ESATTO_NEST("member", .id = 5)));
  BEGIN("equal", 600, ESATTO_ON_NESTED(ESATTO_NEST_TRACK(&group), &named.header));
  END(700, ESATTO_ON_NESTED(ESATTO_NEST_TRACK(&group), &named.header));
  BEGIN("equal", 800, ESATTO_ON_NESTED(ESATTO_NEST_TRACK(&group), &named.header));
  END(900, ESATTO_ON(&member));
  BEGIN("equal", 1000, ESATTO_ON(&own));
  END(1100, ESATTO_ON_NAMED_UNDER(esatto_thread_track(), "own", 3));
  BEGIN("equal", 1200, ESATTO_ON_NESTED(ESATTO_NEST_THREAD, ESATTO_NEST("own", .id = 3), ESATTO_NEST("inner")));
  END(1300, ESATTO_ON(&own_inner));
  /* Perfetto's functions compute these numbers. */
  CHECK(group.impl.uuid == (esatto_process_track() ^ 5 ^ esatto_hash_("group")));
  CHECK(lane("of none", OPTIONS(.id = 7)).impl.uuid == (7 ^ esatto_hash_("of none")));
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  struct PerfettoTracingSessionImpl* session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  now = esatto_now().value;
  equal_ids();
  equal_and_swapped_names();
  nested_paths();
  of_a_thread((void*)1);
  equal_paths();
  CHECK(esatto_session_finish(session, argv[1]) == 0);
  return 0;
}
