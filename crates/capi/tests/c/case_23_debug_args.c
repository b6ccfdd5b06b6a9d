/* An annotation of each type. */

#include "events.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* net = init_with_category(&desc);
  struct PerfettoTracingSessionImpl* session = record("net", net);
  struct PerfettoTeHlExtraDebugArgBool b = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_BOOL}, "b", true};
  struct PerfettoTeHlExtraDebugArgUint64 u = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_UINT64}, "u", (uint64_t)INT64_MAX};
  struct PerfettoTeHlExtraDebugArgInt64 i = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, "i", INT64_MIN};
  struct PerfettoTeHlExtraDebugArgDouble d = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_DOUBLE}, "d", 1.5};
  struct PerfettoTeHlExtraDebugArgString s = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "s", "text"};
  struct PerfettoTeHlExtraDebugArgString odd = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "odd", "\xff!"};
  struct PerfettoTeHlExtraDebugArgPointer p = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_POINTER}, "p", 0x10};
  for (int round = 0; round < 2; round++) instant(net, "interned", X(b), X(u), X(i), X(d), X(s), X(odd), X(p));
  struct PerfettoTeHlExtra no_intern = {PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN};
  instant(net, "inline", X(b), X(u), X(i), X(d), &no_intern, X(s), X(odd), X(p));
  emit(net, PERFETTO_TE_TYPE_SLICE_BEGIN, "slice", X(s));
  b.value = false;
  emit(net, PERFETTO_TE_TYPE_SLICE_END, NULL, X(b));
  stop_and_finish(session, "trace");
  return 0;
}
