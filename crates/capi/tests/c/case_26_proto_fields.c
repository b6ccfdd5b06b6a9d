/* Fields of an event that the program describes: a message, a string, an interned string, and all
 * other kinds. */

#include "events.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"net", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* net = init_with_category(&desc);
  struct PerfettoTracingSessionImpl* session = record("net", net);

  /* TrackEvent.source_location = 33 { file_name = 2, line_number = 4 } */
  struct PerfettoTeHlProtoFieldCstr file = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR, 2}, "file.c"};
  struct PerfettoTeHlProtoFieldVarInt line = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 4}, 17};
  struct PerfettoTeHlProtoField* const place_fields[] = {F(file), F(line), NULL};
  struct PerfettoTeHlProtoFieldNested place = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 33}, place_fields};
  /* debug_annotations = 4 { name_iid = 1, int_value = 4 }: interned in
   * InternedData.debug_annotation_names = 3. */
  struct PerfettoTeHlProtoFieldCstrInterned name = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR_INTERNED, 1}, "interned name", 3};
  struct PerfettoTeHlProtoFieldVarInt value = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 4}, 5};
  struct PerfettoTeHlProtoField* const arg_fields[] = {F(name), F(value), NULL};
  struct PerfettoTeHlProtoFieldNested arg = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 4}, arg_fields};
  struct PerfettoTeHlProtoField* const all[] = {F(place), F(arg), NULL};
  struct PerfettoTeHlExtraProtoFields more = {{PERFETTO_TE_HL_EXTRA_TYPE_PROTO_FIELDS}, all};
  for (int i = 0; i < 2; i++) instant(net, "with fields", X(more));

  /* Unknown fields of every kind. There is no table 0. */
  struct PerfettoTeHlProtoFieldBytes bytes = {{PERFETTO_TE_HL_PROTO_TYPE_BYTES, 99101}, "\0\x01\x02", 3};
  struct PerfettoTeHlProtoFieldFixed64 fixed64 = {{PERFETTO_TE_HL_PROTO_TYPE_FIXED64, 99102}, UINT64_MAX - 1};
  struct PerfettoTeHlProtoFieldFixed32 fixed32 = {{PERFETTO_TE_HL_PROTO_TYPE_FIXED32, 99103}, 0xfffffffe};
  struct PerfettoTeHlProtoFieldDouble real = {{PERFETTO_TE_HL_PROTO_TYPE_DOUBLE, 99104}, -1.5};
  struct PerfettoTeHlProtoFieldFloat small = {{PERFETTO_TE_HL_PROTO_TYPE_FLOAT, 99105}, 3.25f};
  struct PerfettoTeHlProtoFieldVarInt number = {{PERFETTO_TE_HL_PROTO_TYPE_VARINT, 99106}, UINT64_MAX};
  struct PerfettoTeHlProtoFieldCstrInterned nowhere = {{PERFETTO_TE_HL_PROTO_TYPE_CSTR_INTERNED, 99107}, "lost", 0};
  struct PerfettoTeHlProtoField* const empty[] = {NULL};
  struct PerfettoTeHlProtoFieldNested nothing = {{PERFETTO_TE_HL_PROTO_TYPE_NESTED, 99108}, empty};
  struct PerfettoTeHlProtoField* const every[] = {F(bytes),  F(fixed64), F(fixed32), F(real), F(small),
                                                  F(number), F(nowhere), F(nothing), NULL};
  more.fields = every;
  instant(net, "every kind", X(more));
  stop_and_finish(session, "trace");
  return 0;
}
