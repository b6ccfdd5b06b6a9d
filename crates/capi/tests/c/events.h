/* Short functions for track events. */

#ifndef EVENTS_H_
#define EVENTS_H_

#include "common.h"

/* Converts a struct that begins with the header of an extra, a proto field or a nested track. */
#define X(e) ((struct PerfettoTeHlExtra*)&(e))
#define F(f) ((struct PerfettoTeHlProtoField*)&(f))
#define N(n) ((struct PerfettoTeHlNestedTrack*)&(n))

/* emit(category, type, name, extras…) */
#define emit(cat, type, name, ...)                                                                     \
  do {                                                                                                 \
    struct PerfettoTeHlExtra* const extras_[] = {__VA_ARGS__ __VA_OPT__(, ) NULL};                     \
    PerfettoTeHlEmitImpl(cat, type, name, extras_);                                                    \
  } while (0)

#define instant(cat, name, ...) emit(cat, PERFETTO_TE_TYPE_INSTANT, name, __VA_ARGS__)

static inline uint64_t fnv(const char* text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
  return hash;
}

/* Initialises everything, and makes one category. */
static inline struct PerfettoTeCategoryImpl* init_with_category(struct PerfettoTeCategoryDescriptor* desc) {
  init_producer();
  PerfettoTeInit();
  struct PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(desc);
  PerfettoTePublishCategories();
  return cat;
}

/* Starts a session with the category, and waits until it is enabled. */
static inline struct PerfettoTracingSessionImpl* record(const char* pattern, struct PerfettoTeCategoryImpl* cat) {
  struct bytes config = config_for_categories(pattern);
  struct PerfettoTracingSessionImpl* session = start(&config);
  if (is_system_wide()) WAIT_FOR(*PerfettoTeCategoryImplGetEnabled(cat));
  CHECK(*PerfettoTeCategoryImplGetEnabled(cat));
  return session;
}

#endif
