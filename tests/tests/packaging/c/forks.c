/* A program that records events and forks: for LeakSanitizer, which looks at the end of the child.
 *
 * With the argument "leak", the child also leaks memory of its own. With "stay", nothing forks, and
 * the library is initialised more than once. */

#define _GNU_SOURCE

#include <esatto/trace.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct esatto_category net = ESATTO_CATEGORY("net", "What goes over the network");

__attribute__((noinline)) static void leak(void) {
  void* volatile lost = malloc(77);
  lost = NULL;
  (void)lost;
}

int main(int argc, char** argv) {
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  struct esatto_config config = {.buffer_kb = 1024};
  struct PerfettoTracingSessionImpl* session = esatto_session_start(ESATTO_IN_PROCESS, &config);
  { ESATTO_SLICE(&net, "answer", ESATTO_ARG("request", 1)); }
  if (argc > 1 && !strcmp(argv[1], "stay")) {
    esatto_init(ESATTO_IN_PROCESS);
    esatto_init(ESATTO_IN_PROCESS | ESATTO_SYSTEM);
    return esatto_session_finish(session, "forks.pftrace");
  }
  pid_t child = fork();
  if (child == 0) {
    if (argc > 1 && !strcmp(argv[1], "leak")) leak();
    exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  /* The parent's leaks are not looked at: it has a session. */
  if (esatto_session_finish(session, "forks.pftrace")) return 1;
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
