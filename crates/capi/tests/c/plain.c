/* What needs no service: before initialisation nothing happens; heap buffers and the decoder. */

#include "common.h"

static PERFETTO_ATOMIC(bool)* in_a_static = &perfetto_atomic_false;

static void nothing_happens_before_initialisation(void) {
  CHECK(in_a_static == &perfetto_atomic_false && !*in_a_static);
  CHECK(perfetto_te_any_categories == NULL && perfetto_te_any_categories_enabled == NULL);
  CHECK(perfetto_te_process_track_uuid == 0);
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  struct PerfettoDsImplTracerIterator it = PerfettoDsImplTraceIterateBegin(ds);
  CHECK(it.tracer == NULL && it.tls == NULL && it.inst_id == 0);
  CHECK(PerfettoDsSetBufferExhaustedPolicy(ds, 2) && !PerfettoDsSetBufferExhaustedPolicy(ds, 3));
}

static void a_heap_buffer_holds_what_was_written(void) {
  struct PerfettoStreamWriter w;
  memset(&w, 0xee, sizeof w);
  struct PerfettoHeapBuffer* buffer = PerfettoHeapBufferCreate(&w);
  CHECK(w.begin == w.end && w.write_ptr == w.end && w.written_previously == 0);
  static uint8_t data[10000], copy[12000];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7);
  for (size_t i = 0; i < 3; i++) {
    PerfettoStreamWriterNewChunk(&w);
    CHECK(w.end > w.write_ptr);
    *w.write_ptr++ = data[i];
  }
  PerfettoStreamWriterReserveBytesSlowpath(&w, 5000);
  memcpy(w.write_ptr - 5000, data + 3, 5000);
  uint8_t* place = w.write_ptr - 4;
  CHECK(PerfettoStreamWriterAnnotatePatch(&w, place) == place);
  PerfettoStreamWriterAppendBytesSlowpath(&w, data + 5003, sizeof data - 5003);
  PerfettoStreamWriterAppendBytesSlowpath(&w, NULL, 0);
  CHECK(w.written_previously + (size_t)(w.write_ptr - w.begin) == sizeof data);
  memset(copy, 0, sizeof copy);
  PerfettoHeapBufferCopyInto(buffer, &w, copy, sizeof copy);
  CHECK(memcmp(copy, data, sizeof data) == 0 && copy[sizeof data] == 0);
  memset(copy, 0, sizeof copy);
  PerfettoHeapBufferCopyInto(buffer, &w, copy, 6);
  CHECK(memcmp(copy, data, 6) == 0 && copy[6] == 0);
  PerfettoHeapBufferDestroy(buffer, &w);
}

static void the_decoder_reads_all_kinds_of_fields(void) {
  static const uint8_t input[] = {0x08, 0x96, 0x01, 0x15, 1, 2, 3, 4, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x22, 2, 'h', 'i',
                                  0xfd, 0xff, 0xff, 0xff, 0x7f, 9, 0, 0, 0};
  struct PerfettoPbDecoder d = {input, input + sizeof input};
  struct PerfettoPbDecoderField f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.id == 1 && f.wire_type == 0 && f.value.integer64 == 150);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.id == 2 && f.wire_type == 5 && f.value.integer32 == 0x04030201);
  CHECK(PerfettoPbDecoderSkipField(&d) == PERFETTO_PB_DECODER_OK);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.id == 4 && f.wire_type == 2 && f.value.delimited.len == 2 && memcmp(f.value.delimited.start, "hi", 2) == 0);
  f = PerfettoPbDecoderParseField(&d);
  CHECK(f.status == PERFETTO_PB_DECODER_OK && f.wire_type == 5 && f.value.integer32 == 9);
  CHECK(PerfettoPbDecoderParseField(&d).status == PERFETTO_PB_DECODER_DONE && d.read_ptr == d.end_ptr);

  static const uint8_t bad[][4] = {{0x08, 0x80, 0, 0}, {0x22, 5, 'a', 0}, {0x0b, 0, 0, 0}, {0x0c, 0, 0, 0}, {0x15, 1, 0, 0}};
  static const size_t len[] = {2, 3, 1, 1, 2};
  for (size_t i = 0; i < sizeof len / sizeof *len; i++) {
    struct PerfettoPbDecoder b = {bad[i], bad[i] + len[i]};
    CHECK(PerfettoPbDecoderParseField(&b).status == PERFETTO_PB_DECODER_ERROR && b.read_ptr == bad[i]);
    CHECK(PerfettoPbDecoderSkipField(&b) == PERFETTO_PB_DECODER_ERROR);
  }
  struct PerfettoPbDecoder zero = {input + 8 + 20, input + 8 + 22}; /* 0, 0: field 0 */
  CHECK(PerfettoPbDecoderParseField(&zero).status == PERFETTO_PB_DECODER_OK);
}

int main(void) {
  nothing_happens_before_initialisation();
  a_heap_buffer_holds_what_was_written();
  the_decoder_reads_all_kinds_of_fields();
  return 0;
}
