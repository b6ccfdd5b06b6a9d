/* Every macro of esatto/trace.h. The trace goes to the file of the first argument. */

#include <esatto/trace.h>

#include "check.h"

static struct esatto_category net = ESATTO_CATEGORY("net", "Network", "fast", "wide");
static struct esatto_category plain = ESATTO_CATEGORY("plain");
static struct esatto_category off = ESATTO_CATEGORY("off", "Not recorded");

static struct esatto_category debug = ESATTO_CATEGORY("debug", "Not recorded unless it is asked for", "debug");

static int evaluated;

static int count(void) { return ++evaluated; }

static const char* name_of_it(void) {
  evaluated++;
  return "name";
}

static void nobody_records(void) {
  ESATTO_SLICE(&off, name_of_it(), ESATTO_ARG("n", count()));
  ESATTO_BEGIN(&off, name_of_it(), ESATTO_ARG("n", count()));
  ESATTO_END(&off, ESATTO_ARG("n", count()));
  ESATTO_INSTANT(&off, name_of_it(), ESATTO_FLOW(count()));
  ESATTO_COUNTER(&off, name_of_it(), count());
  ESATTO_STATE(&off, "thing", name_of_it());
  CHECK(evaluated == 0);
}

static int leaves_early(int how) {
  ESATTO_SLICE(&net, "leaves early", ESATTO_ARG("how", how));
  if (how == 0) return how;
  for (;;) {
    ESATTO_SLICE(&net, "in a loop");
    if (how == 1) break;
    if (how == 2) goto out;
    return count();
  }
out:
  return how;
}

static void annotations(void) {
  short s = -2;
  unsigned char c = 200;
  float f = 0.25f;
  const char* text = "text";
  char array[] = "array";
  bool yes = true;
  int number = 0;
  ESATTO_INSTANT(&net, "annotated", ESATTO_ARG("bool", yes), ESATTO_ARG("char", (char)'c'), ESATTO_ARG("short", s),
                 ESATTO_ARG("int", -3), ESATTO_ARG("long", -4L), ESATTO_ARG("long long", INT64_MIN), ESATTO_ARG("byte", c),
                 ESATTO_ARG("unsigned", 5u), ESATTO_ARG("u64", (uint64_t)1 << 40), ESATTO_ARG("float", f),
                 ESATTO_ARG("double", 2.5), ESATTO_ARG("text", text), ESATTO_ARG("literal", "literal"),
                 ESATTO_ARG("array", array), ESATTO_ARG("pointer", (void*)0x10), ESATTO_ARG("null", (const char*)NULL));
  ESATTO_INSTANT(&net, "explicit", ESATTO_ARG_BOOL("bool", 1 < 2), ESATTO_ARG_INT("int", -1), ESATTO_ARG_UINT("uint", 7),
                 ESATTO_ARG_DOUBLE("double", 1), ESATTO_ARG_STRING("string", "s"), ESATTO_ARG_POINTER("pointer", &number));
}

/* The value of each is an integer, or has a fraction. */
static void counters_of_all_types(void) {
  struct {
    unsigned small : 3;
    _Bool flag : 1;
  } bits = {5, 1};
  volatile short negative = -7;
  enum { THREE = 3 } three = THREE;
  int evaluated_once = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#if defined(__GNUC__) && !defined(__clang__)
  ESATTO_COUNTER(&net, "types", (_Float32)1.25);
  ESATTO_COUNTER(&net, "types", (_Float64)1.5);
  ESATTO_COUNTER(&net, "types", (_Float32x)1.75);
#else
  ESATTO_COUNTER(&net, "types", 1.25f);
  ESATTO_COUNTER(&net, "types", 1.5);
  ESATTO_COUNTER(&net, "types", 1.75L);
#endif
#pragma GCC diagnostic pop
  ESATTO_COUNTER(&net, "types", bits.small);
  ESATTO_COUNTER(&net, "types", bits.flag);
  ESATTO_COUNTER(&net, "types", negative);
  ESATTO_COUNTER(&net, "types", three);
  ESATTO_COUNTER(&net, "types", 'a');
  ESATTO_COUNTER(&net, "types", ++evaluated_once);
  ESATTO_COUNTER(&net, "types", UINT64_C(1) << 40);
}

