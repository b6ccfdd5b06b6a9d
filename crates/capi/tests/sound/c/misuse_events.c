/* Track events that no header would make. */

#include <stdint.h>

#include "sound.h"

#define EMIT(category, type, name, ...)                                 \
  do {                                                                  \
    struct PerfettoTeHlExtra* extras[] = {__VA_ARGS__ __VA_OPT__(, ) NULL}; \
    PerfettoTeHlEmitImpl(category, type, name, extras);                 \
  } while (0)
#define AS_EXTRA(e) ((struct PerfettoTeHlExtra*)&(e))
#define AS_FIELD(f) ((struct PerfettoTeHlProtoField*)&(f))
#define AS_TRACK(t) ((struct PerfettoTeHlNestedTrack*)&(t))

static const int INSTANT = PERFETTO_TE_TYPE_INSTANT;
static uint8_t* const dangling = (uint8_t*)1;

static void nothing(void) {
  PerfettoTeHlEmitImpl(NULL, INSTANT, "x", no_extras);
  CHECK(!*PerfettoTeCategoryImplGetEnabled(NULL));
  CHECK(PerfettoTeCategoryImplGetIid(NULL) == 0);
  PerfettoTeCategoryImplSetCallback(NULL, NULL, NULL);
  PerfettoTeCategoryImplDestroy(NULL);
  struct PerfettoTeTimestamp ts = PerfettoTeGetTimestamp();
  CHECK(PerfettoTeLlImplBegin(NULL, ts).ds.tracer == NULL);
  PerfettoTeLlImplNext(NULL, ts, NULL);
  PerfettoTeLlImplBreak(NULL, NULL);
  CHECK(!PerfettoTeLlImplTrackSeen(NULL, 1));
  bool seen = false;
  CHECK(PerfettoTeLlImplIntern(NULL, 1, NULL, 5, &seen) == 0 && seen);
  CHECK(PerfettoTeLlImplIntern(NULL, 1, NULL, 5, NULL) == 0);
  CHECK(!PerfettoTeLlImplDynCatEnabled(NULL, UINT32_MAX, NULL));
}

static void events(struct PerfettoTeCategoryImpl* cat) {
  PerfettoTeHlEmitImpl(cat, INSTANT, "without extras", NULL);
  PerfettoTeHlEmitImpl(cat, INSTANT, NULL, no_extras);
  PerfettoTeHlEmitImpl(cat, INSTANT, "", no_extras);
  PerfettoTeHlEmitImpl(cat, INSTANT, "\xff\xfe", no_extras);
  for (int type = -1; type < 10; type++) PerfettoTeHlEmitImpl(cat, type, "of any type", no_extras);
  PerfettoTeHlEmitImpl(cat, INT32_MIN, "x", no_extras);
  for (uint32_t type = 22; type; type <<= 1) {
    struct PerfettoTeHlExtra unknown = {type};
    EMIT(cat, INSTANT, "with something unknown", &unknown);
  }
  struct PerfettoTeHlExtraRegisteredTrack registered = {{PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK}, NULL};
  EMIT(cat, INSTANT, "x", AS_EXTRA(registered));
  struct PerfettoTeRegisteredTrackImpl empty = {NULL, 100, 77};
  registered.track = &empty;
  EMIT(cat, INSTANT, "x", AS_EXTRA(registered));
  empty = (struct PerfettoTeRegisteredTrackImpl){dangling, 0, 78};
  EMIT(cat, INSTANT, "x", AS_EXTRA(registered));
  struct PerfettoTeHlExtraNamedTrack named = {{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, NULL, 1, 2, true};
  EMIT(cat, INSTANT, "x", AS_EXTRA(named));
  memset(&named.is_name_static, 7, 1);
  named.name = "\xff";
  EMIT(cat, INSTANT, "x", AS_EXTRA(named));
  struct PerfettoTeHlExtraTimestamp ts = {{PERFETTO_TE_HL_EXTRA_TYPE_TIMESTAMP}, {UINT32_MAX, UINT64_MAX}};
  EMIT(cat, INSTANT, "x", AS_EXTRA(ts));
  ts.timestamp = (struct PerfettoTeTimestamp){64, UINT64_MAX};
  EMIT(cat, INSTANT, "x", AS_EXTRA(ts));
  struct PerfettoTeHlExtraDynamicCategory dynamic = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, NULL};
  EMIT(perfetto_te_any_categories, INSTANT, "x", AS_EXTRA(dynamic));
  struct PerfettoTeCategoryDescriptor desc = {NULL, NULL, NULL, 5};
  dynamic.desc = &desc;
  EMIT(perfetto_te_any_categories, INSTANT, "x", AS_EXTRA(dynamic));
  const char* tags[] = {NULL, "\xff"};
  desc = (struct PerfettoTeCategoryDescriptor){"\xff", "\xff", tags, 2};
  EMIT(perfetto_te_any_categories, INSTANT, "x", AS_EXTRA(dynamic));
  EMIT(cat, INSTANT, "x", AS_EXTRA(dynamic));
  struct PerfettoTeHlExtraCounterInt64 counter = {{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64}, -1};
  EMIT(cat, INSTANT, "x", AS_EXTRA(counter));
  EMIT(cat, PERFETTO_TE_TYPE_COUNTER, NULL);
  struct PerfettoTeHlExtraDebugArgBool b = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_BOOL}, NULL, false};
  memset(&b.value, 7, 1);
  struct PerfettoTeHlExtraDebugArgString s = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, NULL, NULL};
  struct PerfettoTeHlExtraDebugArgString t = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, "\xff", "\xff"};
  struct PerfettoTeHlExtraDebugArgPointer p = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_POINTER}, "p", UINTPTR_MAX};
  EMIT(cat, INSTANT, "x", AS_EXTRA(b), AS_EXTRA(s), AS_EXTRA(t), AS_EXTRA(p), AS_EXTRA(p), AS_EXTRA(p));
  struct PerfettoTeHlExtraCorrelationIdStr id = {{PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID_STR}, NULL};
  EMIT(cat, INSTANT, "x", AS_EXTRA(id));
  id.str = "\xff";
  EMIT(cat, INSTANT, "x", AS_EXTRA(id));
}

