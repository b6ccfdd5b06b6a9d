/* Nested tracks. */

#include "events.h"

static struct PerfettoTeCategoryImpl* net;

static void on(const char* event, struct PerfettoTeHlNestedTrack* const* chain) {
  struct PerfettoTeHlExtraNestedTracks nested = {{PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS}, chain};
  instant(net, event, X(nested));
}

static struct PerfettoTeHlNestedTrackNamed named(const char* name, uint64_t id) {
  struct PerfettoTeHlNestedTrackNamed track = {
      {PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED}, name, id, false, 0, 0, 0, NULL, 0};
  return track;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  net = init_with_category(&desc);
  struct PerfettoTracingSessionImpl* session = record("net", net);

  struct PerfettoTeHlNestedTrack process = {PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROCESS};
  struct PerfettoTeHlNestedTrack thread = {PERFETTO_TE_HL_NESTED_TRACK_TYPE_THREAD};
  struct PerfettoTeHlNestedTrackNamed outer = named("outer", 0), middle = named("middle", 4), inner = named("inner", 1);
  inner.is_name_static = true;
  struct PerfettoTeHlNestedTrack* const in_process[] = {&process, N(outer), N(middle), N(inner), NULL};
  on("in the process", in_process);
  on("in the process", in_process);
  struct PerfettoTeHlNestedTrackNamed below = named("below a thread", 0);
  struct PerfettoTeHlNestedTrack* const in_thread[] = {&thread, N(below), NULL};
  on("in the thread", in_thread);
  struct PerfettoTeHlNestedTrackNamed root = named("root", 9);
  struct PerfettoTeHlNestedTrack* const in_nothing[] = {N(root), NULL};
  on("in nothing", in_nothing);
  struct PerfettoTeHlNestedTrack* const just_the_thread[] = {&thread, NULL};
  on("on the thread itself", just_the_thread);

  /* In explicit order. */
  struct PerfettoTeHlNestedTrackNamed ordered = named("ordered", 0), second = named("second", 0), first = named("first", 0);
  ordered.child_ordering = 3;
  second.sibling_order_rank = 5;
  first.sibling_order_rank = -5;
  struct PerfettoTeHlNestedTrack *const to_second[] = {&process, N(ordered), N(second), NULL},
                                 *const to_first[] = {&process, N(ordered), N(first), NULL};
  on("second", to_second);
  on("first", to_first);

  /* Siblings that are merged by a text, by a number, or never. */
  struct PerfettoTeHlNestedTrackNamed by_text = named("by text", 1), by_number = named("by number", 2),
                                      never = named("never", 3);
  by_text.sibling_merge_behavior = 3;
  by_text.sibling_merge_key_str = "a key";
  by_text.sibling_merge_key_int = 5; /* the text counts */
  by_number.sibling_merge_behavior = 3;
  by_number.sibling_merge_key_int = 99;
  never.sibling_merge_behavior = 2;
  never.sibling_merge_key_str = "not looked at";
  struct PerfettoTeHlNestedTrack *const to_text[] = {&process, N(by_text), NULL},
                                 *const to_number[] = {&process, N(by_number), NULL},
                                 *const to_never[] = {&process, N(never), NULL};
  on("by text", to_text);
  on("by number", to_number);
  on("never", to_never);

  /* A track with fields in a registered one. */
  struct bytes descriptor = {{0}, 0};
  put_number(&descriptor, 1, 7654321);
  put_text(&descriptor, 2, "registered");
  struct PerfettoTeRegisteredTrackImpl impl = {descriptor.at, descriptor.len, 7654321};
  struct PerfettoTeHlNestedTrackRegistered registered = {{PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED}, &impl};
  struct PerfettoTeHlProtoFieldCstr name = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 2}, "with fields"};
  struct PerfettoTeHlProtoField* const fields[] = {F(name), NULL};
  struct PerfettoTeHlNestedTrackProto proto = {{PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROTO}, 88, fields};
  struct PerfettoTeHlNestedTrack* const to_proto[] = {N(registered), N(proto), NULL};
  on("with fields", to_proto);
  stop_and_finish(session, "trace");
  return 0;
}