static void tracks(void) {
  struct esatto_track worker, celsius, light;
  CHECK(esatto_track_open(&worker, ESATTO_TRACK_OF_SLICES, "worker", &(struct esatto_track_options){.parent = esatto_process_track(), .id = 7}));
  CHECK(esatto_track_open(&celsius, ESATTO_TRACK_OF_VALUES, "heat", &(struct esatto_track_options){.unit = "C", .below = &worker}));
  CHECK(esatto_track_open(&light, ESATTO_TRACK_OF_STATES, "light", NULL));
  {
    ESATTO_SLICE(&net, "on a track", ESATTO_ON(&worker), ESATTO_ARG("n", 1));
    ESATTO_SLICE(&net, "on a named track", ESATTO_ARG("n", 2), ESATTO_ON_NAMED("named", 3));
    ESATTO_SLICE(&net, "on a nested track",
                 ESATTO_ON_NESTED(ESATTO_NEST_PROCESS, ESATTO_NEST("outer", .child_ordering = PERFETTO_TE_HL_CHILD_ORDERING_EXPLICIT),
                                  ESATTO_NEST("inner", .id = 4, .sibling_order_rank = 2)));
    ESATTO_INSTANT(&net, "on the process", ESATTO_ON_PROCESS);
  }
  ESATTO_INSTANT(&net, "below the worker", ESATTO_ON_NESTED(ESATTO_NEST_TRACK(&worker), ESATTO_NEST("below")));
  ESATTO_INSTANT(&net, "below the thread", ESATTO_ON_NESTED(ESATTO_NEST_THREAD, ESATTO_NEST("below the thread")));
  ESATTO_INSTANT(&net, "of no process", ESATTO_ON_NAMED_UNDER(0, "global", 1));
  ESATTO_COUNTER_ON(&net, &celsius, 20);
  ESATTO_COUNTER_ON(&net, &celsius, 20.5);
  ESATTO_COUNTER(&net, "packets", 3u);
  ESATTO_COUNTER(&net, "packets", -4);
  ESATTO_COUNTER(&net, "load", 0.75f, ESATTO_ARG("why", "because"));
  ESATTO_COUNTER(&net, "load", 0.5L);
  counters_of_all_types();
  ESATTO_STATE(&net, "machine", "on");
  ESATTO_STATE(&net, "machine", NULL, ESATTO_ARG("why", "because"));
  ESATTO_STATE_ON(&net, &light, "green");
  ESATTO_STATE_ON(&net, &light, "red");
  esatto_track_close(&worker);
  esatto_track_close(&celsius);
  esatto_track_close(&light);
}

/* Slices whose category is known at run time end only where they began. */
static void dynamic_slices(void) {
  ESATTO_SLICE(&net, "around");
  {
    ESATTO_SLICE(ESATTO_ANY, "must not be there", ESATTO_CATEGORY_NAME("off"));
    ESATTO_SLICE(ESATTO_ANY, "must not be there", ESATTO_ON_NAMED("named", 3), ESATTO_CATEGORY_NAME("off"));
  }
  {
    ESATTO_SLICE(ESATTO_ANY, "slice of a dynamic category", ESATTO_CATEGORY_NAME("plain"));
    ESATTO_INSTANT(&net, "inside 2");
  }
  ESATTO_INSTANT(&net, "inside 1");
}

static void the_rest(void) {
  dynamic_slices();
  struct PerfettoTeTimestamp before = esatto_now(), after = before;
  char name[32];
  before.value -= 2000000;
  after.value -= 500000;
  ESATTO_BEGIN(&plain, "1.5 ms", ESATTO_AT(before), ESATTO_ON_NAMED("past", 0));
  ESATTO_END(&plain, ESATTO_AT(after), ESATTO_ON_NAMED("past", 0));

  ESATTO_INSTANT(&net, "starts", ESATTO_FLOW(1), ESATTO_FLOW_ACROSS(0xabcdef));
  ESATTO_INSTANT(&net, "ends", ESATTO_FLOW_ENDS(1), ESATTO_FLOW_ACROSS_ENDS(0xabcdef));
  ESATTO_INSTANT(&net, "correlated", ESATTO_CORRELATION(11));
  ESATTO_INSTANT(&net, "correlated by text", ESATTO_CORRELATION_TEXT("eleven"));
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "dynamic %d", i);
    ESATTO_INSTANT(&net, name, ESATTO_NO_INTERN);
  }
  ESATTO_INSTANT(ESATTO_ANY, "of a dynamic category", ESATTO_CATEGORY_NAME("plain"));
  ESATTO_INSTANT(ESATTO_ANY, "must not be there", ESATTO_CATEGORY_NAME("off"));
  ESATTO_INSTANT(&net, "typed",
                 ESATTO_FIELDS(ESATTO_FIELD_MESSAGE(33, ESATTO_FIELD_STRING(2, "file.c"), ESATTO_FIELD_VARINT(4, 17),
                                                    ESATTO_FIELD_FIXED32(1000, 1), ESATTO_FIELD_FLOAT(1001, 1.5f)),
                               ESATTO_FIELD_MESSAGE(4, ESATTO_FIELD_INTERNED(1, "interned", 3), ESATTO_FIELD_DOUBLE(5, 0.5)),
                               ESATTO_FIELD_MESSAGE(4, ESATTO_FIELD_STRING(10, "bytes"), ESATTO_FIELD_BYTES(6, "a b", 3)),
                               ESATTO_FIELD_FIXED64(47, 0xabcdef)));
  ESATTO_INSTANT(&net, "last", ESATTO_FLUSH);
}

