/* The decoder, with bytes encoded by hand. */

#include "common.h"

static struct PerfettoPbDecoder over(const uint8_t* bytes, size_t len) {
  struct PerfettoPbDecoder d = {bytes, bytes + len};
  return d;
}

static void every_wire_type_is_read(void) {
  static const uint8_t input[] = {0x08, 0x96, 0x01,                                     /* 1: 150 */
                                  0x15, 1, 2, 3, 4,                                     /* 2: fixed32 */
                                  0x19, 1, 2, 3, 4, 5, 6, 7, 8,                         /* 3: fixed64 */
                                  0x22, 2, 'h', 'i',                                    /* 4: "hi" */
                                  0x2a, 0,                                              /* 5: "" */
                                  0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, /* 6: -1 */
                                  0x3d, 0, 0, 0x80, 0x3f,                               /* 7: 1.0f */
                                  0x41, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f,                   /* 8: 1.0 */
                                  0xfd, 0xff, 0xff, 0xff, 0x0f, 9, 0, 0, 0,             /* 2^29 - 1: fixed32 */
                                  0xf8, 0xff, 0xff, 0xff, 0x7f, 5};                     /* 2^32 - 1: 5 */
  struct PerfettoPbDecoder d = over(input, sizeof input);
  struct PerfettoPbDecoderField f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 1 && f.wire_type == 0 && f.value.integer64 == 150);
  CHECK(d.read_ptr == input + 3);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 2 && f.wire_type == 5 && f.value.integer32 == 0x04030201);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 3 && f.wire_type == 1);
  CHECK(f.value.integer64 == 0x0807060504030201u);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 4 && f.wire_type == 2);
  CHECK(f.value.delimited.len == 2 && f.value.delimited.start == input + 19);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 5 && f.wire_type == 2 && f.value.delimited.len == 0);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 6 && f.value.integer64 == UINT64_MAX);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 7 && f.value.float_val == 1.0f);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 8 && f.value.double_val == 1.0);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 0x1fffffff && f.wire_type == 5 && f.value.integer32 == 9);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == UINT32_MAX && f.value.integer64 == 5);
  CHECK(d.read_ptr == d.end_ptr);
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_DONE && d.read_ptr == d.end_ptr);
  CHECK(PerfettoPbDecoderSkipField(&d) == PERFETTO_PB_DECODER_DONE && d.read_ptr == d.end_ptr);
  d = over(NULL, 0);
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_DONE);
}

/* { 1: { 3: { 1: 7 } }, 9: unknown, 2: "end" } */
static void messages_lie_in_messages_and_what_is_unknown_is_skipped(void) {
  static const uint8_t input[] = {0x0a, 4, 0x1a, 2, 0x08, 7, 0x49, 1, 2, 3, 4, 5, 6, 7, 8, 0x12, 3, 'e', 'n', 'd'};
  struct PerfettoPbDecoder d = over(input, sizeof input);
  struct PerfettoPbDecoderField f = PerfettoPbDecoderParseField(&d);
  CHECK(f.id == 1 && f.value.delimited.len == 4);
  struct PerfettoPbDecoder in = over(f.value.delimited.start, f.value.delimited.len);
  f = PerfettoPbDecoderParseField(&in);
  CHECK(f.id == 3 && f.value.delimited.len == 2);
  struct PerfettoPbDecoder innermost = over(f.value.delimited.start, f.value.delimited.len);
  f = PerfettoPbDecoderParseField(&innermost);
  CHECK(f.id == 1 && f.value.integer64 == 7);
  CHECK(PerfettoPbDecoderParseField(&innermost).status == PERFETTO_PB_DECODER_DONE);
  CHECK(PerfettoPbDecoderParseField(&in).status == PERFETTO_PB_DECODER_DONE);
  CHECK(PerfettoPbDecoderSkipField(&d) == PERFETTO_PB_DECODER_OK && d.read_ptr == input + 15);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.id == 2 && f.value.delimited.len == 3 && memcmp(f.value.delimited.start, "end", 3) == 0);
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_DONE);
}

static void what_is_malformed_is_an_error_and_keeps_the_place(void) {
  static const struct {
    uint8_t bytes[16];
    size_t len;
  } bad[] = {
      {{0x80}, 1},                                                 /* incomplete tag */
      {{0x08}, 1},                                                 /* no value */
      {{0x08, 0x80}, 2},                                           /* incomplete value */
      {{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80, 1}, 12}, /* eleven bytes */
      {{0x15, 1, 2, 3}, 4},                                        /* three of four */
      {{0x19, 1, 2, 3, 4, 5, 6, 7}, 8},                            /* seven of eight */
      {{0x22}, 1},                                                 /* no length */
      {{0x22, 5, 'a'}, 3},                                         /* one of five */
      {{0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 11}, /* an impossible length */
      {{0x0b, 0}, 2},                                              /* groups */
      {{0x0c, 0}, 2},
      {{0x0e, 0}, 2},                                              /* no such types */
      {{0x0f, 0}, 2},
      {{0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0}, 7},                /* id 2^32 */
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct PerfettoPbDecoder d = over(bad[i].bytes, bad[i].len);
    CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_ERROR && d.read_ptr == bad[i].bytes);
    CHECK(PerfettoPbDecoderSkipField(&d) == PERFETTO_PB_DECODER_ERROR && d.read_ptr == bad[i].bytes);
  }
  /* After a good field; the decoder reads no further. */
  static const uint8_t behind[] = {0x08, 1, 0x22, 5, 'a'};
  struct PerfettoPbDecoder d = over(behind, sizeof behind);
  CHECK(PerfettoPbDecoderSkipField(&d) == PERFETTO_PB_DECODER_OK);
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_ERROR && d.read_ptr == behind + 2);
  /* The decoder does not check for field 0. */
  static const uint8_t zero[] = {0, 3};
  d = over(zero, sizeof zero);
  struct PerfettoPbDecoderField f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 0 && f.value.integer64 == 3);
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  every_wire_type_is_read();
  messages_lie_in_messages_and_what_is_unknown_is_skipped();
  what_is_malformed_is_an_error_and_keeps_the_place();
  return 0;
}
