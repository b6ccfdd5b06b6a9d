/* Tracks that are objects: a program describes one once, and then refers to it. For C and C++. */

#ifndef ESATTO_TRACK_H_
#define ESATTO_TRACK_H_

#include <unistd.h>

#include "proto.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A link of the chain of tracks above a track. */
struct esatto_link_ {
  struct PerfettoTeHlNestedTrackRegistered nested;
  struct PerfettoTeRegisteredTrackImpl impl;
};

/* A track with its own descriptor. It must exist as long as events are recorded on it. */
struct esatto_track {
  struct PerfettoTeRegisteredTrackImpl impl;
  /* Of a track below another one: copies of all tracks above it and of itself, outermost first.
   * Each event passes them, because readers leave out tracks whose parents are not described. */
  struct esatto_link_* chain;
  struct PerfettoTeHlNestedTrack** links; /* pointers to them, up to a null pointer */
};

enum esatto_track_kind {
  ESATTO_TRACK_OF_SLICES,
  ESATTO_TRACK_OF_VALUES, /* a counter */
  ESATTO_TRACK_OF_STATES,
};

/* Properties of a track. Null and 0 stand for none. */
struct esatto_track_options {
  uint64_t parent;  /* esatto_process_track(), or esatto_thread_track() of this thread; 0: no process */
  uint64_t id;      /* distinguishes tracks with the same name and parent */
  const char* unit; /* unit of a counter's values */
  /* The track above it, instead of `parent`. It needs no events of its own, and may be closed
   * before this one. */
  const struct esatto_track* below;
};

static inline size_t esatto_count_links_(const struct esatto_track* track) {
  size_t count = 0;
  while (track->links && track->links[count]) count++;
  return count;
}

/* Copies a track, whose descriptor goes to `bytes`. Returns the address after it. */
static inline uint8_t* esatto_copy_link_(struct esatto_link_* to, const struct PerfettoTeRegisteredTrackImpl* from, uint8_t* bytes) {
  to->nested.header.type = PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED;
  to->nested.track = &to->impl;
  to->impl = *from;
  to->impl.descriptor = bytes;
  if (from->descriptor_size) memcpy(bytes, from->descriptor, from->descriptor_size);
  return bytes + from->descriptor_size;
}

/* Puts a track below another one. Returns false if there is no memory. */
static inline bool esatto_put_below_(struct esatto_track* track, const struct esatto_track* above) {
  const size_t known = esatto_count_links_(above), count = (known ? known : 1) + 1;
  size_t size = count * sizeof(struct esatto_link_) + (count + 1) * sizeof(void*) + track->impl.descriptor_size, i;
  uint8_t* bytes;
  for (i = 0; i + 1 < count; i++) size += known ? above->chain[i].impl.descriptor_size : above->impl.descriptor_size;
  track->chain = (struct esatto_link_*)malloc(size);
  if (!track->chain) return false;
  track->links = (struct PerfettoTeHlNestedTrack**)(void*)(track->chain + count);
  bytes = (uint8_t*)(track->links + count + 1);
  for (i = 0; i < count; i++) {
    const struct PerfettoTeRegisteredTrackImpl* from = i + 1 == count ? &track->impl : known ? &above->chain[i].impl : &above->impl;
    bytes = esatto_copy_link_(&track->chain[i], from, bytes);
    track->links[i] = &track->chain[i].nested.header;
  }
  track->links[count] = NULL;
  return true;
}

/* Frees the memory of esatto_track_open. Tracks below it stay as they are. */
static inline void esatto_track_close(struct esatto_track* track) {
  free(track->impl.descriptor);
  free(track->chain);
  track->impl.descriptor = NULL;
  track->impl.descriptor_size = 0;
  track->chain = NULL;
  track->links = NULL;
}

/* Describes the track of the calling thread, which may have no events. */
static inline bool esatto_open_thread_(struct esatto_track* track) {
  struct esatto_buffer buffer;
  struct esatto_message thread;
  track->chain = NULL;
  track->links = NULL;
  track->impl.uuid = esatto_thread_track();
  esatto_buffer_open(&buffer);
  esatto_put_uint(&buffer.message, 1, track->impl.uuid);
  esatto_put_uint(&buffer.message, 5, esatto_process_track());
  thread = esatto_message_begin(&buffer.message, 4);
  esatto_put_int(&thread, 1, getpid());
  esatto_put_int(&thread, 2, (int64_t)PerfettoGetThreadIdImpl());
  esatto_message_end(&thread);
  track->impl.descriptor = esatto_buffer_take(&buffer, &track->impl.descriptor_size);
  return track->impl.descriptor != NULL;
}

