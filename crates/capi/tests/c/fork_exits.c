/* A recorded program whose child ends by exit(). The argument says what the child does before. */

#include <esatto/trace.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net"), other = ESATTO_CATEGORY("other");
static int evaluated;

static const char* name(void) { return evaluated++, "of the child"; }

static int child(const char* does) {
  if (strcmp(does, "traces") == 0) {
    for (int i = 0; i < 100; i++) ESATTO_INSTANT(&net, name());
    CHECK(evaluated == 1 && !esatto_is_enabled(&net));
  } else if (strcmp(does, "traces dynamically") == 0) {
    for (int i = 0; i < 100; i++) ESATTO_INSTANT(ESATTO_ANY, name(), ESATTO_CATEGORY_NAME("any"));
    CHECK(evaluated == 1);
  } else if (strcmp(does, "traces unrecorded events") == 0) {
    ESATTO_INSTANT(&other, name());
    CHECK(evaluated == 0);
  } else if (strcmp(does, "connects") == 0) {
    esatto_init(ESATTO_IN_PROCESS);
    CHECK(!esatto_is_enabled(&net));
    ESATTO_INSTANT(&net, name());
    CHECK(evaluated == 0);
    const char* const categories[] = {"net", NULL};
    struct PerfettoTracingSessionImpl* session =
        esatto_session_start(ESATTO_IN_PROCESS, &(struct esatto_config){.categories = categories});
    CHECK(esatto_is_enabled(&net));
    ESATTO_INSTANT(&net, name());
    esatto_init(ESATTO_IN_PROCESS);
    CHECK(esatto_is_enabled(&net) && evaluated == 1);
    PerfettoTracingSessionDestroy(session);
  } else {
    CHECK(strcmp(does, "nothing") == 0);
  }
  return 0;
}

int main(int argc, char** argv) {
  int status;
  CHECK(argc == 2);
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net, &other);
  const char* const without[] = {"other", NULL};
  struct PerfettoTracingSessionImpl* session =
      esatto_session_start(ESATTO_IN_PROCESS, &(struct esatto_config){.without_categories = without});
  CHECK(esatto_is_enabled(&net) && !esatto_is_enabled(&other));
  pid_t pid = fork();
  if (pid == 0) return child(argv[1]);
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  CHECK(esatto_is_enabled(&net));
  PerfettoTracingSessionDestroy(session);
  return 0;
}
