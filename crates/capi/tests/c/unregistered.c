/* Categories that are not registered. The trace goes to the file of the first argument. */

#include <esatto/trace.h>

#include "check.h"

static struct esatto_category registered = ESATTO_CATEGORY("registered");
static struct esatto_category forgotten = ESATTO_CATEGORY("forgotten", "With a description", "slow");
static struct esatto_category late = ESATTO_CATEGORY("late");
static struct esatto_category many[20];

static int evaluated;

static void trace(void) {
  ESATTO_SLICE(&registered, "slice");
  ESATTO_INSTANT(&forgotten, "lost", ESATTO_ARG("number", ++evaluated));
  ESATTO_INSTANT(&late, "late", ESATTO_ARG("number", ++evaluated));
  CHECK(!esatto_is_enabled(&forgotten));
}

int main(int argc, char** argv) {
  struct PerfettoTracingSessionImpl* session;
  CHECK(argc == 2);
  trace();
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&registered);
  trace();
  fputs("session\n", stderr);
  session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  for (int i = 0; i < 3; i++) trace();
  CHECK(evaluated == 0);
  ESATTO_REGISTER(&late);
  trace();
  CHECK(evaluated == 1);
  esatto_unregister_category(&late);
  trace();
  CHECK(evaluated == 1);
  fputs("many\n", stderr);
  for (int i = 0; i < 20; i++) {
    many[i] = (struct esatto_category)ESATTO_CATEGORY("one of many");
    ESATTO_INSTANT(&many[i], "lost");
  }
  fputs("end\n", stderr);
  CHECK(esatto_session_finish(session, argv[1]) == 0);
  trace();
  return 0;
}
