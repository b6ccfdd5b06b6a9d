/* An instant that the program encodes itself. */

#include "events.h"
#include "message.h"

static struct PerfettoTeCategoryDescriptor desc = {"net", "Network", NULL, 0}, off_desc = {"off", NULL, NULL, 0};

static int by_hand(struct PerfettoTeCategoryImpl* net, const char* name, bool first) {
  struct PerfettoTeTimestamp ts = PerfettoTeGetTimestamp();
  int turns = 0;
  for (struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(net, ts); it.ds.tracer;
       PerfettoTeLlImplNext(net, ts, &it)) {
    turns++;
    CHECK(it.incr);
    /* A trace point inside a trace point does nothing. */
    CHECK(PerfettoTeLlImplBegin(net, ts).ds.tracer == NULL);
    instant(net, "must not be there");
    uint64_t category = PerfettoTeCategoryImplGetIid(net);
    bool category_seen, name_seen, again;
    PerfettoTeLlImplIntern(it.incr, 1, &category, sizeof category, &category_seen);
    uint64_t iid = PerfettoTeLlImplIntern(it.incr, 2, name, strlen(name), &name_seen);
    CHECK(category && iid && name_seen == !first);
    CHECK(PerfettoTeLlImplIntern(it.incr, 2, name, strlen(name), &again) == iid && again);
    /* Tables are separate. */
    PerfettoTeLlImplIntern(it.incr, 3, name, strlen(name), &again);
    CHECK(again == !first);
    CHECK(PerfettoTeLlImplTrackSeen(it.incr, 987654321) == !first);
    CHECK(PerfettoTeLlImplTrackSeen(it.incr, 987654321));
    CHECK(PerfettoTeLlImplDynCatEnabled(it.ds.tracer, it.ds.inst_id, &desc));
    CHECK(!PerfettoTeLlImplDynCatEnabled(it.ds.tracer, it.ds.inst_id, &off_desc));

    struct PerfettoStreamWriter w;
    begin_packet(it.ds.tracer, &w);
    struct message packet = root_message(&w);
    m_number(&packet, 8, ts.value);
    m_number(&packet, 58, ts.clock_id);
    m_number(&packet, 13, 2);
    struct message event = m_begin(&packet, 11);
    m_number(&event, 9, PERFETTO_TE_TYPE_INSTANT);
    m_number(&event, 3, category);
    m_number(&event, 10, iid);
    m_end(&event);
    if (!category_seen || !name_seen) {
      struct message interned = m_begin(&packet, 12);
      if (!category_seen) {
        struct message entry = m_begin(&interned, 1);
        m_number(&entry, 1, category);
        m_text(&entry, 2, desc.name);
        m_end(&entry);
      }
      if (!name_seen) {
        struct message entry = m_begin(&interned, 2);
        m_number(&entry, 1, iid);
        m_text(&entry, 2, name);
        m_end(&entry);
      }
      m_end(&interned);
    }
    end_packet(it.ds.tracer, &w);
  }
  return turns;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  struct PerfettoTeCategoryImpl* net = init_with_category(&desc);
  struct PerfettoTeCategoryImpl* off = PerfettoTeCategoryImplCreate(&off_desc);
  CHECK(by_hand(net, "before", true) == 0);
  struct PerfettoTracingSessionImpl* session = record("net", net);
  instant(net, "high");
  CHECK(by_hand(net, "low", true) == 1);
  CHECK(by_hand(net, "low", false) == 1);
  instant(net, "high");
  CHECK(PerfettoTeLlImplBegin(off, PerfettoTeGetTimestamp()).ds.tracer == NULL);
  struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(net, PerfettoTeGetTimestamp());
  CHECK(it.ds.tracer);
  PerfettoTeLlImplBreak(net, &it);
  instant(net, "last");
  stop_and_finish(session, "trace");
  CHECK(by_hand(net, "after", true) == 0);
  return 0;
}
