/* High-level and low-level track events. The trace goes to the folder of the first argument. */

#include "events.h"

static struct PerfettoTeCategoryDescriptor net_desc = {"net", "Network", NULL, 0};
static const char* slow_tags[] = {"slow"};
static struct PerfettoTeCategoryDescriptor off_desc = {"off", NULL, slow_tags, 1};

struct call {
  PerfettoDsInstanceIndex instance;
  bool created, global;
};
static struct call calls[8];
static int num_calls;

static void on_switch(struct PerfettoTeCategoryImpl* cat, PerfettoDsInstanceIndex instance, bool created, bool global,
                      void* user_arg) {
  (void)cat;
  CHECK(user_arg == (void*)calls && num_calls < 8);
  calls[num_calls++] = (struct call){instance, created, global};
}

static void emit_all(struct PerfettoTeCategoryImpl* cat, int32_t type, const char* name, struct PerfettoTeHlExtra** extras) {
  static struct PerfettoTeHlExtra* none[] = {NULL};
  PerfettoTeHlEmitImpl(cat, type, name, (struct PerfettoTeHlExtra* const*)(extras ? extras : none));
}

static void high_level(struct PerfettoTeCategoryImpl* net) {
  char name[] = "from an array";
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, name, NULL);
  memcpy(name, "FROM", 4);
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, name, NULL);
  for (int i = 0; i < 3; i++) {
    emit_all(net, PERFETTO_TE_TYPE_SLICE_BEGIN, "slice", NULL);
    emit_all(net, PERFETTO_TE_TYPE_SLICE_END, NULL, NULL);
  }

  struct PerfettoTeHlExtraDebugArgBool b = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_BOOL}, "b", true};
  struct PerfettoTeHlExtraDebugArgUint64 u = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_UINT64}, "u", 7};
  struct PerfettoTeHlExtraDebugArgInt64 n = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, "i", -7};
  struct PerfettoTeHlExtraDebugArgDouble d = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_DOUBLE}, "d", 1.5};
  struct PerfettoTeHlExtraDebugArgString s = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "s", "text"};
  struct PerfettoTeHlExtraDebugArgString odd = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "odd", "\xff!"};
  struct PerfettoTeHlExtraDebugArgPointer p = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_POINTER}, "p", 0x10};
  struct PerfettoTeHlExtra no_intern = {PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN};
  struct PerfettoTeHlExtra unknown = {999};
  for (int i = 0; i < 2; i++) {
    struct PerfettoTeHlExtra* extras[] = {X(b), X(u), X(n), X(d), &unknown, X(s), X(odd), X(p), i ? &no_intern : NULL, NULL};
    emit_all(net, PERFETTO_TE_TYPE_INSTANT, i ? "args inline" : "args", extras);
  }

  struct PerfettoTeHlExtraNamedTrack named = {
      {PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "my track", 3, perfetto_te_process_track_uuid, false};
  struct PerfettoTeHlExtraFlow flow = {{PERFETTO_TE_HL_EXTRA_TYPE_FLOW}, 42};
  struct PerfettoTeHlExtraFlow end_flow = {{PERFETTO_TE_HL_EXTRA_TYPE_TERMINATING_FLOW}, 42};
  struct PerfettoTeHlExtra* on_named[] = {X(named), X(flow), NULL};
  emit_all(net, PERFETTO_TE_TYPE_SLICE_BEGIN, "on a named track", on_named);
  struct PerfettoTeHlExtra* end_named[] = {X(named), NULL};
  emit_all(net, PERFETTO_TE_TYPE_SLICE_END, NULL, end_named);
  struct PerfettoTeHlExtra* flow_ends[] = {X(end_flow), NULL};
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, "end of flow", flow_ends);

  /* A counter on a track that the program describes. */
  struct PerfettoTeHlProtoFieldCstr track_name = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 2}, "my counter"};
  struct PerfettoTeHlProtoFieldVarInt parent = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 5}, perfetto_te_process_track_uuid};
  struct PerfettoTeHlProtoField* no_fields[] = {NULL};
  struct PerfettoTeHlProtoFieldNested counter = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 8}, no_fields};
  struct PerfettoTeHlProtoField* fields[] = {F(parent), F(track_name), F(counter), NULL};
  struct PerfettoTeHlExtraProtoTrack proto = {
      {PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK}, perfetto_te_process_track_uuid ^ fnv("my counter"), fields};
  struct PerfettoTeHlExtraCounterInt64 value = {{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64}, 79};
  struct PerfettoTeHlExtraCounterDouble fraction = {{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_DOUBLE}, 0.5};
  struct PerfettoTeHlExtra* counts[] = {X(proto), X(value), NULL};
  emit_all(net, PERFETTO_TE_TYPE_COUNTER, NULL, counts);
  struct PerfettoTeHlExtra* fractions[] = {X(proto), X(fraction), NULL};
  emit_all(net, PERFETTO_TE_TYPE_COUNTER, NULL, fractions);

  /* A registered track. */
  struct bytes descriptor = {{0}, 0};
  put_number(&descriptor, 1, 1234567);
  put_text(&descriptor, 2, "registered");
  put_number(&descriptor, 5, perfetto_te_process_track_uuid);
  struct PerfettoTeRegisteredTrackImpl registered = {descriptor.at, descriptor.len, 1234567};
  struct PerfettoTeHlExtraRegisteredTrack on_registered = {{PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK}, &registered};
  struct PerfettoTeHlExtra* reg[] = {X(on_registered), NULL};
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, "on a registered track", reg);

  /* Nested tracks. */
  struct PerfettoTeHlNestedTrack process = {PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROCESS};
  struct PerfettoTeHlNestedTrackNamed outer = {
      {PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED}, "outer", 0, false, 0, 3, 0, NULL, 0};
  struct PerfettoTeHlNestedTrackNamed inner = {
      {PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED}, "inner", 1, true, 5, 0, 3, "key", 0};
  struct PerfettoTeHlNestedTrack* chain[] = {&process, N(outer), N(inner), NULL};
  struct PerfettoTeHlExtraNestedTracks nested = {{PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS}, chain};
  struct PerfettoTeHlExtra* on_nested[] = {X(nested), NULL};
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, "on a nested track", on_nested);

  /* Fields that the program describes: an inline source location, and an annotation with an
   * interned name. */
  struct PerfettoTeHlProtoFieldCstr file = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 2}, "file.c"};
  struct PerfettoTeHlProtoFieldVarInt line = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 4}, 17};
  struct PerfettoTeHlProtoField* place_fields[] = {F(file), F(line), NULL};
  struct PerfettoTeHlProtoFieldNested place = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 33}, place_fields};
  struct PerfettoTeHlProtoFieldCstrInterned iname = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR_INTERNED, 1}, "interned name", 3};
  struct PerfettoTeHlProtoFieldVarInt ivalue = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 4}, 5};
  struct PerfettoTeHlProtoField* arg_fields[] = {F(iname), F(ivalue), NULL};
  struct PerfettoTeHlProtoFieldNested arg = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 4}, arg_fields};
  struct PerfettoTeHlProtoField* all[] = {F(place), F(arg), NULL};
  struct PerfettoTeHlExtraProtoFields more = {{PERFETTO_TE_HL_EXTRA_TYPE_PROTO_FIELDS}, all};
  struct PerfettoTeHlExtra* with_fields[] = {X(more), NULL};
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, "with fields", with_fields);
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, "with fields", with_fields);

  struct PerfettoTeHlExtraCorrelationId id = {{PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID}, 11};
  struct PerfettoTeHlExtra* with_id[] = {X(id), NULL};
  emit_all(net, PERFETTO_TE_TYPE_INSTANT, "correlated", with_id);

  struct PerfettoTeTimestamp now = PerfettoTeGetTimestamp();
  CHECK(now.clock_id == PERFETTO_TE_TIMESTAMP_TYPE_BOOT && now.value > 1000000);
  struct PerfettoTeHlExtraTimestamp before = {{PERFETTO_TE_HL_EXTRA_TYPE_TIMESTAMP}, {now.clock_id, now.value - 1000000}};
  struct PerfettoTeHlExtraTimestamp after = {{PERFETTO_TE_HL_EXTRA_TYPE_TIMESTAMP}, {now.clock_id, now.value - 400000}};
  struct PerfettoTeHlExtra* began[] = {X(before), X(named), NULL};
  struct PerfettoTeHlExtra* ended[] = {X(after), X(named), NULL};
  emit_all(net, PERFETTO_TE_TYPE_SLICE_BEGIN, "0.6 ms", began);
  emit_all(net, PERFETTO_TE_TYPE_SLICE_END, NULL, ended);

  /* Dynamic categories. */
  static struct PerfettoTeCategoryDescriptor on = {"net", NULL, NULL, 0}, off = {"elsewhere", NULL, NULL, 0};
  struct PerfettoTeHlExtraDynamicCategory dyn = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, &on};
  CHECK(perfetto_te_any_categories && *perfetto_te_any_categories_enabled);
  struct PerfettoTeHlExtra* with_dyn[] = {X(dyn), NULL};
  emit_all(perfetto_te_any_categories, PERFETTO_TE_TYPE_INSTANT, "dynamic", with_dyn);
  dyn.desc = &off;
  emit_all(perfetto_te_any_categories, PERFETTO_TE_TYPE_INSTANT, "must not be there", with_dyn);
}