static struct esatto_data_source weather = ESATTO_DATA_SOURCE;
static char order[32];
static int states;

static void note(char what) { order[strlen(order)] = what; }

static void* on_setup(struct PerfettoDsImpl* impl, PerfettoDsInstanceIndex instance, void* config, size_t size, void* user_arg,
                      struct PerfettoDsOnSetupArgs* args) {
  (void)instance, (void)config, (void)args;
  CHECK(impl && size && user_arg == &states);
  note('u');
  return order;
}

static void on_start(struct PerfettoDsImpl* impl, PerfettoDsInstanceIndex instance, void* user_arg, void* context,
                     struct PerfettoDsOnStartArgs* args) {
  (void)impl, (void)instance, (void)user_arg, (void)args;
  CHECK(context == order);
  note('s');
}

static void on_stop(struct PerfettoDsImpl* impl, PerfettoDsInstanceIndex instance, void* user_arg, void* context,
                    struct PerfettoDsOnStopArgs* args) {
  (void)impl, (void)instance, (void)user_arg, (void)context, (void)args;
  note('e');
}

static void on_flush(struct PerfettoDsImpl* impl, PerfettoDsInstanceIndex instance, void* user_arg, void* context,
                     struct PerfettoDsOnFlushArgs* args) {
  (void)impl, (void)instance, (void)user_arg, (void)context, (void)args;
  note('f');
}

static void on_destroy(struct PerfettoDsImpl* impl, void* user_arg, void* context) {
  (void)impl, (void)user_arg, (void)context;
  note('d');
}

static void* create_state(struct PerfettoDsImpl* impl, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer,
                          void* user_arg) {
  (void)impl, (void)instance, (void)tracer, (void)user_arg;
  states++;
  return calloc(1, sizeof(int));
}

static void delete_state(void* state) {
  states--;
  free(state);
}

/* Leaves the blocks in every possible way. Returns the number of packets. */
static int report(const char* text, int pieces) {
  int packets = 0;
  ESATTO_TRACE(&weather, it) {
    CHECK(esatto_drop_count(&it) == 0 && it.at.inst_id < 8);
    ++*(int*)esatto_incremental_state(&it);
    ++*(int*)esatto_thread_state(&it);
    ESATTO_PACKET(it, empty) { continue; }
    ESATTO_PACKET(it, packet) {
      packets++;
      esatto_put_timestamp(packet);
      ESATTO_MESSAGE(packet, 900, test) {
        char piece[200];
        memset(piece, 'p', sizeof piece);
        esatto_put_string(test, 1, text);
        ESATTO_MESSAGE(test, 5, payload) {
          for (int i = 0; i < pieces; i++) esatto_put_bytes(payload, 1, piece, sizeof piece);
          if (pieces == 1) break;
        }
      }
      break;
    }
    ESATTO_TRACE(&weather, again) packets = 100;
    if (pieces == 1) return packets;
    esatto_flush(&it, NULL, NULL);
    if (pieces == 2) break;
    if (pieces == 3) goto out;
  }
out:
  return packets;
}

static void data_sources(const char* path) {
  const char* names[] = {"c.weather", NULL};
  CHECK(report("nobody hears it", 1) == 0);
  CHECK(esatto_data_source_register(&weather, "c.weather", &(struct esatto_data_source_options){
      .on_setup = on_setup, .on_start = on_start, .on_stop = on_stop, .on_flush = on_flush, .on_destroy = on_destroy, .user_arg = &states,
      .create_thread_state = create_state, .delete_thread_state = delete_state,
      .create_incremental_state = create_state, .delete_incremental_state = delete_state,
      .policy = PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_STALL_AND_DROP, .policy_is_up_to_sessions = true}));
  CHECK(esatto_data_source_register(&weather, "c.weather", NULL));
  CHECK(report("nobody hears it", 1) == 0);
  struct PerfettoTracingSessionImpl* session =
      esatto_session_start(ESATTO_IN_PROCESS, &(struct esatto_config){.no_track_events = true, .data_sources = names});
  for (int i = 0; i < 3; i++) CHECK(report("small", i + 1) == 1);
  CHECK(report("large", 100) == 1);
  CHECK(states == 2);
  CHECK(esatto_lock_instance(&weather, 0) == order);
  esatto_unlock_instance(&weather, 0);
  CHECK(PerfettoTracingSessionFlushBlocking(session, 5000));
  CHECK(esatto_session_finish(session, path) == 0);
  CHECK(strncmp(order, "usf", 3) == 0 && strcmp(order + strlen(order) - 2, "ed") == 0);
  CHECK(report("nobody hears it", 1) == 0 && !esatto_lock_instance(&weather, 0));
}