static void fields(struct PerfettoTeCategoryImpl* cat) {
  struct PerfettoTeHlExtraProtoFields extra = {{PERFETTO_TE_HL_EXTRA_TYPE_PROTO_FIELDS}, NULL};
  EMIT(cat, INSTANT, "x", AS_EXTRA(extra));
  struct PerfettoTeHlProtoFieldCstr cstr = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 900}, NULL};
  struct PerfettoTeHlProtoFieldBytes bytes = {{PERFETTO_TE_HL_PROTO_TYPE_BYTES, 901}, NULL, 5};
  struct PerfettoTeHlProtoFieldBytes no_bytes = {{PERFETTO_TE_HL_PROTO_TYPE_BYTES, 901}, dangling, 0};
  struct PerfettoTeHlProtoFieldNested nested = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 902}, NULL};
  struct PerfettoTeHlProtoFieldCstrInterned interned = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR_INTERNED, 903}, NULL, 0};
  struct PerfettoTeHlProtoFieldCstrInterned far = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR_INTERNED, 903}, "s", UINT32_MAX};
  struct PerfettoTeHlProtoField unknown = {(enum PerfettoTeHlProtoFieldType)99, 904};
  struct PerfettoTeHlProtoFieldVarInt zero = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 0}, 1};
  struct PerfettoTeHlProtoFieldVarInt large = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, UINT32_MAX}, UINT64_MAX};
  struct PerfettoTeHlProtoField* const all[] = {AS_FIELD(cstr),   AS_FIELD(bytes), AS_FIELD(no_bytes),
                                                AS_FIELD(nested), AS_FIELD(interned), AS_FIELD(far),
                                                &unknown,         NULL};
  extra.fields = all;
  EMIT(cat, INSTANT, "with odd fields", AS_EXTRA(extra));
  struct PerfettoTeHlProtoField* const ids[] = {AS_FIELD(zero), AS_FIELD(large), NULL};
  extra.fields = ids;
  EMIT(cat, INSTANT, "x", AS_EXTRA(extra));
  static struct PerfettoTeHlProtoFieldNested deep[5000];
  static struct PerfettoTeHlProtoField* children[5000][2];
  for (int i = 0; i < 5000; i++) {
    deep[i] = (struct PerfettoTeHlProtoFieldNested){{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 902}, NULL};
    if (i + 1 < 5000) children[i][0] = AS_FIELD(deep[i + 1]);
    deep[i].fields = children[i];
  }
  extra.fields = children[0];
  EMIT(cat, INSTANT, "with deep fields", AS_EXTRA(extra));

  struct PerfettoTeHlExtraProtoTrack proto = {{PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK}, 55, NULL};
  EMIT(cat, INSTANT, "x", AS_EXTRA(proto));
  proto.uuid = 56;
  proto.fields = all;
  EMIT(cat, INSTANT, "x", AS_EXTRA(proto));
}

