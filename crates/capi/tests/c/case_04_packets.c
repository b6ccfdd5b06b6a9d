/* Packets encoded by inline functions: small ones, and some over several chunks. */

#include "message.h"

static struct PerfettoDsImpl* ds;

/* TracePacket { 8: timestamp, 900: { 1: str, 5: { 1: piece… , 2: { 1: piece… }… } } } */
static void trace(const char* text, int pieces, size_t piece_size, int depth) {
  char* piece = malloc(piece_size);
  for (struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds); it.tracer;
       PerfettoDsImplTraceIterateNext(ds, &it)) {
    struct PerfettoStreamWriter w;
    begin_packet(it.tracer, &w);
    struct message packet = root_message(&w), event = m_begin(&packet, 900), nested[8];
    m_text(&event, 1, text);
    for (int level = 0; level < depth; level++) {
      nested[level] = m_begin(level ? &nested[level - 1] : &event, level ? 2 : 5);
      for (int i = 0; i < pieces; i++) {
        memset(piece, 'a' + (level * pieces + i) % 26, piece_size);
        m_bytes(&nested[level], 1, piece, piece_size);
      }
    }
    while (depth) m_end(&nested[--depth]);
    m_end(&event);
    m_number(&packet, 8, PerfettoDsGetTimestamp().value);
    end_packet(it.tracer, &w);
    CHECK(PerfettoDsTracerImplGetDropCount(it.tracer) == 0);
  }
  free(piece);
}

static void* on_another_thread(void* arg) {
  trace((const char*)arg, 2, 10, 1);
  return NULL;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled = register_as(ds, "c.packets");
  trace("before", 1, 1, 1);
  struct bytes config = config_for("c.packets", NULL);
  struct PerfettoTracingSessionImpl* session = start(&config);
  WAIT_FOR(*enabled);
  trace("small", 1, 5, 1);
  trace("large", 40, 1000, 1);
  trace("one large piece", 1, 30000, 1);
  trace("deep", 3, 5000, 8);
  trace("behind", 2, 5, 2);
  on_a_thread(on_another_thread, "another thread");
  trace("last", 1, 1, 1);
  PerfettoTracingSessionStopBlocking(session);
  trace("after", 1, 1, 1);
  finish(session, "trace");
  return 0;
}
