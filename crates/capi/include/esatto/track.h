/* Tracks that are objects: a program describes one once, and then refers to it. For C and C++. */

#ifndef ESATTO_TRACK_H_
#define ESATTO_TRACK_H_

#include <sched.h>
#include <unistd.h>

#include "proto.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A link of the chain of tracks that ends in a track. */
struct esatto_link_ {
  struct PerfettoTeHlNestedTrackRegistered nested;
  struct PerfettoTeRegisteredTrackImpl impl;
  uint64_t part; /* its uuid is this ^ the part that its parent has in it */
};

enum esatto_track_kind {
  ESATTO_TRACK_OF_SLICES,
  ESATTO_TRACK_OF_VALUES, /* a counter */
  ESATTO_TRACK_OF_STATES,
};

/* A track with its own descriptor. It must exist, at its place, as long as events are recorded on
 * it and slices on it are open.
 *
 * The tracks of a process have its uuid in theirs. It is known once categories are registered, and
 * changes in the child of a fork, so the first event afterwards describes the tracks anew. */
struct esatto_track {
  struct PerfettoTeRegisteredTrackImpl impl;
  uint64_t part;
  /* Of a track below another one: copies of all tracks above it and of itself, outermost first.
   * Each event passes them, because readers leave out tracks whose parents are not described. */
  struct esatto_link_* chain;
  struct PerfettoTeHlNestedTrack** links; /* pointers to them, up to a null pointer */
  uint64_t root;    /* the track above all of them, if it is not that of the process; 0: none */
  bool is_of_process, is_of_thread;
  enum esatto_track_kind kind;
  uint64_t process; /* the process that they are described for */
  uint64_t updater; /* process and thread that describe them now; 0: none */
};

/* SIBLING_MERGE_BEHAVIOR_NONE of a TrackDescriptor. */
enum { ESATTO_MERGE_NONE_ = 2 };

/* Properties of a track. Null and 0 stand for none. */
struct esatto_track_options {
  uint64_t parent;  /* esatto_process_track(), or esatto_thread_track() of this thread; 0: no process */
  uint64_t id;      /* distinguishes tracks with the same name and parent */
  const char* unit; /* unit of a counter's values */
  /* The track above it, instead of `parent`. It needs no events of its own, and may be closed
   * before this one. */
  const struct esatto_track* below;
  /* In a row of its own, for which no track by name may have its name and id. Other tracks with the
   * same name and parent are shown in as few rows as possible, whatever their ids. */
  bool own_row;
};

/* A descriptor begins with its uuid and that of its parent, each as a varint of 10 bytes, so that
 * both can be changed at their place. That of a thread ends with its numbers in the same form. */
enum { ESATTO_UUID_AT_ = 1, ESATTO_PARENT_AT_ = 12, ESATTO_NUMBER_BYTES_ = 10 };

static inline void esatto_encode_number_(uint8_t* to, uint64_t value) {
  int i;
  for (i = 0; i + 1 < ESATTO_NUMBER_BYTES_; i++) to[i] = (uint8_t)(value >> 7 * i | 0x80);
  to[i] = (uint8_t)(value >> 63);
}

static inline void esatto_put_number_(struct esatto_message* message, uint32_t field, uint64_t value) {
  uint8_t bytes[16];
  uint8_t* number = esatto_encode_tag_(bytes, field, ESATTO_WIRE_VARINT_);
  esatto_encode_number_(number, value);
  esatto_append_(message, bytes, (size_t)(number - bytes) + ESATTO_NUMBER_BYTES_);
}

/* Gives a track the uuid below a parent, and returns it. */
static inline uint64_t esatto_set_uuid_(struct PerfettoTeRegisteredTrackImpl* track, uint64_t parent, uint64_t part) {
  uint8_t* bytes = (uint8_t*)track->descriptor;
  track->uuid = esatto_parent_part_(parent) ^ part;
  if (track->descriptor_size) {
    esatto_encode_number_(bytes + ESATTO_UUID_AT_, track->uuid);
    if (parent) esatto_encode_number_(bytes + ESATTO_PARENT_AT_, parent);
  }
  return track->uuid;
}

/* Sets the numbers of the calling thread, unless those that are there are of this process. */
static inline void esatto_set_thread_(struct esatto_link_* link) {
  uint8_t *pid, *tid, current[ESATTO_NUMBER_BYTES_];
  if (!link->impl.descriptor_size) return;
  tid = (uint8_t*)link->impl.descriptor + link->impl.descriptor_size - ESATTO_NUMBER_BYTES_;
  pid = tid - 1 - ESATTO_NUMBER_BYTES_;
  esatto_encode_number_(current, (uint64_t)getpid());
  if (memcmp(pid, current, sizeof current) == 0) return;
  link->part = (uint64_t)PerfettoGetThreadIdImpl();
  memcpy(pid, current, sizeof current);
  esatto_encode_number_(tid, link->part);
}

