/* Objects of threads: made when they are needed, kept, and deleted by their thread. */

#include "common.h"

static struct PerfettoDsImpl* ds;
static int user;
static _Atomic(int) alive_tls, alive_incr, made_tls, made_incr;

struct object {
  pthread_t owner;
  PerfettoDsInstanceIndex instance;
};

static void* make(PerfettoDsInstanceIndex instance) {
  struct object* object = malloc(sizeof *object);
  object->owner = pthread_self();
  object->instance = instance;
  /* Trace points in here do nothing. */
  CHECK(PerfettoDsImplTraceIterateBegin(ds).tracer == NULL);
  return object;
}

static void* create_tls(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer,
                        void* user_arg) {
  CHECK(type == ds && tracer && user_arg == &user);
  alive_tls++;
  made_tls++;
  return make(instance);
}

static void* create_incr(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, struct PerfettoDsTracerImpl* tracer,
                         void* user_arg) {
  CHECK(type == ds && tracer && user_arg == &user);
  alive_incr++;
  made_incr++;
  return make(instance);
}

static void drop(void* obj) {
  CHECK(pthread_equal(((struct object*)obj)->owner, pthread_self()));
  free(obj);
}

static void delete_tls(void* obj) {
  alive_tls--;
  drop(obj);
}

static void delete_incr(void* obj) {
  alive_incr--;
  drop(obj);
}

struct seen {
  void *tls[8], *incr[8];
};

/* Returns the number of turns, and the objects in them. */
static int look(struct seen* seen) {
  int turns = 0;
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    struct object* tls = PerfettoDsImplGetCustomTls(ds, it.tracer, it.inst_id);
    struct object* incr = PerfettoDsImplGetIncrementalState(ds, it.tracer, it.inst_id);
    CHECK(tls && incr && tls != incr && tls->instance == it.inst_id && incr->instance == it.inst_id);
    CHECK(PerfettoDsImplGetCustomTls(ds, it.tracer, it.inst_id) == tls);
    CHECK(PerfettoDsImplGetIncrementalState(ds, it.tracer, it.inst_id) == incr);
    if (seen->tls[it.inst_id]) CHECK(seen->tls[it.inst_id] == tls && seen->incr[it.inst_id] == incr);
    seen->tls[it.inst_id] = tls;
    seen->incr[it.inst_id] = incr;
    turns++;
  }
  return turns;
}

static void* another_thread(void* arg) {
  struct seen* of_main = arg;
  struct seen own = {{NULL}, {NULL}};
  CHECK(look(&own) == 1 && look(&own) == 1);
  CHECK(own.tls[0] != of_main->tls[0] && own.incr[0] != of_main->incr[0]);
  CHECK(alive_tls == 2 && alive_incr == 2);
  return NULL;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnCreateTls(ds, create_tls);
  PerfettoDsSetOnDeleteTls(ds, delete_tls);
  PerfettoDsSetOnCreateIncr(ds, create_incr);
  PerfettoDsSetOnDeleteIncr(ds, delete_incr);
  PerfettoDsSetCbUserArg(ds, &user);
  register_as(ds, "c.state");
  struct bytes config = config_for("c.state", NULL);
  struct PerfettoTracingSessionImpl* first = start(&config);
  CHECK(made_tls == 0 && made_incr == 0);
  struct seen seen = {{NULL}, {NULL}};
  CHECK(look(&seen) == 1 && made_tls == 1 && made_incr == 1);
  CHECK(look(&seen) == 1 && made_tls == 1 && made_incr == 1);

  on_a_thread(another_thread, &seen);
  /* The thread has ended, and its objects were deleted. */
  CHECK(alive_tls == 1 && alive_incr == 1 && made_tls == 2);

  /* Another instance has its own objects. */
  struct PerfettoTracingSessionImpl* second = start(&config);
  CHECK(look(&seen) == 2 && alive_tls == 2 && alive_incr == 2);
  CHECK(seen.tls[0] != seen.tls[1] && seen.incr[0] != seen.incr[1]);
  PerfettoTracingSessionStopBlocking(second);
  CHECK(look(&seen) == 1 && alive_tls == 1 && alive_incr == 1);

  /* After the last instance, the next trace point of any session deletes them. */
  PerfettoTracingSessionStopBlocking(first);
  struct PerfettoTracingSessionImpl* third = start(&config);
  struct seen anew = {{NULL}, {NULL}};
  CHECK(look(&anew) == 1 && alive_tls == 1 && alive_incr == 1 && made_tls == 4 && made_incr == 4);
  PerfettoTracingSessionDestroy(first);
  PerfettoTracingSessionDestroy(second);
  PerfettoTracingSessionStopBlocking(third);
  PerfettoTracingSessionDestroy(third);

  /* With only one of the two callbacks there is no object. */
  struct PerfettoDsImpl* half = PerfettoDsImplCreate();
  PerfettoDsSetOnCreateTls(half, create_tls);
  PerfettoDsSetOnDeleteIncr(half, delete_incr);
  register_as(half, "c.half");
  config = config_for("c.half", NULL);
  struct PerfettoTracingSessionImpl* fourth = start(&config);
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(half);
  CHECK(it.tracer && !PerfettoDsImplGetCustomTls(half, it.tracer, it.inst_id));
  CHECK(!PerfettoDsImplGetIncrementalState(half, it.tracer, it.inst_id) && made_tls == 4);
  PerfettoDsImplTraceIterateBreak(half, &it);
  PerfettoTracingSessionDestroy(fourth);
  return 0;
}
