/* Tracks that were described before the library knew the process: before esatto_init, and before a
 * fork. Writes a trace of this process, and one of its child. */

#include <esatto/trace.h>
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net");
static struct esatto_track disk, load, below, of_thread, of_none;
static int threads = 4;

static void open_tracks(void) {
  const struct esatto_track_options in_process = {.parent = esatto_process_track()};
  CHECK(esatto_track_open(&disk, ESATTO_TRACK_OF_SLICES, "disk", &in_process));
  CHECK(esatto_track_open(&load, ESATTO_TRACK_OF_VALUES, "load", &in_process));
  CHECK(esatto_track_open(&below, ESATTO_TRACK_OF_SLICES, "below", &(struct esatto_track_options){.below = &disk, .id = 1}));
  CHECK(esatto_track_open(&of_thread, ESATTO_TRACK_OF_VALUES, "of the thread", &(struct esatto_track_options){.parent = esatto_thread_track()}));
  CHECK(esatto_track_open(&of_none, ESATTO_TRACK_OF_SLICES, "of none", NULL));
}

/* Threads that come to a track for the first time together describe it once. */
static void* work(void* unused) {
  __atomic_sub_fetch(&threads, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&threads, __ATOMIC_SEQ_CST) > 0) continue;
  ESATTO_INSTANT(&net, "together", ESATTO_ON(&below));
  return unused;
}

static void record(const char* path) {
  pthread_t all[4];
  struct PerfettoTracingSessionImpl* session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  threads = 4;
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, work, NULL) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(all[i], NULL) == 0);
  {
    ESATTO_SLICE(&net, "read", ESATTO_ON(&disk));
    ESATTO_INSTANT(&net, "nested", ESATTO_ON_NESTED(ESATTO_NEST_TRACK(&disk), ESATTO_NEST("named")));
  }
  ESATTO_COUNTER_ON(&net, &load, 1);
  ESATTO_COUNTER_ON(&net, &of_thread, 2);
  ESATTO_INSTANT(&net, "alone", ESATTO_ON(&of_none));
  CHECK(esatto_session_finish(session, path) == 0);
}

int main(int argc, char** argv) {
  int status;
  pid_t child;
  CHECK(argc == 3);
  open_tracks();
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  record(argv[1]);
  child = fork();
  if (!child) {
    esatto_init(ESATTO_IN_PROCESS);
    ESATTO_REGISTER(&net);
    record(argv[2]);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("%d %d\n", (int)getpid(), (int)child);
  return 0;
}
