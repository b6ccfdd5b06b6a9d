/* A fork between the begin and the end of a packet. The child may continue without effect, and
 * begin another one. The parent's packet is whole. */

#include "sound.h"

static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled;
static int context, object;

static void* on_setup(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance, void* config, size_t size,
                      void* user_arg, struct PerfettoDsOnSetupArgs* args) {
  (void)type, (void)instance, (void)config, (void)size, (void)user_arg, (void)args;
  return &context;
}

static void* on_create(struct PerfettoDsImpl* type, PerfettoDsInstanceIndex instance,
                       struct PerfettoDsTracerImpl* tracer, void* user_arg) {
  (void)type, (void)instance, (void)tracer, (void)user_arg;
  return &object;
}

static void on_delete(void* obj) { CHECK(obj == &object); }

static void the_child_is_off_and_can_begin_anew(struct PerfettoDsImplTracerIterator it, struct PerfettoStreamWriter w) {
  CHECK(!*enabled);
  sw_bytes(&w, "of the child", 12);
  for (int i = 0; i < 100000; i++) sw_byte(&w, 'c');
  PerfettoStreamWriterReserveBytesSlowpath(&w, 40000);
  memset(w.write_ptr - 40000, 'c', 40000);
  CHECK(PerfettoStreamWriterAnnotatePatch(&w, w.write_ptr - 4) == NULL);
  PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  write_packet(it.tracer, "of the child");
  CHECK(PerfettoDsImplGetCustomTls(ds, it.tracer, it.inst_id) == &object);
  CHECK(PerfettoDsTracerImplGetDropCount(it.tracer) == 0);
  PerfettoDsTracerImplFlush(it.tracer, NULL, NULL);
  PerfettoDsImplTraceIterateNext(ds, &it);
  CHECK(!it.tracer);
  CHECK(PerfettoDsImplGetInstanceLocked(ds, 0) == NULL);
  PerfettoDsImplReleaseInstanceLocked(ds, 0);
  CHECK(PerfettoDsImplTraceIterateBegin(ds).tracer == NULL);

  unsetenv("SYSTEM");
  init();
  struct PerfettoTracingSessionImpl* session = start("sound.fork");
  CHECK(*enabled);
  it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer);
  write_packet(it.tracer, "anew");
  PerfettoDsImplTraceIterateBreak(ds, &it);
  struct trace trace = stop_and_read(session);
  CHECK(has(&trace, "anew") && !has(&trace, "of the child") && !has(&trace, "of the parent"));
  _exit(0);
}

int main(void) {
  init();
  ds = PerfettoDsImplCreate();
  PerfettoDsSetOnSetupCallback(ds, on_setup);
  PerfettoDsSetOnCreateTls(ds, on_create);
  PerfettoDsSetOnDeleteTls(ds, on_delete);
  CHECK(register_as(ds, "sound.fork", &enabled));
  struct PerfettoTracingSessionImpl* session = start("sound.fork");
  while (!*enabled) usleep(1000);

  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer && PerfettoDsImplGetInstanceLocked(ds, it.inst_id) == &context);
  struct PerfettoStreamWriter w = PerfettoDsTracerImplPacketBegin(it.tracer);
  struct bytes head = {{0}, 0};
  put_varint(&head, 900 << 3 | 2);
  put_varint(&head, 2 + 26);
  put_varint(&head, 1 << 3 | 2);
  put_varint(&head, 26);
  sw_bytes(&w, head.at, head.len);
  sw_bytes(&w, "of the parent", 13);
  size_t len = w.end - w.begin;
  uint8_t* before = malloc(len);
  memcpy(before, w.begin, len);
  pid_t pid = fork_in_time();
  if (!pid) the_child_is_off_and_can_begin_anew(it, w);
  wait_for_child(pid);
  CHECK(!memcmp(before, w.begin, len));
  free(before);
  sw_bytes(&w, ", all of it.!", 13);
  PerfettoDsTracerImplPacketEnd(it.tracer, &w);
  PerfettoDsImplReleaseInstanceLocked(ds, it.inst_id);
  PerfettoDsImplTraceIterateNext(ds, &it);
  CHECK(!it.tracer && *enabled);
  struct trace trace = stop_and_read(session);
  CHECK(has(&trace, "of the parent, all of it.!") && !has(&trace, "of the child"));
  return 0;
}
