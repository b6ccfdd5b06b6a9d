/* Messages encoded on the heap, as the inline functions of headers do it. Another parser reads the
 * files. */

#include "message.h"

static struct PerfettoHeapBuffer* buffer;
static struct PerfettoStreamWriter w;

static void begin(void) {
  memset(&w, 0xee, sizeof w);
  buffer = PerfettoHeapBufferCreate(&w);
  CHECK(w.begin == w.end && w.write_ptr == w.end && w.written_previously == 0);
#ifdef PERFETTO_C_V59
  CHECK(w.encoding == 0);
#endif
}

static void end(const char* path) {
  size_t size = written(&w);
  uint8_t* copy = malloc(size + 2);
  memset(copy, 0xcc, size + 2);
  PerfettoHeapBufferCopyInto(buffer, &w, copy, size + 1);
  CHECK(copy[size] == 0xcc && copy[size + 1] == 0xcc);
  if (size > 1) {
    /* A part of the bytes. */
    uint8_t* part = malloc(size);
    memset(part, 0xcc, size);
    PerfettoHeapBufferCopyInto(buffer, &w, part, size / 2);
    CHECK(memcmp(part, copy, size / 2) == 0 && part[size / 2] == 0xcc);
    free(part);
  }
  FILE* file = fopen(path, "wb");
  CHECK(file && fwrite(copy, 1, size, file) == size && fclose(file) == 0);
  free(copy);
  PerfettoHeapBufferDestroy(buffer, &w);
}

static void scalars(struct message* m) {
  double d = -1.5;
  float f = 3.25f;
  uint32_t fixed32 = 0xfffffffe;
  int32_t sfixed32 = -4;
  uint64_t fixed64 = UINT64_MAX - 1;
  int64_t sfixed64 = INT64_MIN;
  m_number(m, 1, (uint64_t)(int64_t)-7);       /* int32 */
  m_number(m, 2, (uint64_t)INT64_MIN);         /* int64 */
  m_number(m, 3, UINT32_MAX);                  /* uint32 */
  m_number(m, 4, UINT64_MAX);                  /* uint64 */
  m_zigzag(m, 5, INT32_MIN);                   /* sint32 */
  m_zigzag(m, 6, INT64_MIN);                   /* sint64 */
  m_fixed32(m, 7, &fixed32);
  m_fixed64(m, 8, &fixed64);
  m_fixed32(m, 9, &sfixed32);
  m_fixed64(m, 10, &sfixed64);
  m_fixed32(m, 11, &f);
  m_fixed64(m, 12, &d);
  m_number(m, 13, 1);                          /* bool */
  m_number(m, 14, 2);                          /* enum */
  m_text(m, 15, "a text");
  m_bytes(m, 16, "\0\xff\x80", 3);
}

static void every_type(void) {
  begin();
  struct message root = root_message(&w);
  scalars(&root);
  struct message in = m_begin(&root, 17);
  scalars(&in);
  struct message innermost = m_begin(&in, 17);
  m_text(&innermost, 15, "innermost");
  m_end(&innermost);
  m_number(&in, 1, 5);
  m_end(&in);
  struct message empty = m_begin(&root, 17);
  m_end(&empty);
  /* Packed: raw elements in a message. */
  struct message packed = m_begin(&root, 18);
  m_varint(&packed, 1);
  m_varint(&packed, 300);
  m_varint(&packed, (uint64_t)(int64_t)-1);
  m_end(&packed);
  packed = m_begin(&root, 19);
  for (uint32_t i = 0; i < 3; i++) m_raw(&packed, &i, 4);
  m_end(&packed);
  packed = m_begin(&root, 20);
  for (uint64_t i = 0; i < 3000; i++) m_raw(&packed, &i, 8);
  m_end(&packed);
  end("every_type");
}

/* Messages in several slices of 4096 bytes, in pieces of all sizes, so that every kind of boundary
 * occurs. */
static void over_slices(void) {
  begin();
  struct message root = root_message(&w);
  char text[300];
  memset(text, 'x', sizeof text);
  for (int outer = 0; outer < 40; outer++) {
    struct message in = m_begin(&root, 17);
    m_number(&in, 3, (uint64_t)outer);
    for (int i = 0; i < 20; i++) {
      struct message innermost = m_begin(&in, 17);
      m_number(&innermost, 3, (uint64_t)i);
      m_bytes(&innermost, 15, text, (size_t)((outer * 7 + i * 13) % 300));
      m_end(&innermost);
    }
    m_end(&in);
  }
  CHECK(written(&w) > 3 * 4096);
  end("over_slices");
}

static void one_large_piece(void) {
  static char text[100000];
  memset(text, 'y', sizeof text);
  begin();
  struct message root = root_message(&w);
  struct message in = m_begin(&root, 17);
  m_bytes(&in, 15, text, sizeof text);
  m_end(&in);
  m_number(&root, 3, 1);
  end("one_large_piece");
}

static void nothing(void) {
  begin();
  CHECK(written(&w) == 0);
  end("nothing");
}

/* Promises of the stream writer. */
static void the_slow_paths(void) {
  static uint8_t data[10000], copy[10000];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7);
  begin();
  for (size_t i = 0; i < 3; i++) {
    PerfettoStreamWriterNewChunk(&w);
    CHECK(w.end > w.write_ptr);
    *w.write_ptr++ = data[i];
    PerfettoStreamWriterUpdateWritePtr(&w);
  }
  PerfettoStreamWriterReserveBytesSlowpath(&w, 5000);
  memcpy(w.write_ptr - 5000, data + 3, 5000);
  uint8_t* place = w.write_ptr - 4;
  CHECK(PerfettoStreamWriterAnnotatePatch(&w, place) == place);
  memcpy(place, data + 4999, 4);
  PerfettoStreamWriterAppendBytesSlowpath(&w, data + 5003, sizeof data - 5003);
  PerfettoStreamWriterAppendBytesSlowpath(&w, NULL, 0);
  CHECK(written(&w) == sizeof data);
  PerfettoHeapBufferCopyInto(buffer, &w, copy, sizeof copy);
  CHECK(memcmp(copy, data, sizeof data) == 0);
  PerfettoHeapBufferDestroy(buffer, &w);
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  every_type();
  over_slices();
  one_large_piece();
  nothing();
  the_slow_paths();
  return 0;
}
