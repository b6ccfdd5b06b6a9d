/* Events on tracks that were not opened, are closed, or are of another kind. The trace goes to the
 * file of the first argument. The second one says which mistake comes first: "unopened" or
 * "closed". */

#include <esatto/trace.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net");
static struct esatto_track unopened, closed, slices, counter, states;

int main(int argc, char** argv) {
  struct PerfettoTracingSessionImpl* session;
  CHECK(argc == 3);
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  CHECK(esatto_track_open(&closed, ESATTO_TRACK_OF_SLICES, "closed", NULL));
  CHECK(esatto_track_open(&slices, ESATTO_TRACK_OF_SLICES, "slices", NULL));
  CHECK(esatto_track_open(&counter, ESATTO_TRACK_OF_VALUES, "counter", NULL));
  CHECK(esatto_track_open(&states, ESATTO_TRACK_OF_STATES, "states", NULL));
  session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  esatto_track_close(&closed);
  for (int i = 0; i < 3; i++) {
    ESATTO_SLICE(&net, "good", ESATTO_ON(&slices));
    ESATTO_COUNTER_ON(&net, &counter, i);
    ESATTO_STATE_ON(&net, &states, "good");
  }
  fprintf(stderr, "%s\n", argv[2]);
  for (int i = 0; i < 3; i++) ESATTO_INSTANT(&net, "x", ESATTO_ON(strcmp(argv[2], "closed") == 0 ? &closed : &unopened));
  fputs("both\n", stderr);
  ESATTO_INSTANT(&net, "x", ESATTO_ON(&closed));
  ESATTO_INSTANT(&net, "x", ESATTO_ON(&unopened));
  fputs("values\n", stderr);
  for (int i = 0; i < 3; i++) ESATTO_COUNTER_ON(&net, &slices, i);
  fputs("states\n", stderr);
  for (int i = 0; i < 3; i++) ESATTO_STATE_ON(&net, &counter, "x");
  fputs("end\n", stderr);
  CHECK(esatto_session_finish(session, argv[1]) == 0);
  esatto_track_close(&slices);
  esatto_track_close(&counter);
  esatto_track_close(&states);
  return 0;
}
