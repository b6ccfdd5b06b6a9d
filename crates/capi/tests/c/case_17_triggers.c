/* A session that waits for a trigger. */

#include "common.h"

static void stop_is_over(struct PerfettoTracingSessionImpl* session, void* user_arg) {
  CHECK(session);
  ++*(_Atomic(int)*)user_arg;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct bytes config = config_for("c.triggered", NULL), trigger = {{0}, 0}, triggers = {{0}, 0};
  put_text(&trigger, 1, "c_trigger");
  put_number(&trigger, 3, 1);   /* stop_delay_ms */
  put_number(&triggers, 1, 2);  /* the trigger stops the session */
  put_message(&triggers, 2, &trigger);
  put_number(&triggers, 3, 60000);
  put_message(&config, 17, &triggers);
  static _Atomic(int) over;
  struct PerfettoTracingSessionImpl* session = set_up(&config);
  PerfettoTracingSessionSetStopCb(session, stop_is_over, (void*)&over);
  PerfettoTracingSessionStartBlocking(session);
  const char* others[] = {"something else", NULL};
  PerfettoProducerActivateTriggers(others, 60000);
  usleep(20000);
  CHECK(!over);
  char name[] = "c_trigger";
  const char* names[] = {"something else", name, NULL};
  PerfettoProducerActivateTriggers(names, 60000);
  memset(name, 'x', sizeof name - 1); /* the library has copied them */
  WAIT_FOR(over);
  PerfettoTracingSessionDestroy(session);
  CHECK(over == 1);
  return 0;
}
