/* High-level instants. */

#include "events.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", "Network", NULL, 0};
  struct PerfettoTeCategoryImpl* net = init_with_category(&desc);
  instant(net, "before");
  struct PerfettoTracingSessionImpl* session = record("net", net);
  instant(net, "first");
  instant(net, "second");
  instant(net, NULL);
  struct PerfettoTeHlExtra flush = {PERFETTO_TE_HL_EXTRA_TYPE_FLUSH}, unknown = {999};
  instant(net, "flushed", &flush, &unknown);
  instant(net, "");
  PerfettoTracingSessionStopBlocking(session);
  instant(net, "after");
  finish(session, "trace");
  return 0;
}
