/* Names are announced once, unless the program writes them inline. */

#include "events.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* net = init_with_category(&desc);
  struct PerfettoTracingSessionImpl* session = record("net", net);
  struct PerfettoTeHlExtra no_intern = {PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN};
  instant(net, "inline", &no_intern);
  instant(net, "inline", &no_intern);
  for (int i = 0; i < 3; i++) instant(net, "static");
  /* The content counts, not the address. */
  char name[] = "from an array";
  instant(net, name);
  memcpy(name, "FROM", 4);
  instant(net, name);
  instant(net, "from an array");
  stop_and_finish(session, "trace");
  return 0;
}
