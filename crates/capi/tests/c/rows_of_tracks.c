/* Tracks that are objects with one name and several ids, used in turn. The trace goes to the file
 * of the first argument. */

#include <esatto/trace.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net");

int main(int argc, char** argv) {
  static const char* names[] = {"a", "b", "c"};
  struct PerfettoTracingSessionImpl* session;
  struct esatto_track workers[3];
  CHECK(argc == 2);
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  for (uint64_t i = 0; i < 3; i++)
    CHECK(esatto_track_open(&workers[i], ESATTO_TRACK_OF_SLICES, "worker",
                            &(struct esatto_track_options){.parent = esatto_process_track(), .id = i + 1, .own_row = true}));
  session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  for (int i = 0; i < 30; i++) {
    ESATTO_SLICE(&net, names[i % 3], ESATTO_ON(&workers[i % 3]));
  }
  CHECK(esatto_session_finish(session, argv[1]) == 0);
  for (int i = 0; i < 3; i++) esatto_track_close(&workers[i]);
  return 0;
}
