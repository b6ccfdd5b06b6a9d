/* Named tracks, and registered ones for slices, counters and states. */

#include "events.h"

/* Registers a track, with a descriptor in memory of the program. */
static struct PerfettoTeRegisteredTrackImpl registered(uint64_t uuid, const char* static_name, uint32_t kind) {
  struct bytes descriptor = {{0}, 0};
  put_number(&descriptor, 1, uuid);
  put_number(&descriptor, 5, perfetto_te_process_track_uuid);
  put_text(&descriptor, 10, static_name);
  if (kind) put_bytes(&descriptor, kind, "", 0);
  struct PerfettoTeRegisteredTrackImpl track = {malloc(descriptor.len), descriptor.len, uuid};
  memcpy(track.descriptor, descriptor.at, descriptor.len);
  return track;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* net = init_with_category(&desc);
  struct PerfettoTracingSessionImpl* session = record("net", net);
  uint64_t process = perfetto_te_process_track_uuid;

  struct PerfettoTeHlExtraNamedTrack named = {{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "my track", 3, process, false};
  struct PerfettoTeHlExtraNamedTrack child = {
      {PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "my child", 0, process ^ fnv("my track") ^ 3, true};
  struct PerfettoTeHlExtraNamedTrack root = {{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "my root", 7, 0, false};
  for (int i = 0; i < 2; i++) {
    instant(net, "on named", X(named));
    instant(net, "on child", X(child));
    instant(net, "on root", X(root));
  }
  /* The last of several tracks counts. */
  instant(net, "on the last", X(root), X(named));

  uint64_t counter_uuid = 0xb1a4a67d7970839e ^ process ^ fnv("my counter");
  uint64_t state_uuid = 0x9b6c5d2f1e3a47c8 ^ process ^ fnv("my state");
  struct PerfettoTeRegisteredTrackImpl plain = registered(1234567, "my registered track", 0);
  struct PerfettoTeRegisteredTrackImpl counter = registered(counter_uuid, "my counter", 8);
  struct PerfettoTeRegisteredTrackImpl state = registered(state_uuid, "my state", 18);
  struct PerfettoTeHlExtraRegisteredTrack on_plain = {{PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK}, &plain};
  struct PerfettoTeHlExtraRegisteredTrack on_counter = {{PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK}, &counter};
  struct PerfettoTeHlExtraRegisteredTrack on_state = {{PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK}, &state};
  struct PerfettoTeHlExtraCounterInt64 whole = {{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64}, -79};
  struct PerfettoTeHlExtraCounterDouble fraction = {{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_DOUBLE}, 0.5};
  struct PerfettoTeHlExtraDebugArgInt64 arg = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, "attempt", 2};
  instant(net, "on registered", X(on_plain));
  emit(net, PERFETTO_TE_TYPE_COUNTER, NULL, X(on_counter), X(whole));
  emit(net, PERFETTO_TE_TYPE_COUNTER, NULL, X(on_counter), X(fraction));
  emit(net, PERFETTO_TE_TYPE_STATE, "connecting", X(on_state), X(arg));
  emit(net, PERFETTO_TE_TYPE_STATE, "up", X(on_state));
  emit(net, PERFETTO_TE_TYPE_STATE, NULL, X(on_state));

  /* Tracks with fields, as the macros for counters and states make them. */
  struct PerfettoTeHlProtoField* const none[] = {NULL};
  struct PerfettoTeHlProtoFieldVarInt parent = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 5}, process};
  struct PerfettoTeHlProtoFieldCstr counter_name = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 2}, "proto counter"};
  struct PerfettoTeHlProtoFieldNested is_counter = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 8}, none};
  struct PerfettoTeHlProtoField* const counter_fields[] = {F(parent), F(counter_name), F(is_counter), NULL};
  struct PerfettoTeHlExtraProtoTrack on_proto_counter = {
      {PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK}, 0xb1a4a67d7970839e ^ process ^ fnv("proto counter"), counter_fields};
  whole.value = INT64_MAX;
  emit(net, PERFETTO_TE_TYPE_COUNTER, NULL, X(on_proto_counter), X(whole));
  struct PerfettoTeHlProtoFieldCstr state_name = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 2}, "proto state"};
  struct PerfettoTeHlProtoFieldNested is_state = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 18}, none};
  struct PerfettoTeHlProtoField* const state_fields[] = {F(parent), F(state_name), F(is_state), NULL};
  struct PerfettoTeHlExtraProtoTrack on_proto_state = {
      {PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK}, 0x9b6c5d2f1e3a47c8 ^ process ^ fnv("proto state"), state_fields};
  emit(net, PERFETTO_TE_TYPE_STATE, "busy", X(on_proto_state));

  /* The program frees descriptors. */
  free(plain.descriptor);
  free(counter.descriptor);
  free(state.descriptor);
  stop_and_finish(session, "trace");
  return 0;
}
