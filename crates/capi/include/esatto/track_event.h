/* Track events in C: slices, instants, counters, states, and their extras. See esatto/trace.h. */

#ifndef ESATTO_TRACK_EVENT_H_
#define ESATTO_TRACK_EVENT_H_

#include "track.h"

/* Flag of a category until it is registered. It is true, so that esatto_is_enabled looks closer. */
static __attribute__((unused)) PERFETTO_ATOMIC(bool) esatto_not_registered_ = true;

/* Initial value of a `struct esatto_category` outside functions: name, description, tags.
 * Description and tags are optional. */
#define ESATTO_CATEGORY(...) ESATTO_CATEGORY_(__VA_ARGS__, NULL, NULL)
#define ESATTO_CATEGORY_(name, about, ...) {&esatto_not_registered_, NULL, {name, about, (const char*[]){__VA_ARGS__}, 0}}

/* Registers categories, which are given as pointers. Call it after esatto_init. Each shared object
 * registers those that it uses, because it may have copies of its own. A trace point whose category
 * is not registered says so on stderr while a session records. */
#define ESATTO_REGISTER(...) esatto_register_categories((struct esatto_category* const[]){__VA_ARGS__, NULL})

/* Events. The category is a pointer. The name is not a null pointer. Any number of extras (see
 * below) follow it. If nothing records the category, the name and the extras are not evaluated.
 *
 * A signal handler may trace, but only if its signal never arrives while the thread is in malloc or
 * free, because some events allocate: block the signal there, or raise it yourself. A handler that
 * breaks this rule can stop the program for ever. If the handler interrupts a trace point of its
 * thread, its events are dropped.
 *
 * A trace point is no cancellation point (pthread_cancel). A slice of a cancelled thread ends if
 * the code is compiled with -fexceptions. */

/* A slice, from here to the end of the block. It ends on the track on which it begins. As in C++,
 * no goto and no case label of a switch may pass it into its block: the compiler refuses that. A
 * block of its own mends it. A longjmp out of the block leaves the slice open. A line has only one,
 * because the variables have its number in their names. */
#define ESATTO_SLICE(category, ...)                                                                                        \
  ESATTO_NO_JUMP_(ESATTO_UNIQUE_(esatto_no_jump_may_pass_this_slice_))                                                     \
  struct esatto_category* const ESATTO_UNIQUE_(esatto_category_) = (category);                                             \
  struct esatto_slice_ ESATTO_UNIQUE_(esatto_slice_) __attribute__((cleanup(esatto_slice_end_), unused)) =                 \
      esatto_is_enabled(ESATTO_UNIQUE_(esatto_category_))                                                                  \
          ? esatto_slice_begin_(ESATTO_UNIQUE_(esatto_category_), ESATTO_FIRST_(__VA_ARGS__, 0), ESATTO_EXTRAS_(__VA_ARGS__)) \
          : (struct esatto_slice_){NULL, NULL, NULL}

/* (category, name, extras…): begins a slice on its track. */
#define ESATTO_BEGIN(category, ...) ESATTO_NAMED_(category, PERFETTO_TE_TYPE_SLICE_BEGIN, __VA_ARGS__)

/* (category, extras…): ends the slice that began last on the track. It wants the same track and
 * ESATTO_CATEGORY_NAME as ESATTO_BEGIN. */
#define ESATTO_END(...) ESATTO_EMIT_(ESATTO_FIRST_(__VA_ARGS__, 0), PERFETTO_TE_TYPE_SLICE_END, NULL, ESATTO_EXTRAS_(__VA_ARGS__))

/* (category, name, extras…): an instant. */
#define ESATTO_INSTANT(category, ...) ESATTO_NAMED_(category, PERFETTO_TE_TYPE_INSTANT, __VA_ARGS__)

/* (category, name of the counter, value, extras…): a new value of a counter of this process, an
 * integer or not. */
#define ESATTO_COUNTER(category, counter, ...)                                                                      \
  ESATTO_EMIT_(category, PERFETTO_TE_TYPE_COUNTER, NULL,                                                            \
               ESATTO_TWO_AND_EXTRAS_(esatto_describe_value_track_(&(struct esatto_value_track_){.fields = {NULL}}, counter, \
                                                          ESATTO_COUNTER_MAGIC_, 8),                                \
                                      ESATTO_VALUE_(ESATTO_FIRST_(__VA_ARGS__, 0)), __VA_ARGS__))

