/* A program that records events and forks: for LeakSanitizer, which looks at the end of the child.
 *
 * With the argument "leak", the child also leaks memory of its own. With "stay", nothing forks, the
 * library is initialised more than once, and threads with packets come and go. */

#define _GNU_SOURCE

#include <esatto/trace.h>
#include <pthread.h>
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

static struct esatto_data_source source = ESATTO_DATA_SOURCE;

/* Messages that do not end in the chunk in which they begin. */
static void* write_packets(void* none) {
  for (int i = 0; i < 100; i++) {
    ESATTO_TRACE(&source, it) {
      ESATTO_PACKET(it, packet) {
        esatto_put_timestamp(packet);
        ESATTO_MESSAGE(packet, 900, test) {
          for (int part = 0; part < 10; part++) esatto_put_string(test, 1, "a text that fills the chunks quickly");
        }
      }
    }
  }
  return none;
}

int main(int argc, char** argv) {
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  const char* sources[] = {"com.example.source", NULL};
  if (!esatto_data_source_register(&source, sources[0], NULL)) return 1;
  struct esatto_config config = {.buffer_kb = 1024, .data_sources = sources};
  struct PerfettoTracingSessionImpl* session = esatto_session_start(ESATTO_IN_PROCESS, &config);
  { ESATTO_SLICE(&net, "answer", ESATTO_ARG("request", 1)); }
  if (argc > 1 && !strcmp(argv[1], "stay")) {
    esatto_init(ESATTO_IN_PROCESS);
    esatto_init(ESATTO_IN_PROCESS | ESATTO_SYSTEM);
    for (int i = 0; i < 4; i++) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, write_packets, NULL) || pthread_join(thread, NULL)) return 1;
    }
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
