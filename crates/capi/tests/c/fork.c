/* A process that forks while it records, also inside an iteration. The child is off, the parent
 * goes on. */

#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

static struct PerfettoTeHlExtra* none[] = {NULL};

static void child(struct PerfettoTeCategoryImpl* cat) {
  PERFETTO_ATOMIC(bool)* enabled = PerfettoTeCategoryImplGetEnabled(cat);
  for (int i = 0; i < 1000 && *enabled; i++) {
    CHECK(i == 0); /* The first event switches it off. */
    PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "of the child", none);
  }
  for (int i = 0; i < 1000; i++) PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "of the child", none);
  _exit(0);
}

static void wait_for(pid_t pid) {
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  PerfettoTeInit();
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(&desc);
  struct bytes patterns = {{0}, 0}, te = {{0}, 0};
  put_text(&patterns, 2, "*");
  put_message(&te, 113, &patterns);
  struct bytes config = config_for("track_event", &te);
  struct PerfettoTracingSessionImpl* session = start(&config);
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "before", none);
  pid_t pid = fork();
  if (!pid) child(cat);
  wait_for(pid);

  struct PerfettoTeTimestamp ts = PerfettoTeGetTimestamp();
  struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(cat, ts);
  CHECK(it.ds.tracer);
  pid = fork();
  if (!pid) {
    PerfettoTeLlImplBreak(cat, &it);
    child(cat);
  }
  wait_for(pid);
  PerfettoTeLlImplBreak(cat, &it);
  PerfettoTeHlEmitImpl(cat, PERFETTO_TE_TYPE_INSTANT, "after", none);
  PerfettoTracingSessionStopBlocking(session);
  finish(session, "trace");
  return 0;
}
