/* Tracks that are objects: a program describes one once, and then refers to it. For C and C++. */

#ifndef ESATTO_TRACK_H_
#define ESATTO_TRACK_H_

#include "proto.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A track with its own descriptor. It must exist as long as events are recorded on it. */
struct esatto_track {
  struct PerfettoTeRegisteredTrackImpl impl;
};

enum esatto_track_kind {
  ESATTO_TRACK_OF_SLICES,
  ESATTO_TRACK_OF_VALUES, /* a counter */
  ESATTO_TRACK_OF_STATES,
};

/* Properties of a track. Null and 0 stand for none. */
struct esatto_track_options {
  /* esatto_process_track(), esatto_thread_track(), or the number of another track; 0: no process */
  uint64_t parent;
  uint64_t id;      /* distinguishes tracks with the same name */
  const char* unit; /* unit of a counter's values */
};

/* Returns the number of a track, for tracks below it. */
static inline uint64_t esatto_track_uuid(const struct esatto_track* track) { return track->impl.uuid; }

/* Describes a track. Strings are copied. Returns false if there is no memory; events are then on a
 * track without a name. */
static inline bool esatto_track_open(struct esatto_track* track, enum esatto_track_kind kind, const char* name, const struct esatto_track_options* options) {
  struct esatto_track_options none = {0, 0, NULL};
  struct esatto_buffer buffer;
  struct esatto_message special;
  if (!options) options = &none;
  track->impl.uuid = options->parent ^ options->id ^ esatto_hash_(name);
  if (kind == ESATTO_TRACK_OF_VALUES) track->impl.uuid ^= ESATTO_COUNTER_MAGIC_;
  if (kind == ESATTO_TRACK_OF_STATES) track->impl.uuid ^= ESATTO_STATE_MAGIC_;
  esatto_buffer_open(&buffer);
  esatto_put_uint(&buffer.message, 1, track->impl.uuid);
  esatto_put_string(&buffer.message, 2, name);
  if (options->parent) esatto_put_uint(&buffer.message, 5, options->parent);
  if (kind != ESATTO_TRACK_OF_SLICES) {
    special = esatto_message_begin(&buffer.message, kind == ESATTO_TRACK_OF_VALUES ? 8 : 18);
    if (options->unit) esatto_put_string(&special, 6, options->unit);
    esatto_message_end(&special);
  }
  track->impl.descriptor = esatto_buffer_take(&buffer, &track->impl.descriptor_size);
  return track->impl.descriptor != NULL;
}

/* Frees the memory of esatto_track_open. */
static inline void esatto_track_close(struct esatto_track* track) {
  free(track->impl.descriptor);
  track->impl.descriptor = NULL;
  track->impl.descriptor_size = 0;
}

/* The extra of an event on a track of a counter or states that is identified by its name only. */
struct esatto_value_track_ {
  struct PerfettoTeHlExtraProtoTrack extra;
  struct PerfettoTeHlProtoFieldVarInt parent;
  struct PerfettoTeHlProtoFieldCstr name;
  struct PerfettoTeHlProtoFieldNested kind;
  struct PerfettoTeHlProtoField* fields[4];
};

/* The track is one of this process. `kind` is the field of the descriptor. */
static inline struct PerfettoTeHlExtra* esatto_describe_value_track_(struct esatto_value_track_* to, const char* name, uint64_t magic, uint32_t kind) {
  uint64_t parent = esatto_process_track();
  to->parent.header.type = PERFETTO_TE_HL_PROTO_TYPE_VARINT;
  to->parent.header.id = 5;
  to->parent.value = parent;
  to->name.header.type = PERFETTO_TE_HL_PROTO_TYPE_CSTR;
  to->name.header.id = 2;
  to->name.str = name;
  to->kind.header.type = PERFETTO_TE_HL_PROTO_TYPE_NESTED;
  to->kind.header.id = kind;
  to->fields[0] = &to->parent.header;
  to->fields[1] = &to->name.header;
  to->fields[2] = &to->kind.header;
  to->fields[3] = NULL;
  to->kind.fields = to->fields + 3;
  to->extra.header.type = PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK;
  to->extra.uuid = parent ^ esatto_hash_(name) ^ magic;
  to->extra.fields = to->fields;
  return &to->extra.header;
}

#ifdef __cplusplus
}
#endif

#endif /* ESATTO_TRACK_H_ */
