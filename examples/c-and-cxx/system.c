/* A program that the service of the machine records, together with other programs. It draws
 * pictures until a number of them has been recorded.
 *
 * Usage: system_c PICTURES FILE, to let the service record into a file;
 * or system_c [PICTURES], and at the same time:
 *
 *   esatto record -t 5s -o trace.pftrace -c - <<END
 *   buffers { size_kb: 4096 }
 *   data_sources { config {
 *     name: "track_event" track_event_config { enabled_categories: "graphics" }
 *   } }
 *   END */

#define _GNU_SOURCE

#include <esatto/trace.h>

#include <stdlib.h>
#include <unistd.h>

static struct esatto_category graphics = ESATTO_CATEGORY("graphics", "What is drawn");

static void draw(int picture) {
  ESATTO_SLICE(&graphics, "draw", ESATTO_ARG("picture", picture));
  usleep(2000);
}

int main(int argc, char** argv) {
  int pictures = argc > 1 ? atoi(argv[1]) : 1000;

  /* The service may start later: the library connects then. */
  esatto_init(ESATTO_SYSTEM);
  ESATTO_REGISTER(&graphics);

  struct PerfettoTracingSessionImpl* session = NULL;
  if (argc > 2) {
    const char* categories[] = {"graphics", NULL};
    session = esatto_session_start(ESATTO_SYSTEM, &(struct esatto_config){.categories = categories});
  }

  for (int recorded = 0; recorded < pictures;) {
    bool is_recorded = esatto_is_enabled(&graphics);
    draw(recorded);
    if (is_recorded) recorded++;
  }
  /* The flush hands over the last events before the program ends. */
  ESATTO_INSTANT(&graphics, "done", ESATTO_FLUSH);
  return session ? esatto_session_finish(session, argv[2]) : 0;
}
