/* Fills a small shared memory again and again. After each loss, the tracks are described again. */

#include "events.h"

/* Thirty events fill the memory, so that the service cannot keep up. All fit into its buffer. */
enum { EVENTS = 1500, TEXT_BYTES = 2000 };

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  init_producer_with(64);
  PerfettoTeInit();
  struct PerfettoTeCategoryImpl* net = PerfettoTeCategoryImplCreate(&desc);
  PerfettoTePublishCategories();
  struct PerfettoTracingSessionImpl* session = record("net", net);
  uint64_t process = perfetto_te_process_track_uuid;

  struct PerfettoTeHlProtoField* const none[] = {NULL};
  struct PerfettoTeHlProtoFieldVarInt parent = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 5}, process};
  struct PerfettoTeHlProtoFieldCstr name = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 2}, "my counter"};
  struct PerfettoTeHlProtoFieldNested is_counter = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 8}, none};
  struct PerfettoTeHlProtoField* const fields[] = {F(parent), F(name), F(is_counter), NULL};
  struct PerfettoTeHlExtraProtoTrack counter = {{PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK}, process ^ 32, fields};
  struct PerfettoTeHlExtraNamedTrack named = {{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "my track", 3, process, false};
  static char long_text[TEXT_BYTES + 1];
  memset(long_text, 'x', TEXT_BYTES);
  struct PerfettoTeHlExtraDebugArgString text = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "text", long_text};
  for (int i = 0; i < EVENTS; i++) {
    struct PerfettoTeHlExtraCounterInt64 value = {{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64}, i};
    emit(net, PERFETTO_TE_TYPE_COUNTER, NULL, X(counter), X(value), X(text));
    instant(net, "on named", X(named), X(text));
  }
  stop_and_finish(session, "trace");
  return 0;
}