static inline void esatto_set_uuids_(struct esatto_track* track) {
  uint64_t parent = track->is_of_process ? esatto_process_track() : track->root;
  size_t i;
  if (track->is_of_thread && track->chain) esatto_set_thread_(&track->chain[0]);
  for (i = 0; track->links && track->links[i]; i++) {
    const uint64_t above = parent;
    parent = esatto_set_uuid_(&track->chain[i].impl, above, track->chain[i].part);
    if (!track->links[i + 1]) parent = above;
  }
  esatto_set_uuid_(&track->impl, parent, track->part);
}

/* Writes a line about a mistake to stderr, once. A signal handler may trace, so it does no more. */
static inline void esatto_say_once_(bool* is_told, const char* line) {
  if (__atomic_exchange_n(is_told, true, __ATOMIC_RELAXED)) return;
  if (write(STDERR_FILENO, line, strlen(line)) < 0) return;
}

static __attribute__((noinline, cold, unused)) void esatto_say_not_open_(void) {
  static bool is_told;
  esatto_say_once_(&is_told, "esatto: events are on a track that is not open, so they belong to no process: esatto_track_open comes before them, "
                             "esatto_track_close after them, and an esatto::Track that was moved from has none\n");
}

/* Describes a track anew after the uuid of the process has changed. No other thread reads it
 * meanwhile, because each comes here before. */
