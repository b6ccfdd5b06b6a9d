/* Threads that record events and packets, a data source with a context from a callback, and
 * sessions that start and stop meanwhile: for ThreadSanitizer.
 *
 * With the argument "race", two threads of the program also race. */

#define _GNU_SOURCE

#include <esatto/trace.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, SESSIONS = 8 };

static struct esatto_category net = ESATTO_CATEGORY("net", "What goes over the network");
static struct esatto_data_source source = ESATTO_DATA_SOURCE;
static _Atomic(bool) over;
static int contested;

static void* on_setup(struct PerfettoDsImpl* impl, PerfettoDsInstanceIndex instance, void* config, size_t size, void* user_arg,
                      struct PerfettoDsOnSetupArgs* args) {
  (void)impl, (void)config, (void)size, (void)user_arg, (void)args;
  int* context = malloc(sizeof *context);
  *context = (int)instance;
  return context;
}

static void on_destroy(struct PerfettoDsImpl* impl, void* user_arg, void* context) {
  (void)impl, (void)user_arg;
  free(context);
}

static void* work(void* number) {
  for (int i = 0; !over; i++) {
    ESATTO_SLICE(&net, "answer", ESATTO_ARG("request", i));
    ESATTO_INSTANT(&net, "sent", ESATTO_ARG("to", "localhost"), ESATTO_FLOW(i));
    ESATTO_COUNTER(&net, "open requests", i % 7);
    ESATTO_TRACE(&source, it) {
      ESATTO_PACKET(it, packet) {
        esatto_put_timestamp(packet);
        ESATTO_MESSAGE(packet, 900, test) esatto_put_string(test, 1, "a text that fills the chunks quickly");
      }
      int* context = esatto_lock_instance(&source, it.at.inst_id);
      if (context) {
        ++*context;
        esatto_unlock_instance(&source, it.at.inst_id);
      }
    }
    if (i % 64 == 0) usleep(100);
  }
  return number;
}

static void* race(void* none) {
  for (int i = 0; i < 1000; i++) contested++;
  return none;
}

int main(int argc, char** argv) {
  const char* sources[] = {"com.example.source", NULL};
  pthread_t threads[THREADS];
  int error = 0;
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net);
  struct esatto_data_source_options options = {.on_setup = on_setup, .on_destroy = on_destroy};
  if (!esatto_data_source_register(&source, sources[0], &options)) return 1;
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < SESSIONS && !error; i++) {
    struct esatto_config config = {.buffer_kb = 1024, .data_sources = sources};
    struct PerfettoTracingSessionImpl* session = esatto_session_start(ESATTO_IN_PROCESS, &config);
    usleep(50000);
    error = esatto_session_finish(session, "threads.pftrace");
  }
  over = true;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  if (argc > 1 && !strcmp(argv[1], "race")) {
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, race, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  }
  return error;
}
