/* Slices that end with their scope, by a variable with a cleanup attribute, as in the macros of
 * headers. */

#include "events.h"

static struct PerfettoTeCategoryImpl* net;

struct scope {
  struct PerfettoTeHlExtra* at_end;
};

static void end_scope(struct scope* scope) { emit(net, PERFETTO_TE_TYPE_SLICE_END, NULL, scope->at_end); }

/* SCOPED(name, extra of the end, extras of the begin…) */
#define SCOPED(name, end, ...)                                      \
  emit(net, PERFETTO_TE_TYPE_SLICE_BEGIN, name, __VA_ARGS__);       \
  struct scope scope_ __attribute__((cleanup(end_scope))) = {end};  \
  (void)scope_

static int leaves_early(int n) {
  SCOPED("leaves_early", NULL);
  if (n == 0) return 1;
  {
    SCOPED("inner", NULL);
    if (n == 1) return 2;
  }
  return 3;
}

static void with_arguments(int depth) {
  struct PerfettoTeHlExtraDebugArgInt64 begin = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, "depth", depth};
  struct PerfettoTeHlExtraDebugArgString end = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "outcome", "well"};
  SCOPED("with_arguments", X(end), X(begin));
  if (depth < 3) with_arguments(depth + 1);
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  net = init_with_category(&desc);
  struct PerfettoTracingSessionImpl* session = record("net", net);
  CHECK(leaves_early(0) == 1 && leaves_early(1) == 2 && leaves_early(2) == 3);
  with_arguments(1);
  for (int i = 0; i < 3; i++) {
    SCOPED("in a loop", NULL);
    if (i == 1) continue;
    instant(net, "inside");
  }
  /* With timestamps of the program. */
  struct PerfettoTeTimestamp now = PerfettoTeGetTimestamp();
  struct PerfettoTeHlExtraNamedTrack track = {
      {PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "own times", 0, perfetto_te_process_track_uuid, false};
  struct PerfettoTeHlExtraTimestamp at = {{PERFETTO_TE_HL_EXTRA_TYPE_TIMESTAMP}, {now.clock_id, now.value - 1000000}};
  emit(net, PERFETTO_TE_TYPE_SLICE_BEGIN, "0.6 ms", X(at), X(track));
  at.timestamp.value += 600000;
  emit(net, PERFETTO_TE_TYPE_SLICE_END, NULL, X(at), X(track));
  /* Joined by flows. */
  struct PerfettoTeHlExtraFlow flow = {{PERFETTO_TE_HL_EXTRA_TYPE_FLOW}, 42};
  struct PerfettoTeHlExtraFlow last = {{PERFETTO_TE_HL_EXTRA_TYPE_TERMINATING_FLOW}, 42};
  {
    SCOPED("flow begins", NULL, X(flow));
  }
  {
    SCOPED("flow goes on", NULL, X(flow));
  }
  {
    SCOPED("flow ends", NULL, X(last));
  }
  stop_and_finish(session, "trace");
  return 0;
}
