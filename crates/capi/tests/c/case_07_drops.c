/* Packets that do not fit are dropped and counted. */

#include "common.h"

static _Atomic(bool) blocked, go_on;

static void block(void* user_arg) {
  (void)user_arg;
  blocked = true;
  WAIT_FOR(go_on);
}

/* Writes packets of about 1000 bytes. Returns the number of lost ones. */
static uint64_t write_packets(struct PerfettoDsImpl* ds, int count) {
  static char text[1000];
  memset(text, 'd', sizeof text);
  uint64_t dropped = 0;
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    for (int i = 0; i < count; i++) {
      struct bytes head = {{0}, 0};
      put_varint(&head, 900 << 3 | 2);
      put_varint(&head, sizeof text + 3);
      put_varint(&head, 1 << 3 | 2);
      put_varint(&head, sizeof text);
      struct PerfettoStreamWriter w;
      begin_packet(it.tracer, &w);
      write_all(&w, &head);
      write_bytes(&w, text, sizeof text);
      end_packet(it.tracer, &w);
    }
    dropped = PerfettoDsTracerImplGetDropCount(it.tracer);
  }
  return dropped;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  register_as(ds, "c.drops");
  struct bytes config = config_for("c.drops", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  CHECK(write_packets(ds, 1) == 0);
  flush_thread(ds, block, NULL);
  WAIT_FOR(blocked);
  uint64_t dropped = write_packets(ds, 2 * 1024);
  CHECK(dropped > 0);
  CHECK(write_packets(ds, 1) >= dropped);
  go_on = true;
  /* As soon as there is room again, packets arrive, and the count does not change. */
  CHECK(PerfettoTracingSessionFlushBlocking(session, 0));
  CHECK(write_packets(ds, 1) >= dropped);
  CHECK(trace_text(ds, "there is room again") == 1);
  stop_and_finish(session, "trace");
  return 0;
}
