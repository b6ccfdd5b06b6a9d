/* Events with correlation ids: a number or a text. */

#include "events.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* net = init_with_category(&desc);
  struct PerfettoTracingSessionImpl* session = record("net", net);
  struct PerfettoTeHlExtraCorrelationId number = {{PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID}, 11};
  struct PerfettoTeHlExtraCorrelationIdStr text = {{PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID_STR}, "request 17"};
  for (int i = 0; i < 2; i++) {
    emit(net, PERFETTO_TE_TYPE_SLICE_BEGIN, "number", X(number));
    emit(net, PERFETTO_TE_TYPE_SLICE_END, NULL);
    emit(net, PERFETTO_TE_TYPE_SLICE_BEGIN, "text", X(text));
    emit(net, PERFETTO_TE_TYPE_SLICE_END, NULL);
  }
  number.id = UINT64_MAX;
  instant(net, "largest", X(number));
  stop_and_finish(session, "trace");
  return 0;
}