/* Describes a track. Strings are copied. Returns false if there is no memory; events are then on a
 * track without a name or without those above it. */
static inline bool esatto_track_open(struct esatto_track* track, enum esatto_track_kind kind, const char* name, const struct esatto_track_options* options) {
  struct esatto_track_options none = {0, 0, NULL, NULL};
  struct esatto_buffer buffer;
  struct esatto_message special;
  struct esatto_track thread;
  uint64_t parent;
  bool is_good;
  if (!options) options = &none;
  parent = options->below ? options->below->impl.uuid : options->parent;
  track->chain = NULL;
  track->links = NULL;
  track->impl.uuid = esatto_parent_part_(parent) ^ options->id ^ esatto_hash_(name);
  if (kind == ESATTO_TRACK_OF_VALUES) track->impl.uuid ^= ESATTO_COUNTER_MAGIC_;
  if (kind == ESATTO_TRACK_OF_STATES) track->impl.uuid ^= ESATTO_STATE_MAGIC_;
  esatto_buffer_open(&buffer);
  esatto_put_uint(&buffer.message, 1, track->impl.uuid);
  esatto_put_string(&buffer.message, 2, name);
  if (parent) esatto_put_uint(&buffer.message, 5, parent);
  if (kind != ESATTO_TRACK_OF_SLICES) {
    special = esatto_message_begin(&buffer.message, kind == ESATTO_TRACK_OF_VALUES ? 8 : 18);
    if (options->unit) esatto_put_string(&special, 6, options->unit);
    esatto_message_end(&special);
  }
  track->impl.descriptor = esatto_buffer_take(&buffer, &track->impl.descriptor_size);
  is_good = track->impl.descriptor != NULL;
  if (is_good && options->below) {
    is_good = esatto_put_below_(track, options->below);
  } else if (is_good && parent && parent == esatto_thread_track()) {
    is_good = esatto_open_thread_(&thread) && esatto_put_below_(track, &thread);
    esatto_track_close(&thread);
  }
  return is_good;
}

/* The extra of an event on a track that is an object. */
union esatto_on_ {
  struct PerfettoTeHlExtra header;
  struct PerfettoTeHlExtraRegisteredTrack alone;
  struct PerfettoTeHlExtraNestedTracks nested;
};

static inline struct PerfettoTeHlExtra* esatto_put_on_(union esatto_on_* to, const struct esatto_track* track) {
  if (track->links) {
    to->nested.header.type = PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS;
    to->nested.tracks = track->links;
  } else {
    to->alone.header.type = PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK;
    to->alone.track = &track->impl;
  }
  return &to->header;
}

/* Sets the id of a track for the library, which computes the uuid as parent ^ id ^ hash of the
 * name. Returns the uuid. */
static inline uint64_t esatto_set_apart_(uint64_t* id, uint64_t parent, const char* name) {
  const uint64_t uuid = esatto_parent_part_(parent) ^ *id ^ esatto_hash_(name ? name : "");
  *id ^= parent ^ esatto_parent_part_(parent);
  return uuid;
}

/* Sets the ids of nested tracks, up to a null pointer, in copies of the named ones. */
static inline void esatto_set_levels_apart_(struct PerfettoTeHlNestedTrack** tracks, struct PerfettoTeHlNestedTrackNamed* copy) {
  uint64_t uuid = 0;
  for (; *tracks; tracks++) {
    void* track = *tracks;
    switch ((*tracks)->type) {
      case PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROCESS:
        uuid = esatto_process_track();
        break;
      case PERFETTO_TE_HL_NESTED_TRACK_TYPE_THREAD:
        uuid = esatto_thread_track();
        break;
      case PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED:
        uuid = ((struct PerfettoTeHlNestedTrackRegistered*)track)->track->uuid;
        break;
      case PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROTO:
        uuid ^= ((struct PerfettoTeHlNestedTrackProto*)track)->id;
        break;
      case PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED:
        *copy = *(struct PerfettoTeHlNestedTrackNamed*)track;
        uuid = esatto_set_apart_(&copy->id, uuid, copy->name);
        *tracks = &copy->header;
        copy++;
        break;
    }
  }
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
