/* Buffers that hold the names of tracks and categories are used again before the slices end. The
 * trace goes to the file of the first argument. */

#include <esatto/trace.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net");

int main(int argc, char** argv) {
  struct PerfettoTracingSessionImpl* session;
  char name[128], category[32];
  CHECK(argc == 2);
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  for (int i = 0; i < 10; i++) {
    snprintf(name, sizeof name, "connection %d", i % 3);
    snprintf(category, sizeof category, "kind %d", i % 2);
    ESATTO_SLICE(&net, "outer", ESATTO_ON_NAMED(name, 0));
    ESATTO_SLICE(ESATTO_ANY, "inner", ESATTO_CATEGORY_NAME(category));
    memset(name, 'x', sizeof name - 1);
    memset(category, 'x', sizeof category - 1);
  }
  CHECK(esatto_session_finish(session, argv[1]) == 0);
  return 0;
}