/* (category, pointer to the track, value, extras…): as above, for a track that is an object. */
#define ESATTO_COUNTER_ON(category, track, ...)              \
  ESATTO_EMIT_(category, PERFETTO_TE_TYPE_COUNTER, NULL,     \
               ESATTO_TWO_AND_EXTRAS_(ESATTO_ON_KIND_(track, ESATTO_TRACK_OF_VALUES), ESATTO_VALUE_(ESATTO_FIRST_(__VA_ARGS__, 0)), __VA_ARGS__))

/* (category, name of the track, state, extras…): a new state, until the next one. NULL stands for
 * none. */
#define ESATTO_STATE(category, thing, ...)                                                                                \
  ESATTO_EMIT_(category, PERFETTO_TE_TYPE_STATE, ESATTO_FIRST_(__VA_ARGS__, 0),                                           \
               ESATTO_ONE_AND_EXTRAS_(esatto_describe_value_track_(&(struct esatto_value_track_){.fields = {NULL}}, thing,         \
                                                          ESATTO_STATE_MAGIC_, 18),                                       \
                                      __VA_ARGS__))

/* (category, pointer to the track, state, extras…): as above, for a track that is an object. */
#define ESATTO_STATE_ON(category, track, ...)                                                           \
  ESATTO_EMIT_(category, PERFETTO_TE_TYPE_STATE, ESATTO_FIRST_(__VA_ARGS__, 0),                         \
               ESATTO_ONE_AND_EXTRAS_(ESATTO_ON_KIND_(track, ESATTO_TRACK_OF_STATES), __VA_ARGS__))

/* Extras: annotations. ESATTO_ARG takes numbers, strings and pointers, and knows them by their
 * types. */

#define ESATTO_ARG(name, value)                   \
  _Generic((value),                               \
      bool: esatto_arg_bool_,                     \
      char: esatto_arg_int_,                      \
      signed char: esatto_arg_int_,               \
      short: esatto_arg_int_,                     \
      int: esatto_arg_int_,                       \
      long: esatto_arg_int_,                      \
      long long: esatto_arg_int_,                 \
      unsigned char: esatto_arg_uint_,            \
      unsigned short: esatto_arg_uint_,           \
      unsigned: esatto_arg_uint_,                 \
      unsigned long: esatto_arg_uint_,            \
      unsigned long long: esatto_arg_uint_,       \
      float: esatto_arg_double_,                  \
      double: esatto_arg_double_,                 \
      long double: esatto_arg_double_,            \
      char*: esatto_arg_string_,                  \
      const char*: esatto_arg_string_,            \
      default: esatto_arg_pointer_)(ESATTO_NEW_ARG_, name, value)

#define ESATTO_ARG_BOOL(name, value) esatto_arg_bool_(ESATTO_NEW_ARG_, name, value)
#define ESATTO_ARG_INT(name, value) esatto_arg_int_(ESATTO_NEW_ARG_, name, value)
#define ESATTO_ARG_UINT(name, value) esatto_arg_uint_(ESATTO_NEW_ARG_, name, value)
#define ESATTO_ARG_DOUBLE(name, value) esatto_arg_double_(ESATTO_NEW_ARG_, name, value)
#define ESATTO_ARG_STRING(name, value) esatto_arg_string_(ESATTO_NEW_ARG_, name, value)
#define ESATTO_ARG_POINTER(name, value) esatto_arg_pointer_(ESATTO_NEW_ARG_, name, value)

/* Extras: tracks. The default is the track of the thread. */

/* On a track that is an object; takes its pointer. */
#define ESATTO_ON(track) esatto_put_on_(&(union esatto_on_){{0}}, track)
#define ESATTO_ON_KIND_(track, kind) esatto_put_on_kind_(&(union esatto_on_){{0}}, track, kind)
/* On the track of the process. */
#define ESATTO_ON_PROCESS ESATTO_ON_NESTED(ESATTO_NEST_PROCESS)
/* On a track of the process, by its name. The number distinguishes tracks with the same name. The
 * text of a name, here and in ESATTO_CATEGORY_NAME, is copied. Only one of more than 63 bytes must
 * stay as it is until an ESATTO_SLICE ends, as the names in ESATTO_NEST must. */
#define ESATTO_ON_NAMED(name, id) ESATTO_ON_NAMED_UNDER(esatto_process_track(), name, id)
/* On a track below esatto_process_track() or esatto_thread_track(), or of no process if the parent
 * is 0. Below a track that is an object: see ESATTO_ON_NESTED. */
