/* A first trace: a kitchen at work, recorded by the program itself.
 *
 * Usage: first_trace_c [FILE], then open the file in ui.perfetto.dev. */

#define _GNU_SOURCE

#include <esatto/trace.h>

#include <string.h>
#include <unistd.h>

static struct esatto_category kitchen = ESATTO_CATEGORY("kitchen", "What is cooked");
static struct esatto_category stove = ESATTO_CATEGORY("stove", "What the stove does");

static void cook(int order, const char* dish, int minutes) {
  /* From here to the end of the function. */
  ESATTO_SLICE(&kitchen, dish, ESATTO_FLOW(order), ESATTO_ARG("order", order), ESATTO_ARG("minutes", minutes));
  for (int i = 0; i < minutes; i++) {
    ESATTO_COUNTER(&stove, "degrees", 150 + 10 * i);
    usleep(1000);
  }
  if (minutes > 3) ESATTO_INSTANT(&kitchen, "burnt", ESATTO_ARG("why", "too long"));
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "first_trace.pftrace";

  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&kitchen, &stove);

  /* Without a session, trace points do nothing. */
  struct PerfettoTracingSessionImpl* session = esatto_session_start(ESATTO_IN_PROCESS, &(struct esatto_config){.buffer_kb = 1024});

  for (int order = 1; order <= 3; order++) {
    /* Orders have their own track, and an arrow to their results. */
    ESATTO_INSTANT(&kitchen, "order", ESATTO_ON_NAMED("orders", 0), ESATTO_FLOW(order), ESATTO_ARG("order", order));
    cook(order, order == 2 ? "stew" : "soup", order + 1);
  }

  int error = esatto_session_finish(session, path);
  if (error) {
    fprintf(stderr, "%s: %s\n", path, strerror(error));
    return 1;
  }
  printf("%s\n", path);
  return 0;
}
