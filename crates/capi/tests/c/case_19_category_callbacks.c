/* A category whose callback learns of sessions. */

#include "events.h"

static struct PerfettoTeCategoryDescriptor desc = {"net", "Network", NULL, 0};
static struct PerfettoTeCategoryImpl* net;

struct call {
  PerfettoDsInstanceIndex instance;
  bool created, global;
};
static struct call calls[8];
static int num_calls;

static void on_switch(struct PerfettoTeCategoryImpl* cat, PerfettoDsInstanceIndex instance, bool created, bool global,
                      void* user_arg) {
  CHECK(cat == net && user_arg == (void*)calls && num_calls < 8);
  calls[num_calls++] = (struct call){instance, created, global};
  if (created) instant(cat, "from the callback");
}

static bool is(int number, bool created, bool global) {
  return num_calls == number + 1 && calls[number].created == created && calls[number].global == global;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  net = init_with_category(&desc);
  PerfettoTeCategoryImplSetCallback(net, on_switch, calls);
  CHECK(num_calls == 0);
  struct PerfettoTracingSessionImpl* first = record("net", net);
  CHECK(is(0, true, true));
  struct PerfettoTracingSessionImpl* second = record("n*", net);
  CHECK(is(1, true, false) && calls[1].instance != calls[0].instance);
  /* A session that does not enable it. */
  struct bytes config = config_for_categories("something else");
  struct PerfettoTracingSessionImpl* third = start(&config);
  CHECK(num_calls == 2);
  PerfettoTracingSessionStopBlocking(first);
  CHECK(is(2, false, false) && calls[2].instance == calls[0].instance && *PerfettoTeCategoryImplGetEnabled(net));

  /* A callback that is set while sessions record. */
  PerfettoTeCategoryImplSetCallback(net, NULL, NULL);
  num_calls = 0;
  struct PerfettoTracingSessionImpl* fourth = record("net", net);
  CHECK(num_calls == 0);
  PerfettoTeCategoryImplSetCallback(net, on_switch, calls);
  CHECK(is(1, true, false) && calls[0].created && calls[0].global && calls[0].instance != calls[1].instance);
  PerfettoTracingSessionStopBlocking(fourth);
  CHECK(is(2, false, false));
  PerfettoTracingSessionStopBlocking(second);
  CHECK(is(3, false, true) && !*PerfettoTeCategoryImplGetEnabled(net));
  PerfettoTracingSessionStopBlocking(third);
  CHECK(num_calls == 4);
  PerfettoTracingSessionDestroy(first);
  PerfettoTracingSessionDestroy(second);
  PerfettoTracingSessionDestroy(third);
  PerfettoTracingSessionDestroy(fourth);
  return 0;
}