/* A session that the service refuses has no packets. What is in the file stays. */
static void refused(const char* path) {
  char content[8] = "";
  const struct esatto_config huge = {.buffer_kb = 2000000000};
  FILE* file = fopen(path, "wb");
  CHECK(file && fputs("earlier", file) >= 0 && fclose(file) == 0);
  CHECK(esatto_session_finish(esatto_session_start(ESATTO_IN_PROCESS, &huge), path) == ENODATA);
  file = fopen(path, "rb");
  CHECK(file && fread(content, 1, sizeof content, file) == 7 && strcmp(content, "earlier") == 0);
  fclose(file);
  CHECK(remove(path) == 0);
  CHECK(esatto_session_finish(esatto_session_start(ESATTO_IN_PROCESS, &huge), path) == ENODATA);
  file = fopen(path, "rb");
  CHECK(!file);
}

/* A program that reads from a pipe gets the whole trace, and then the end. */
static void into_a_pipe(struct PerfettoTracingSessionImpl* session, const char* path) {
  char text[4096];
  const char* make = "rm -f '%s'.* && mkfifo '%s.pipe' && ((cat '%s.pipe' > '%s.part'; mv '%s.part' '%s.copy') &)";
  const char* wait = "for i in $(seq 1000); do test -s '%s.copy' && exit; sleep 0.01; done; false";
  snprintf(text, sizeof text, make, path, path, path, path, path, path);
  CHECK(system(text) == 0);
  snprintf(text, sizeof text, "%s.pipe", path);
  CHECK(esatto_session_finish(session, text) == 0);
  snprintf(text, sizeof text, wait, path);
  CHECK(system(text) == 0);
}

/* Events from before esatto_session_save are in the file, though the session still records. */
static void saved_while_it_records(const char* path) {
  static const char name[] = "before it is saved";
  char bytes[64 * 1024];
  size_t size, at = 0;
  FILE* file;
  struct PerfettoTracingSessionImpl* session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  ESATTO_INSTANT(&plain, name);
  CHECK(esatto_session_save(session, path) == 0);
  file = fopen(path, "rb");
  CHECK(file);
  size = fread(bytes, 1, sizeof bytes, file);
  CHECK(fclose(file) == 0);
  while (at + strlen(name) <= size && memcmp(bytes + at, name, strlen(name)) != 0) at++;
  CHECK(at + strlen(name) <= size);
  CHECK(remove(path) == 0);
  PerfettoTracingSessionDestroy(session);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  nobody_records();
  ESATTO_INSTANT(ESATTO_ANY, name_of_it(), ESATTO_CATEGORY_NAME("plain"));
  CHECK(evaluated == 0);
  esatto_init(ESATTO_IN_PROCESS);
  ESATTO_REGISTER(&net, &plain, &off, &debug);
  ESATTO_REGISTER(&net);
  CHECK(net.descriptor.num_tags == 2 && plain.descriptor.num_tags == 0);

  const char* names[] = {"net", "pl*", NULL};
  const char* without[] = {"*", NULL};
  struct PerfettoTracingSessionImpl* session =
      esatto_session_start(ESATTO_IN_PROCESS, &(struct esatto_config){.categories = names, .without_categories = without});
  CHECK(esatto_is_enabled(&net) && esatto_is_enabled(&plain));
  nobody_records();
  ESATTO_BEGIN(&plain, "outer");
  for (int how = 0; how < 4; how++) leaves_early(how);
  ESATTO_END(&plain);
  annotations();
  tracks();
  the_rest();
  CHECK(esatto_session_save(session, "/no such folder/trace") == ENOENT);
  refused(argv[2]);
  CHECK(esatto_session_finish(session, argv[1]) == 0);
  CHECK(!esatto_is_enabled(&net));
  session = esatto_session_start(ESATTO_IN_PROCESS, NULL);
  CHECK(esatto_is_enabled(&net) && esatto_is_enabled(&off) && !esatto_is_enabled(&debug));
  into_a_pipe(session, argv[2]);
  saved_while_it_records(argv[2]);
  data_sources(argv[2]);
  esatto_unregister_category(&off);
  esatto_unregister_category(&off);
  CHECK(!esatto_is_enabled(&off));
  return 0;
}