#define ESATTO_ON_NAMED_UNDER(parent, name, id) \
  esatto_named_under_(&(struct esatto_named_track_){{{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, name, id, parent, false}, {0}})
/* On the last of these tracks. Each is below the one before, and needs no events of its own. */
#define ESATTO_ON_NESTED(...)                                                                                            \
  esatto_nested_(&(struct PerfettoTeHlExtraNestedTracks){{PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS}, NULL},               \
                 (struct PerfettoTeHlNestedTrack*[]){__VA_ARGS__, NULL},                                                 \
                 (struct PerfettoTeHlNestedTrackNamed[sizeof((struct PerfettoTeHlNestedTrack*[]){__VA_ARGS__}) / sizeof(void*)]){ \
                     {{0}, NULL, 0, false, 0, 0, 0, NULL, 0}})
#define ESATTO_NEST_PROCESS (&(struct PerfettoTeHlNestedTrack){PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROCESS})
#define ESATTO_NEST_THREAD (&(struct PerfettoTeHlNestedTrack){PERFETTO_TE_HL_NESTED_TRACK_TYPE_THREAD})
/* A track that is an object. Name those above it before it. */
#define ESATTO_NEST_TRACK(track) \
  (&(struct PerfettoTeHlNestedTrackRegistered){{PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED}, &esatto_current_(track)->impl}.header)
/* A track by its name, and members of struct PerfettoTeHlNestedTrackNamed: ESATTO_NEST("layer", .id
 * = 3, .sibling_order_rank = 1) */
#define ESATTO_NEST(...) \
  (&(struct PerfettoTeHlNestedTrackNamed){.header = {PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED}, .name = __VA_ARGS__}.header)

/* Extras: connections. A flow is an arrow through all events with its number, in this process or in
 * the whole machine. */

#define ESATTO_FLOW(id) ESATTO_FLOW_ACROSS((uint64_t)(id) ^ esatto_process_track())
#define ESATTO_FLOW_ENDS(id) ESATTO_FLOW_ACROSS_ENDS((uint64_t)(id) ^ esatto_process_track())
#define ESATTO_FLOW_ACROSS(id) ESATTO_EXTRA_(Flow, {PERFETTO_TE_HL_EXTRA_TYPE_FLOW}, id)
#define ESATTO_FLOW_ACROSS_ENDS(id) ESATTO_EXTRA_(Flow, {PERFETTO_TE_HL_EXTRA_TYPE_TERMINATING_FLOW}, id)
/* Events with the same number, or with the same text, belong together. */
#define ESATTO_CORRELATION(id) ESATTO_EXTRA_(CorrelationId, {PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID}, id)
#define ESATTO_CORRELATION_TEXT(text) ESATTO_EXTRA_(CorrelationIdStr, {PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID_STR}, text)

/* Extras: the rest. */

/* The time of the event, if it is not now: a struct PerfettoTeTimestamp, such as esatto_now()
 * returns. */
#define ESATTO_AT(timestamp) ESATTO_EXTRA_(Timestamp, {PERFETTO_TE_HL_EXTRA_TYPE_TIMESTAMP}, timestamp)
/* Writes the name in full and does not remember it. For names that are rarely the same. */
#define ESATTO_NO_INTERN (&(struct PerfettoTeHlExtra){PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN})
/* Sends the event to the service at once. */
#define ESATTO_FLUSH (&(struct PerfettoTeHlExtra){PERFETTO_TE_HL_EXTRA_TYPE_FLUSH})
/* A category whose name is known at run time: ESATTO_INSTANT(ESATTO_ANY, "done",
 * ESATTO_CATEGORY_NAME(name)) */
#define ESATTO_ANY (&(struct esatto_category[]){esatto_any_category()}[0])
#define ESATTO_CATEGORY_NAME(text) \
  esatto_category_named_(&(struct esatto_category_name_){{{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, NULL}, {text, NULL, NULL, 0}, {0}})

/* Extras: typed fields of the message TrackEvent, by their numbers. */

#define ESATTO_FIELDS(...)                                           \
  ESATTO_EXTRA_(ProtoFields, {PERFETTO_TE_HL_EXTRA_TYPE_PROTO_FIELDS}, \
                (struct PerfettoTeHlProtoField* const[]){__VA_ARGS__, NULL})
/* Fields of the types int32, int64, uint32, uint64, bool and enumerations. */
#define ESATTO_FIELD_VARINT(id, value) ESATTO_FIELD_(VarInt, VARINT, id, (uint64_t)(value))
#define ESATTO_FIELD_FIXED64(id, value) ESATTO_FIELD_(Fixed64, FIXED64, id, value)
#define ESATTO_FIELD_FIXED32(id, value) ESATTO_FIELD_(Fixed32, FIXED32, id, value)
#define ESATTO_FIELD_DOUBLE(id, value) ESATTO_FIELD_(Double, DOUBLE, id, value)
#define ESATTO_FIELD_FLOAT(id, value) ESATTO_FIELD_(Float, FLOAT, id, value)
#define ESATTO_FIELD_STRING(id, text) ESATTO_FIELD_(Cstr, CSTR, id, text)
#define ESATTO_FIELD_BYTES(id, from, size) ESATTO_FIELD_(Bytes, BYTES, id, from, size)
/* An interned text. The table of InternedData is given by its field. */
#define ESATTO_FIELD_INTERNED(id, text, table) ESATTO_FIELD_(CstrInterned, CSTR_INTERNED, id, text, table)
/* A message with these fields. */
#define ESATTO_FIELD_MESSAGE(id, ...) \
  ESATTO_FIELD_(Nested, NESTED, id, (struct PerfettoTeHlProtoField* const[]){__VA_ARGS__, NULL})

/* Parts of the macros above. */

#define ESATTO_EXTRA_(name, ...) ((struct PerfettoTeHlExtra*)&(struct PerfettoTeHlExtra##name){__VA_ARGS__})
#define ESATTO_FIELD_(name, kind, field, ...) \
  ((struct PerfettoTeHlProtoField*)&(struct PerfettoTeHlProtoField##name){{PERFETTO_TE_HL_PROTO_TYPE_##kind, field}, __VA_ARGS__})

/* Macros whose first argument is of another kind than the rest. */
#define ESATTO_EXTRAS_(...) ((struct PerfettoTeHlExtra* const[]){ESATTO_REST_(__VA_ARGS__, NULL)})
#define ESATTO_ONE_AND_EXTRAS_(one, ...) ((struct PerfettoTeHlExtra* const[]){one, ESATTO_REST_(__VA_ARGS__, NULL)})
#define ESATTO_TWO_AND_EXTRAS_(one, two, ...) ((struct PerfettoTeHlExtra* const[]){one, two, ESATTO_REST_(__VA_ARGS__, NULL)})

#define ESATTO_NAMED_(category, type, ...) \
  ESATTO_EMIT_(category, type, ESATTO_FIRST_(__VA_ARGS__, 0), ESATTO_EXTRAS_(__VA_ARGS__))
#define ESATTO_EMIT_(category, type, name, ...)                                               \
  do {                                                                                        \
    struct esatto_category* const esatto_category_ = (category);                              \
    if (esatto_is_enabled(esatto_category_)) PerfettoTeHlEmitImpl(esatto_category_->impl, type, name, __VA_ARGS__); \
  } while (0)

struct esatto_named_track_ {
  struct PerfettoTeHlExtraNamedTrack extra;
  char kept[ESATTO_KEPT_BYTES_];
};

static inline struct PerfettoTeHlExtra* esatto_named_under_(struct esatto_named_track_* track) {
  esatto_set_apart_(&track->extra.id, track->extra.parent_uuid, track->extra.name);
  track->extra.name = esatto_keep_(track->kept, track->extra.name);
  return &track->extra.header;
}

struct esatto_category_name_ {
  struct PerfettoTeHlExtraDynamicCategory extra;
  struct PerfettoTeCategoryDescriptor descriptor;
  char kept[ESATTO_KEPT_BYTES_];
};

static inline struct PerfettoTeHlExtra* esatto_category_named_(struct esatto_category_name_* category) {
  category->descriptor.name = esatto_keep_(category->kept, category->descriptor.name);
  category->extra.desc = &category->descriptor;
  return &category->extra.header;
}

static inline struct PerfettoTeHlExtra* esatto_nested_(struct PerfettoTeHlExtraNestedTracks* to, struct PerfettoTeHlNestedTrack** tracks,
                                                       struct PerfettoTeHlNestedTrackNamed* copies) {
  esatto_set_levels_apart_(tracks, copies);
  to->tracks = tracks;
  return &to->header;
}

/* A type whose size is not a constant. C forbids jumps past its declaration. Clang refuses them
 * because of the cleanup. */
#ifdef __clang__
#define ESATTO_NO_JUMP_(name)
#else
#define ESATTO_NO_JUMP_(name)                                                 \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wvla\"") \
  typedef char name[esatto_one_()] __attribute__((unused));                   \
  _Pragma("GCC diagnostic pop")
#endif
static inline int esatto_one_(void) { return 1; }

struct esatto_slice_ {
  struct esatto_category* category;
  struct PerfettoTeHlExtra* track;
  struct PerfettoTeHlExtra* category_name;
};

static inline bool esatto_is_track_(const struct PerfettoTeHlExtra* extra) {
  return extra->type == PERFETTO_TE_HL_EXTRA_TYPE_REGISTERED_TRACK || extra->type == PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK ||
         extra->type == PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS || extra->type == PERFETTO_TE_HL_EXTRA_TYPE_PROTO_TRACK;
}

/* The extras live until the end of the block, as the slice does. */
static inline struct esatto_slice_ esatto_slice_begin_(struct esatto_category* category, const char* name,
                                                       struct PerfettoTeHlExtra* const* extras) {
  struct esatto_slice_ slice = {category, NULL, NULL};
  PerfettoTeHlEmitImpl(category->impl, PERFETTO_TE_TYPE_SLICE_BEGIN, name, extras);
  for (; *extras; extras++) {
    if (esatto_is_track_(*extras)) slice.track = *extras;
    if ((*extras)->type == PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY) slice.category_name = *extras;
  }
  return slice;
}

static inline void esatto_slice_end_(struct esatto_slice_* slice) {
  if (slice->category) {
    /* It ends where it began: on its track, and in the sessions that record its category. */
    struct PerfettoTeHlExtra* const first = slice->track ? slice->track : slice->category_name;
    PerfettoTeHlEmitImpl(slice->category->impl, PERFETTO_TE_TYPE_SLICE_END, NULL,
                         (struct PerfettoTeHlExtra* const[]){first, slice->track ? slice->category_name : NULL, NULL});
  }
}

union esatto_arg_ {
  struct PerfettoTeHlExtra header;
  struct PerfettoTeHlExtraDebugArgBool boolean;
  struct PerfettoTeHlExtraDebugArgInt64 integer;
  struct PerfettoTeHlExtraDebugArgUint64 natural;
  struct PerfettoTeHlExtraDebugArgDouble real;
  struct PerfettoTeHlExtraDebugArgString text;
  struct PerfettoTeHlExtraDebugArgPointer pointer;
  struct PerfettoTeHlExtraCounterInt64 count;
  struct PerfettoTeHlExtraCounterDouble measure;
};

#define ESATTO_NEW_ARG_ (&(union esatto_arg_){{0}})

static inline struct PerfettoTeHlExtra* esatto_arg_bool_(union esatto_arg_* to, const char* name, bool value) {
  to->boolean = (struct PerfettoTeHlExtraDebugArgBool){{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_BOOL}, name, value};
  return &to->header;
}

static inline struct PerfettoTeHlExtra* esatto_arg_int_(union esatto_arg_* to, const char* name, int64_t value) {
  to->integer = (struct PerfettoTeHlExtraDebugArgInt64){{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, name, value};
  return &to->header;
}

static inline struct PerfettoTeHlExtra* esatto_arg_uint_(union esatto_arg_* to, const char* name, uint64_t value) {
  to->natural = (struct PerfettoTeHlExtraDebugArgUint64){{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_UINT64}, name, value};
  return &to->header;
}

static inline struct PerfettoTeHlExtra* esatto_arg_double_(union esatto_arg_* to, const char* name, double value) {
  to->real = (struct PerfettoTeHlExtraDebugArgDouble){{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_DOUBLE}, name, value};
  return &to->header;
}

/* A null pointer stands for the empty text. */
static inline struct PerfettoTeHlExtra* esatto_arg_string_(union esatto_arg_* to, const char* name, const char* value) {
  to->text = (struct PerfettoTeHlExtraDebugArgString){{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, name, value ? value : ""};
  return &to->header;
}

static inline struct PerfettoTeHlExtra* esatto_arg_pointer_(union esatto_arg_* to, const char* name, const void* value) {
  to->pointer = (struct PerfettoTeHlExtraDebugArgPointer){{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_POINTER}, name, (uintptr_t)value};
  return &to->header;
}

/* The value of a counter. Integers stay integers; the sum promotes small ones and bit-fields. All
 * other numbers, such as _Float32, are measures. */
#define ESATTO_VALUE_(value)             \
  _Generic((value) + 0,                  \
      int: esatto_count_,                \
      unsigned: esatto_count_,           \
      long: esatto_count_,               \
      unsigned long: esatto_count_,      \
      long long: esatto_count_,          \
      unsigned long long: esatto_count_, \
      default: esatto_measure_)(ESATTO_NEW_ARG_, value)

static inline struct PerfettoTeHlExtra* esatto_count_(union esatto_arg_* to, int64_t value) {
  to->count = (struct PerfettoTeHlExtraCounterInt64){{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64}, value};
  return &to->header;
}

static inline struct PerfettoTeHlExtra* esatto_measure_(union esatto_arg_* to, double value) {
  to->measure = (struct PerfettoTeHlExtraCounterDouble){{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_DOUBLE}, value};
  return &to->header;
}

#endif /* ESATTO_TRACK_EVENT_H_ */