/* The same, encoded by the program. */
static void low_level(struct PerfettoTeCategoryImpl* net) {
  struct PerfettoTeTimestamp ts = PerfettoTeGetTimestamp();
  int turns = 0;
  for (struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(net, ts); it.ds.tracer;
       PerfettoTeLlImplNext(net, ts, &it)) {
    turns++;
    /* A trace point inside a trace point does nothing. */
    CHECK(PerfettoTeLlImplBegin(net, ts).ds.tracer == NULL);
    uint64_t iid = PerfettoTeCategoryImplGetIid(net);
    bool category_seen, name_seen;
    PerfettoTeLlImplIntern(it.incr, 1, &iid, sizeof iid, &category_seen);
    uint64_t name = PerfettoTeLlImplIntern(it.incr, 2, "by hand", 7, &name_seen);
    CHECK(iid != 0 && name != 0);
    bool again;
    CHECK(PerfettoTeLlImplIntern(it.incr, 2, "by hand", 7, &again) == name && again);
    struct bytes event = {{0}, 0}, interned = {{0}, 0}, entry = {{0}, 0}, packet = {{0}, 0};
    put_number(&event, 9, PERFETTO_TE_TYPE_INSTANT);
    put_number(&event, 3, iid);
    put_number(&event, 10, name);
    if (!category_seen) {
      put_number(&entry, 1, iid);
      put_text(&entry, 2, "net");
      put_message(&interned, 1, &entry);
    }
    if (!name_seen) {
      entry.len = 0;
      put_number(&entry, 1, name);
      put_text(&entry, 2, "by hand");
      put_message(&interned, 2, &entry);
    }
    put_number(&packet, 8, ts.value);
    put_number(&packet, 58, ts.clock_id);
    put_number(&packet, 13, 2);
    put_message(&packet, 11, &event);
    if (interned.len) put_message(&packet, 12, &interned);
    struct PerfettoStreamWriter w;
    begin_packet(it.ds.tracer, &w);
    write_all(&w, &packet);
    end_packet(it.ds.tracer, &w);
    CHECK(!PerfettoTeLlImplTrackSeen(it.incr, 987654321) || turns > 1);
    CHECK(PerfettoTeLlImplTrackSeen(it.incr, 987654321));
    CHECK(PerfettoTeLlImplDynCatEnabled(it.ds.tracer, it.ds.inst_id, &net_desc));
    CHECK(!PerfettoTeLlImplDynCatEnabled(it.ds.tracer, it.ds.inst_id, &off_desc));
  }
  CHECK(turns == 1);
  struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(net, ts);
  CHECK(it.ds.tracer);
  PerfettoTeLlImplBreak(net, &it);
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  PerfettoTeInit();
  PerfettoTeInit();
  CHECK(perfetto_te_process_track_uuid != 0);
  struct PerfettoTeCategoryImpl* net = PerfettoTeCategoryImplCreate(&net_desc);
  struct PerfettoTeCategoryImpl* off = PerfettoTeCategoryImplCreate(&off_desc);
  PerfettoTePublishCategories();
  PERFETTO_ATOMIC(bool)* enabled = PerfettoTeCategoryImplGetEnabled(net);
  PerfettoTeCategoryImplSetCallback(net, on_switch, calls);
  CHECK(!*enabled && num_calls == 0);

  struct bytes patterns = {{0}, 0}, te = {{0}, 0};
  put_text(&patterns, 2, "n*");
  put_text(&patterns, 1, "*");
  put_message(&te, 113, &patterns);
  struct bytes config = config_for("track_event", &te);
  struct PerfettoTracingSessionImpl* first = start(&config);
  CHECK(*enabled && !*PerfettoTeCategoryImplGetEnabled(off));
  CHECK(num_calls == 1 && calls[0].created && calls[0].global);
  struct PerfettoTracingSessionImpl* second = start(&config);
  CHECK(num_calls == 2 && calls[1].created && !calls[1].global && calls[1].instance != calls[0].instance);
  PerfettoTeCategoryImplSetCallback(net, on_switch, calls);
  CHECK(num_calls == 4 && calls[2].created && calls[2].global && calls[3].created && !calls[3].global);
  PerfettoTracingSessionStopBlocking(second);
  CHECK(num_calls == 5 && !calls[4].created && !calls[4].global && *enabled);
  PerfettoTracingSessionDestroy(second);

  high_level(net);
  low_level(net);
  emit_all(off, PERFETTO_TE_TYPE_INSTANT, "must not be there", NULL);
  CHECK(PerfettoTracingSessionFlushBlocking(first, 5000));
  PerfettoTracingSessionStopBlocking(first);
  CHECK(num_calls == 6 && !calls[5].created && calls[5].global && !*enabled);
  finish(first, "trace");
  PerfettoTeCategoryImplDestroy(off);
  PerfettoTeCategoryImplDestroy(net);
  /* An equal category. */
  CHECK(PerfettoTeCategoryImplGetIid(PerfettoTeCategoryImplCreate(&net_desc)) != 0);
  return 0;
}
