/* The descriptors that a service has, and a data source that does not notify of its stop. The test
 * reads the state of the service while the program waits for the file "go_on". */

#include "common.h"

static _Atomic(struct PerfettoDsAsyncStopper*) stopper;

static void on_stop(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* user_arg, void* ctx,
                    struct PerfettoDsOnStopArgs* args) {
  (void)type, (void)instance, (void)user_arg, (void)ctx;
  stopper = PerfettoDsOnStopArgsPostpone(args);
}

/* DataSourceDescriptor { name, will_notify_on_stop, protovm_program } */
static struct bytes describe(const char* name, bool will_notify, uint64_t version) {
  struct bytes descriptor = {{0}, 0}, program = {{0}, 0};
  put_number(&program, 1, version);
  put_text(&descriptor, 1, name);
  put_number(&descriptor, 2, will_notify);
  put_message(&descriptor, 10, &program);
  return descriptor;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct PerfettoDsImpl *silent = PerfettoDsImplCreate(), *telling = PerfettoDsImplCreate();
  PerfettoDsSetOnStopCallback(silent, on_stop);
  struct bytes descriptor = describe("c.silent", false, 4711);
  PERFETTO_ATOMIC(bool)* enabled;
  CHECK(PerfettoDsImplRegister(silent, &enabled, descriptor.at, descriptor.len));
  descriptor = describe("c.telling", true, 1);
  PERFETTO_ATOMIC(bool)* telling_enabled;
  CHECK(PerfettoDsImplRegister(telling, &telling_enabled, descriptor.at, descriptor.len));
  descriptor = describe("c.telling", true, 4712);
  PerfettoDsImplUpdateDescriptor(telling, descriptor.at, descriptor.len);
  /* Bytes that are no descriptor are accepted. */
  struct PerfettoDsImpl* without = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* flag = NULL;
  CHECK(PerfettoDsImplRegister(without, &flag, NULL, 0) && flag && !*flag);

  if (is_system_wide()) WAIT_FOR(access("go_on", F_OK) == 0);

  /* The session does not wait for its stop, which is never completed. */
  struct bytes config = config_for("c.silent", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  WAIT_FOR(*enabled);
  PerfettoTracingSessionStopBlocking(session);
  WAIT_FOR(stopper);
  CHECK(*enabled);
  PerfettoDsStopDone(stopper);
  WAIT_FOR(!*enabled);
  PerfettoTracingSessionDestroy(session);
  return 0;
}
