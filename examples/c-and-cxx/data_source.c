/* A data source of the program: a battery. It writes Perfetto's message BatteryCounters, so that
 * Perfetto's tools draw it.
 *
 * Usage: data_source_c [FILE] */

#define _GNU_SOURCE

#include <esatto/trace.h>

#include <string.h>
#include <unistd.h>

/* Fields of perfetto.protos.TracePacket and perfetto.protos.BatteryCounters. */
enum { PACKET_BATTERY = 38, BATTERY_PERCENT = 2, BATTERY_CURRENT_UA = 3 };

static struct esatto_data_source battery = ESATTO_DATA_SOURCE;

/* A thread of the library calls it when a session wants the data source. */
static void* on_setup(struct PerfettoDsImpl* impl, PerfettoDsInstanceIndex instance, void* config, size_t size, void* user_arg,
                      struct PerfettoDsOnSetupArgs* args) {
  (void)impl, (void)config, (void)size, (void)user_arg, (void)args;
  printf("session %u wants the battery\n", instance);
  return NULL;
}

static void sample(float percent, int64_t current_ua) {
  /* Runs once for each session that wants the data source. Without a session it costs nothing. */
  ESATTO_TRACE(&battery, it) {
    ESATTO_PACKET(it, packet) {
      esatto_put_timestamp(packet);
      ESATTO_MESSAGE(packet, PACKET_BATTERY, counters) {
        esatto_put_float(counters, BATTERY_PERCENT, percent);
        esatto_put_int(counters, BATTERY_CURRENT_UA, current_ua);
      }
    }
  }
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "data_source.pftrace";
  const char* sources[] = {"com.example.battery", NULL};

  esatto_init(ESATTO_IN_PROCESS);
  if (!esatto_data_source_register(&battery, sources[0], &(struct esatto_data_source_options){.on_setup = on_setup})) return 1;
  sample(100, 0); /* no session records this one */

  struct PerfettoTracingSessionImpl* session =
      esatto_session_start(ESATTO_IN_PROCESS, &(struct esatto_config){.no_track_events = true, .data_sources = sources});
  for (int i = 0; i < 10; i++) {
    sample(90.0f - (float)i, -250000 + 1000 * i);
    usleep(1000);
  }

  int error = esatto_session_finish(session, path);
  if (error) {
    fprintf(stderr, "%s: %s\n", path, strerror(error));
    return 1;
  }
  printf("%s\n", path);
  return 0;
}