static void tracks(struct PerfettoTeCategoryImpl* cat) {
  struct PerfettoTeHlExtraNestedTracks extra = {{PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS}, NULL};
  EMIT(cat, INSTANT, "x", AS_EXTRA(extra));
  struct PerfettoTeHlNestedTrack unknown = {99};
  struct PerfettoTeHlNestedTrackNamed named;
  memset(&named, 0, sizeof named);
  named.header.type = PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED;
  named.sibling_order_rank = INT32_MIN;
  named.child_ordering = 99;
  named.sibling_merge_behavior = 3;
  memset(&named.is_name_static, 7, 1);
  struct PerfettoTeHlNestedTrackProto proto = {{PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROTO}, 9, NULL};
  struct PerfettoTeHlNestedTrackRegistered registered = {{PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED}, NULL};
  struct PerfettoTeHlNestedTrack* const all[] = {&unknown, AS_TRACK(named), AS_TRACK(proto), AS_TRACK(registered), NULL};
  extra.tracks = all;
  EMIT(cat, INSTANT, "on odd tracks", AS_EXTRA(extra));
  static struct PerfettoTeHlNestedTrackNamed chain[1000];
  static struct PerfettoTeHlNestedTrack* list[1001];
  for (int i = 0; i < 1000; i++) {
    chain[i] = named;
    chain[i].id = i;
    list[i] = AS_TRACK(chain[i]);
  }
  extra.tracks = list;
  EMIT(cat, INSTANT, "on a deep track", AS_EXTRA(extra));
}

static void by_hand(struct PerfettoTeCategoryImpl* cat) {
  struct PerfettoTeTimestamp ts = {UINT32_MAX, UINT64_MAX};
  struct PerfettoTeLlImplIterator it = PerfettoTeLlImplBegin(cat, ts);
  CHECK(it.ds.tracer && it.incr);
  CHECK(PerfettoTeLlImplBegin(cat, ts).ds.tracer == NULL);
  bool seen;
  PerfettoTeLlImplIntern(it.incr, -1, "x", 1, &seen);
  PerfettoTeLlImplIntern(it.incr, 0, NULL, 0, &seen);
  PerfettoTeLlImplIntern(it.incr, 1, NULL, SIZE_MAX, &seen);
  PerfettoTeLlImplIntern(it.incr, 1, dangling, 0, NULL);
  uint64_t far = UINT64_MAX;
  PerfettoTeLlImplIntern(it.incr, 1, &far, sizeof far, &seen);
  CHECK(!PerfettoTeLlImplTrackSeen(it.incr, 1234) && PerfettoTeLlImplTrackSeen(it.incr, 1234));
  PerfettoTeLlImplDynCatEnabled(it.ds.tracer, it.ds.inst_id, NULL);
  CHECK(!PerfettoTeLlImplDynCatEnabled(it.ds.tracer, 32, NULL));
  CHECK(PerfettoDsImplGetCustomTls(NULL, it.ds.tracer, 0) == NULL);
  CHECK(PerfettoDsImplGetIncrementalState(NULL, it.ds.tracer, 0) == NULL);
  PerfettoTeHlEmitImpl(cat, INSTANT, "inside of another one", no_extras);
  struct PerfettoTeLlImplIterator copy = it;
  PerfettoTeLlImplBreak(cat, &it);
  PerfettoTeLlImplBreak(cat, &it);
  PerfettoTeLlImplNext(cat, ts, &it);
  PerfettoTeLlImplNext(cat, ts, &copy);
  CHECK(!it.ds.tracer && !copy.ds.tracer);
}

static void categories(void) {
  static struct PerfettoTeCategoryDescriptor desc = {"coming and going", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(&desc);
  CHECK(*PerfettoTeCategoryImplGetEnabled(cat));
  PerfettoTeCategoryImplDestroy(cat);
  PerfettoTeCategoryImplDestroy(cat);
  PerfettoTeHlEmitImpl(cat, INSTANT, "after destroy", no_extras);
  CHECK(!*PerfettoTeCategoryImplGetEnabled(cat) && PerfettoTeCategoryImplGetIid(cat));
  struct PerfettoTeCategoryImpl *one = PerfettoTeCategoryImplCreate(&desc), *two = PerfettoTeCategoryImplCreate(&desc);
  CHECK(one != two);
  PerfettoTeCategoryImplDestroy(one);
  PerfettoTeCategoryImplDestroy(two);
  PerfettoTeCategoryImplDestroy(perfetto_te_any_categories);
  CHECK(*perfetto_te_any_categories_enabled);
  PerfettoTeInit();
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  init();
  PerfettoTeInit();
  nothing();
  struct PerfettoTeCategoryDescriptor desc = {"odd", NULL, NULL, 5};
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(&desc);
  struct PerfettoTracingSessionImpl* session = start("track_event");
  events(cat);
  fields(cat);
  tracks(cat);
  by_hand(cat);
  categories();
  PerfettoTeHlEmitImpl(cat, INSTANT, "the last", no_extras);
  struct trace trace = stop_and_read(session);
  CHECK(!has(&trace, "inside of another one") && !has(&trace, "after destroy"));
  CHECK(has(&trace, "without extras") && has(&trace, "on a deep track") && has(&trace, "the last"));
  FILE* file = fopen(argv[1], "wb");
  CHECK(file && fwrite(trace.at, trace.len, 1, file) == 1 && !fclose(file));
  return 0;
}