static __attribute__((noinline, cold, unused)) void esatto_move_to_process_(struct esatto_track* track) {
  const uint64_t pid = (uint64_t)getpid() << 32, self = pid | (uint32_t)PerfettoGetThreadIdImpl();
  for (;;) {
    uint64_t updater = __atomic_load_n(&track->updater, __ATOMIC_RELAXED);
    /* A signal handler has interrupted this thread here. */
    if (updater == self) return;
    /* The thread of a process that forked meanwhile is not here any more. */
    if (updater && (updater & ~(uint64_t)UINT32_MAX) == pid) {
      sched_yield();
      continue;
    }
    if (__atomic_compare_exchange_n(&track->updater, &updater, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) break;
  }
  if (track->process != esatto_process_track()) {
    if (!track->impl.descriptor_size) esatto_say_not_open_();
    esatto_set_uuids_(track);
    __atomic_store_n(&track->process, esatto_process_track(), __ATOMIC_RELEASE);
  }
  __atomic_store_n(&track->updater, 0, __ATOMIC_RELEASE);
}

/* Returns the track as it is described for this process. */
static inline const struct esatto_track* esatto_current_(const struct esatto_track* track) {
  if (__builtin_expect(__atomic_load_n(&track->process, __ATOMIC_ACQUIRE) != esatto_process_track(), false))
    esatto_move_to_process_((struct esatto_track*)(uintptr_t)track);
  return track;
}

static inline size_t esatto_count_links_(const struct esatto_track* track) {
  size_t count = 0;
  while (track->links && track->links[count]) count++;
  return count;
}

/* Copies a track, whose descriptor goes to `bytes`. Returns the address after it. */
static inline uint8_t* esatto_copy_link_(struct esatto_link_* to, const struct PerfettoTeRegisteredTrackImpl* from, uint64_t part, uint8_t* bytes) {
  to->nested.header.type = PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED;
  to->nested.track = &to->impl;
  to->impl = *from;
  to->impl.descriptor = bytes;
  to->part = part;
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
    const bool is_last = i + 1 == count;
    const struct PerfettoTeRegisteredTrackImpl* from = is_last ? &track->impl : known ? &above->chain[i].impl : &above->impl;
    bytes = esatto_copy_link_(&track->chain[i], from, is_last ? track->part : known ? above->chain[i].part : above->part, bytes);
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
  track->process = 0;
}

/* Describes the track of the calling thread, which may have no events. */
static inline bool esatto_open_thread_(struct esatto_track* track) {
  struct esatto_buffer buffer;
  struct esatto_message thread;
  memset(track, 0, sizeof *track);
  track->is_of_process = track->is_of_thread = true;
  track->part = (uint64_t)PerfettoGetThreadIdImpl();
  esatto_buffer_open(&buffer);
  esatto_put_number_(&buffer.message, 1, 0);
  esatto_put_number_(&buffer.message, 5, 0);
  thread = esatto_message_begin(&buffer.message, 4);
  esatto_put_number_(&thread, 1, (uint64_t)getpid());
  esatto_put_number_(&thread, 2, track->part);
  esatto_message_end(&thread);
  track->impl.descriptor = esatto_buffer_take(&buffer, &track->impl.descriptor_size);
  return track->impl.descriptor != NULL;
}

/* Describes a track. Strings are copied. Returns false if there is no memory; events are then on a
 * track without a name or without those above it. You may call it before esatto_init. */
static inline bool esatto_track_open(struct esatto_track* track, enum esatto_track_kind kind, const char* name, const struct esatto_track_options* options) {
  struct esatto_track_options none = {0, 0, NULL, NULL, false};
  struct esatto_buffer buffer;
  struct esatto_message special;
  struct esatto_track thread;
  const struct esatto_track* above;
  bool is_good = true;
  if (!options) options = &none;
  memset(track, 0, sizeof *track);
  track->kind = kind;
  track->part = options->id ^ esatto_hash_(name);
  if (kind == ESATTO_TRACK_OF_VALUES) track->part ^= ESATTO_COUNTER_MAGIC_;
  if (kind == ESATTO_TRACK_OF_STATES) track->part ^= ESATTO_STATE_MAGIC_;
  above = options->below ? esatto_current_(options->below) : NULL;
  if (!above && esatto_is_thread_track_(options->parent)) {
    is_good = esatto_open_thread_(&thread);
    above = &thread;
  }
  track->root = above ? above->root : options->parent;
  track->is_of_process = above ? above->is_of_process : esatto_is_process_track_(options->parent);
  track->is_of_thread = above && above->is_of_thread;
  esatto_buffer_open(&buffer);
  esatto_put_number_(&buffer.message, 1, 0);
  if (above || options->parent) esatto_put_number_(&buffer.message, 5, 0);
  esatto_put_string(&buffer.message, 2, name);
  if (options->own_row) esatto_put_uint(&buffer.message, 15, ESATTO_MERGE_NONE_);
  if (kind != ESATTO_TRACK_OF_SLICES) {
    special = esatto_message_begin(&buffer.message, kind == ESATTO_TRACK_OF_VALUES ? 8 : 18);
    if (options->unit) esatto_put_string(&special, 6, options->unit);
    esatto_message_end(&special);
  }
  track->impl.descriptor = esatto_buffer_take(&buffer, &track->impl.descriptor_size);
  is_good = is_good && track->impl.descriptor && (!above || esatto_put_below_(track, above));
  if (above == &thread) esatto_track_close(&thread);
  esatto_set_uuids_(track);
  if (track->impl.descriptor) track->process = esatto_process_track();
  return is_good;
}

/* The extra of an event on a track that is an object. */
union esatto_on_ {
  struct PerfettoTeHlExtra header;
  struct PerfettoTeHlExtraRegisteredTrack alone;
  struct PerfettoTeHlExtraNestedTracks nested;
};

static inline struct PerfettoTeHlExtra* esatto_put_on_(union esatto_on_* to, const struct esatto_track* track) {
  if (esatto_current_(track)->links) {
    to->nested.header.type = PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS;
    to->nested.tracks = track->links;
  } else {
    to->alone.header.type = PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK;
    to->alone.track = &track->impl;
  }
  return &to->header;
}

static __attribute__((noinline, cold, unused)) void esatto_say_wrong_kind_(enum esatto_track_kind kind) {
  static bool is_told[ESATTO_TRACK_OF_STATES + 1];
  esatto_say_once_(&is_told[kind],
                   kind == ESATTO_TRACK_OF_VALUES ? "esatto: values of a counter are on a track of another kind, so no reader shows them: open it "
                                                    "with ESATTO_TRACK_OF_VALUES, or esatto::Track::counter\n"
                                                  : "esatto: states are on a track of another kind, so no reader shows them: open it with "
                                                    "ESATTO_TRACK_OF_STATES, or esatto::Track::states\n");
}

/* As esatto_put_on_, for events that need a track of this kind. */
static inline struct PerfettoTeHlExtra* esatto_put_on_kind_(union esatto_on_* to, const struct esatto_track* track, enum esatto_track_kind kind) {
  if (__builtin_expect(track->kind != kind && track->impl.descriptor_size, false)) esatto_say_wrong_kind_(kind);
  return esatto_put_on_(to, track);
}

/* Bytes of a name that are copied, with the 0 at its end. */
#define ESATTO_KEPT_BYTES_ 64

/* Returns a copy of a text in `to`, or the text itself if it is longer. */
static inline const char* esatto_keep_(char* to, const char* text) {
  const size_t length = text ? strlen(text) : ESATTO_KEPT_BYTES_;
  return length < ESATTO_KEPT_BYTES_ ? (const char*)memcpy(to, text, length + 1) : text;
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
