// Track events in C++17: slices, instants, counters, states, and their extras. See
// esatto/trace.hpp.

#ifndef ESATTO_TRACK_EVENT_HPP_
#define ESATTO_TRACK_EVENT_HPP_

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "track.h"

// Events. The category is an esatto::Category, or a struct esatto_category of C. The name is a
// `const char*` or a std::string, and ends at its first zero byte, as all texts here do. Any number
// of extras (see below) follow it. If nothing records the category, the name and the extras are not
// evaluated.
//
// A signal handler may trace, but only if its signal never arrives while the thread is in malloc or
// free, because some events allocate: block the signal there, or raise it yourself. A handler that
// breaks this rule can stop the program for ever. If the handler interrupts a trace point of its
// thread, its events are dropped.
//
// A trace point is no cancellation point (pthread_cancel).

// (category, name, extras…): a slice, from here to the end of the block. It ends on the track on
// which it begins. The name of on_named is copied; only one of more than 63 bytes must still exist
// then. Without a track it is a slice of the thread, which ends with the slice around it if the
// block ends later or on another thread, as in a coroutine. A line on stderr says so once. Pass a
// track there. A line has only one, because the variable has its number in its name.
#define ESATTO_SLICE(category, ...)                       \
  ::esatto::Slice ESATTO_UNIQUE_(esatto_slice_){category}; \
  if (ESATTO_UNIQUE_(esatto_slice_).is_recorded()) ESATTO_UNIQUE_(esatto_slice_).begin(__VA_ARGS__)

// (category, name, extras…): begins a slice on its track.
#define ESATTO_BEGIN(category, ...) ESATTO_EMIT_(category, ::esatto::detail::emit_named(esatto_category_, PERFETTO_TE_TYPE_SLICE_BEGIN, __VA_ARGS__))

// (category, extras…): ends the slice that began last on the track. It wants the same track and
// esatto::category_name as ESATTO_BEGIN.
#define ESATTO_END(...)                         \
  ESATTO_EMIT_(ESATTO_FIRST_(__VA_ARGS__, 0), ::esatto::detail::emit(esatto_category_, PERFETTO_TE_TYPE_SLICE_END, nullptr, ESATTO_REST_(__VA_ARGS__, nullptr)))

// (category, name, extras…): an instant.
#define ESATTO_INSTANT(category, ...) ESATTO_EMIT_(category, ::esatto::detail::emit_named(esatto_category_, PERFETTO_TE_TYPE_INSTANT, __VA_ARGS__))

// (category, counter, value, extras…): a new value of a counter, an integer or not. The counter is
// an esatto::Track, or the name of a counter of this process.
#define ESATTO_COUNTER(category, counter, ...) ESATTO_EMIT_(category, ::esatto::detail::emit_counter(esatto_category_, counter, __VA_ARGS__))

// (category, track, state, extras…): a new state, until the next one. nullptr stands for none. The
// track is an esatto::Track, or the name of a track of this process.
#define ESATTO_STATE(category, thing, ...) ESATTO_EMIT_(category, ::esatto::detail::emit_state(esatto_category_, thing, __VA_ARGS__))

#define ESATTO_EMIT_(category, statement)                             \
  do {                                                                \
    auto&& esatto_category_ = (category);                             \
    if (esatto_is_enabled(&esatto_category_)) statement;              \
  } while (0)

namespace esatto {

namespace detail {
// Flag of a category until it is registered. It is true, so that esatto_is_enabled looks closer.
inline PERFETTO_ATOMIC(bool) not_registered{true};
}  // namespace detail

// A category: name, description, tags. Define it outside functions, best as `inline` in a header.
// It is initialised at compile time. Each shared object registers those that it uses: with hidden
// visibility or dlopen it has copies of its own. A trace point whose category is not registered
// says so on stderr while a session records.
//
//   inline esatto::Category net{"net", "What goes over the network"};
class Category : public esatto_category {
 public:
  constexpr explicit Category(const char* name, const char* about = nullptr)
      : esatto_category{&detail::not_registered, nullptr, {name, about, nullptr, 0}} {}
  // The tags end with a null pointer, in an array that lives as long as the category:
  // static const char* tags[] = {"slow", nullptr};
  constexpr Category(const char* name, const char* about, const char** tags)
      : esatto_category{&detail::not_registered, nullptr, {name, about, tags, 0}} {}
  Category(const Category&) = delete;
  Category& operator=(const Category&) = delete;

  // Returns true if a session records it. Costs one load.
  bool is_enabled() const { return esatto_is_enabled(this); }
};

// Registers categories and announces them to the services. Call it after esatto::init, and before
// other threads reach the trace points.
template <class... Categories>
void register_categories(Categories&... categories) {
  static_assert((std::is_base_of_v<esatto_category, Categories> && ...), "categories are wanted");
  esatto_category* const all[] = {&categories..., nullptr};
  esatto_register_categories(all);
}

// Extras of an event. Each has `PerfettoTeHlExtra* extra()`, which is valid as long as the object
// lives.

namespace detail {

// Base of extras that are one struct of the ABI.
template <class Struct>
struct Plain {
  Struct value;
  PerfettoTeHlExtra* extra() { return &value.header; }
};
template <class Struct>
Plain(Struct) -> Plain<Struct>;

inline const char* text(const char* from) { return from; }
inline const char* text(const std::string& from) { return from.c_str(); }
inline const char* text(std::nullptr_t) { return nullptr; }

// A class that only converts to std::string, such as std::filesystem::path, makes a text that does
// not live until the event is recorded.
template <class T>
inline constexpr bool is_text = std::is_convertible_v<const T&, const char*> || std::is_base_of_v<std::string, T>;

}  // namespace detail

// An annotation: a bool, a number, an enumeration, a text (`const char*`, std::string) or another
// pointer. The name is a `const char*`.
template <class T>
auto arg(const char* name, const T& value) {
  using D = std::decay_t<T>;
  if constexpr (std::is_same_v<D, bool>) {
    return detail::Plain{PerfettoTeHlExtraDebugArgBool{{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_BOOL}, name, value}};
  } else if constexpr (std::is_enum_v<D>) {
    return arg(name, static_cast<std::underlying_type_t<D>>(value));
  } else if constexpr (std::is_floating_point_v<D>) {
    return detail::Plain{PerfettoTeHlExtraDebugArgDouble{{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_DOUBLE}, name, static_cast<double>(value)}};
  } else if constexpr (std::is_integral_v<D> && std::is_signed_v<D>) {
    return detail::Plain{PerfettoTeHlExtraDebugArgInt64{{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, name, static_cast<int64_t>(value)}};
  } else if constexpr (std::is_integral_v<D>) {
    return detail::Plain{PerfettoTeHlExtraDebugArgUint64{{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_UINT64}, name, static_cast<uint64_t>(value)}};
  } else if constexpr (detail::is_text<T> && !std::is_null_pointer_v<D>) {
    const char* text = detail::text(value);
    return detail::Plain{PerfettoTeHlExtraDebugArgString{{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_STRING}, name, text ? text : ""}};
  } else {
    static_assert(std::is_pointer_v<D> || std::is_null_pointer_v<D>,
                  "an annotation is a bool, a number, an enumeration, a text or a pointer; of a std::string_view or a path, make a std::string");
    const void* pointer = value;
    return detail::Plain{PerfettoTeHlExtraDebugArgPointer{{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_POINTER}, name, reinterpret_cast<uintptr_t>(pointer)}};
  }
}

// A flow is an arrow through all events with its number, in this process or in the whole machine.
inline auto flow_across(uint64_t id) { return detail::Plain{PerfettoTeHlExtraFlow{{PERFETTO_TE_HL_EXTRA_TYPE_FLOW}, id}}; }
inline auto flow_across_ends(uint64_t id) { return detail::Plain{PerfettoTeHlExtraFlow{{PERFETTO_TE_HL_EXTRA_TYPE_TERMINATING_FLOW}, id}}; }
inline auto flow(uint64_t id) { return flow_across(id ^ esatto_process_track()); }
inline auto flow_ends(uint64_t id) { return flow_across_ends(id ^ esatto_process_track()); }

// Events with the same number, or with the same text, belong together.
template <class Number, std::enable_if_t<std::is_integral_v<Number>, int> = 0>
auto correlation(Number id) {
  return detail::Plain{PerfettoTeHlExtraCorrelationId{{PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID}, static_cast<uint64_t>(id)}};
}
inline auto correlation(const char* text) { return detail::Plain{PerfettoTeHlExtraCorrelationIdStr{{PERFETTO_TE_HL_EXTRA_TYPE_CORRELATION_ID_STR}, text}}; }
inline auto correlation(const std::string& text) { return correlation(text.c_str()); }

// The time of the event, if it is not now: see now().
using Timestamp = PerfettoTeTimestamp;
inline Timestamp now() { return esatto_now(); }
inline auto at(Timestamp timestamp) { return detail::Plain{PerfettoTeHlExtraTimestamp{{PERFETTO_TE_HL_EXTRA_TYPE_TIMESTAMP}, timestamp}}; }

namespace detail {
struct Bare {
  PerfettoTeHlExtra header;
  PerfettoTeHlExtra* extra() { return &header; }
};
}  // namespace detail

// Writes the name in full and does not remember it. For names that are rarely the same.
inline auto no_intern() { return detail::Bare{{PERFETTO_TE_HL_EXTRA_TYPE_NO_INTERN}}; }
// Sends the event to the service at once.
inline auto flush() { return detail::Bare{{PERFETTO_TE_HL_EXTRA_TYPE_FLUSH}}; }

// A category whose name is known at run time. The category of its event is esatto::any_category().
class category_name {
 public:
  explicit category_name(const char* name) : descriptor_{name, nullptr, nullptr, 0}, extra_{{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, nullptr} {}
  explicit category_name(const std::string& name) : category_name(name.c_str()) {}
  PerfettoTeHlExtra* extra() { return extra_.desc = &descriptor_, &extra_.header; }
  const char* name() const { return descriptor_.name; }

 private:
  PerfettoTeCategoryDescriptor descriptor_;
  PerfettoTeHlExtraDynamicCategory extra_;
};

// ESATTO_INSTANT(esatto::any_category(), "done", esatto::category_name(name));
inline esatto_category any_category() { return esatto_any_category(); }

// A track that is an object. It must exist as long as events are recorded on it and slices on it
// are open. It may be moved meanwhile, for example in a vector that grows. A moved-from track can
// only be destroyed or assigned to.
class Track {
 public:
  // The parent of a track: esatto_process_track(), esatto_thread_track(), 0 for no process, or
  // another track. That one needs no events of its own, and may end before the track below it.
  class Parent {
   public:
    Parent(uint64_t number) : number_(number), track_(nullptr) {}
    Parent(const Track& track) : number_(0), track_(track.raw()) {}

   private:
    friend Track;
    uint64_t number_;
    const esatto_track* track_;
  };

  // A track of slices. The default parent is the process. The id distinguishes tracks with the same
  // name. Viewers show these in as few rows as possible.
  static Track slices(const char* name, uint64_t id = 0, Parent parent = esatto_process_track()) {
    return Track(ESATTO_TRACK_OF_SLICES, name, {parent.number_, id, nullptr, parent.track_, false});
  }
  // As slices, but in a row of its own, such as that of a worker. No track of on_named may have its
  // name and id.
  static Track row(const char* name, uint64_t id = 0, Parent parent = esatto_process_track()) {
    return Track(ESATTO_TRACK_OF_SLICES, name, {parent.number_, id, nullptr, parent.track_, true});
  }
  // A track of values, with an optional unit.
  static Track counter(const char* name, const char* unit = nullptr, Parent parent = esatto_process_track()) {
    return Track(ESATTO_TRACK_OF_VALUES, name, {parent.number_, 0, unit, parent.track_, false});
  }
  static Track states(const char* name, Parent parent = esatto_process_track()) {
    return Track(ESATTO_TRACK_OF_STATES, name, {parent.number_, 0, nullptr, parent.track_, false});
  }

  // The same track, for the functions of track.h. If this was moved from, one that is not open.
  const esatto_track* raw() const {
    static esatto_track moved_from{};
    return track_ ? track_.get() : &moved_from;
  }

 private:
  struct Close {
    void operator()(esatto_track* track) const {
      esatto_track_close(track);
      delete track;
    }
  };

  Track(esatto_track_kind kind, const char* name, const esatto_track_options& options) : track_(new esatto_track) {
    esatto_track_open(track_.get(), kind, name, &options);
  }
  // Open slices have its address.
  std::unique_ptr<esatto_track, Close> track_;
};

// Extras: tracks. The default is the track of the thread.

namespace detail {
struct OnTrack {
  esatto_on_ value{};
  PerfettoTeHlExtra* extra() { return &value.header; }
};
}  // namespace detail

// On a track that is an object.
inline auto on(const esatto_track& track) {
  detail::OnTrack extra;
  esatto_put_on_(&extra.value, &track);
  return extra;
}
inline auto on(const Track& track) { return on(*track.raw()); }
auto on(Track&&) = delete;

// On a track by its name. The default parent is the process; another one is esatto_thread_track(),
// and 0 stands for none. The id distinguishes tracks with the same name. Below an esatto::Track:
// see on_nested.
inline auto on_named(const char* name, uint64_t id = 0, uint64_t parent = esatto_process_track()) {
  esatto_set_apart_(&id, parent, name);
  return detail::Plain{PerfettoTeHlExtraNamedTrack{{PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, name, id, parent, false}};
}

// Parts of nested tracks.
namespace nest {

inline PerfettoTeHlNestedTrack process() { return {PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROCESS}; }
inline PerfettoTeHlNestedTrack thread() { return {PERFETTO_TE_HL_NESTED_TRACK_TYPE_THREAD}; }
// A track that is an object. Name those above it before it.
inline PerfettoTeHlNestedTrackRegistered track(const Track& track) { return {{PERFETTO_TE_HL_NESTED_TRACK_TYPE_REGISTERED}, &esatto_current_(track.raw())->impl}; }
// A track by its name. Its members can set the order of siblings and which of them are merged.
inline PerfettoTeHlNestedTrackNamed named(const char* name, uint64_t id = 0) {
  return {{PERFETTO_TE_HL_NESTED_TRACK_TYPE_NAMED}, name, id, false, 0, 0, 0, nullptr, 0};
}

}  // namespace nest

namespace detail {

inline PerfettoTeHlNestedTrack* nested_header(PerfettoTeHlNestedTrack& track) { return &track; }
template <class T>
PerfettoTeHlNestedTrack* nested_header(T& track) {
  return &track.header;
}

template <class... Tracks>
class Nested {
 public:
  explicit Nested(const Tracks&... tracks) : tracks_(tracks...), extra_{{PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS}, nullptr} {}
  PerfettoTeHlExtra* extra() {
    std::apply([this](Tracks&... tracks) { chain_ = {nested_header(tracks)..., nullptr}; }, tracks_);
    esatto_set_levels_apart_(chain_.data(), named_.data());
    return extra_.tracks = chain_.data(), &extra_.header;
  }

 private:
  std::tuple<Tracks...> tracks_;
  std::array<PerfettoTeHlNestedTrack*, sizeof...(Tracks) + 1> chain_{};
  std::array<PerfettoTeHlNestedTrackNamed, sizeof...(Tracks)> named_{};
  PerfettoTeHlExtraNestedTracks extra_;
};

}  // namespace detail

// On the last of these tracks. Each is below the one before, and needs no events of its own.
template <class... Tracks>
auto on_nested(const Tracks&... tracks) {
  return detail::Nested<Tracks...>(tracks...);
}

// On the track of the process.
namespace detail {
inline PerfettoTeHlNestedTrack process_link{PERFETTO_TE_HL_NESTED_TRACK_TYPE_PROCESS};
inline PerfettoTeHlNestedTrack* const process_chain[] = {&process_link, nullptr};
}  // namespace detail
inline auto on_process() { return detail::Plain{PerfettoTeHlExtraNestedTracks{{PERFETTO_TE_HL_EXTRA_TYPE_NESTED_TRACKS}, detail::process_chain}}; }

namespace detail {

template <class Struct>
struct Field {
  Struct value;
  PerfettoTeHlProtoField* field() { return &value.header; }
};
template <class Struct>
Field(Struct) -> Field<Struct>;

template <class... Fields>
class FieldList {
 public:
  explicit FieldList(const Fields&... fields) : fields_(fields...) {}
  PerfettoTeHlProtoField* const* fields() {
    std::apply([this](Fields&... fields) { pointers_ = {fields.field()..., nullptr}; }, fields_);
    return pointers_.data();
  }

 private:
  std::tuple<Fields...> fields_;
  std::array<PerfettoTeHlProtoField*, sizeof...(Fields) + 1> pointers_{};
};

template <class... Fields>
class MessageField {
 public:
  MessageField(uint32_t id, const Fields&... fields) : fields_(fields...), field_{{PERFETTO_TE_HL_PROTO_TYPE_NESTED, id}, nullptr} {}
  PerfettoTeHlProtoField* field() { return field_.fields = fields_.fields(), &field_.header; }

 private:
  FieldList<Fields...> fields_;
  PerfettoTeHlProtoFieldNested field_;
};

template <class... Fields>
class FieldsExtra {
 public:
  explicit FieldsExtra(const Fields&... fields) : fields_(fields...), extra_{{PERFETTO_TE_HL_EXTRA_TYPE_PROTO_FIELDS}, nullptr} {}
  PerfettoTeHlExtra* extra() { return extra_.fields = fields_.fields(), &extra_.header; }

 private:
  FieldList<Fields...> fields_;
  PerfettoTeHlExtraProtoFields extra_;
};

}  // namespace detail

// Extras: typed fields of the message TrackEvent, by their numbers: fields(field(4, …), message(33,
// field(2, …)), …).
template <class... Fields>
auto fields(const Fields&... fields) {
  return detail::FieldsExtra<Fields...>(fields...);
}

// A message with these fields.
template <class... Fields>
auto message(uint32_t id, const Fields&... fields) {
  return detail::MessageField<Fields...>(id, fields...);
}

// A bool, an integer or an enumeration (as a varint), a float, a double, or a text. Functions for
// other types follow.
template <class T>
auto field(uint32_t id, const T& value) {
  using D = std::decay_t<T>;
  if constexpr (std::is_same_v<D, float>) {
    return detail::Field{PerfettoTeHlProtoFieldFloat{{PERFETTO_TE_HL_PROTO_TYPE_FLOAT, id}, value}};
  } else if constexpr (std::is_same_v<D, double>) {
    return detail::Field{PerfettoTeHlProtoFieldDouble{{PERFETTO_TE_HL_PROTO_TYPE_DOUBLE, id}, value}};
  } else if constexpr (detail::is_text<T>) {
    return detail::Field{PerfettoTeHlProtoFieldCstr{{PERFETTO_TE_HL_PROTO_TYPE_CSTR, id}, detail::text(value)}};
  } else {
    static_assert(std::is_integral_v<D> || std::is_enum_v<D>, "a field is a bool, a number, an enumeration or a text; of a std::string_view or a path, make a std::string");
    return detail::Field{PerfettoTeHlProtoFieldVarInt{{PERFETTO_TE_HL_PROTO_TYPE_VARINT, id}, static_cast<uint64_t>(value)}};
  }
}
inline auto fixed32(uint32_t id, uint32_t value) { return detail::Field{PerfettoTeHlProtoFieldFixed32{{PERFETTO_TE_HL_PROTO_TYPE_FIXED32, id}, value}}; }
inline auto fixed64(uint32_t id, uint64_t value) { return detail::Field{PerfettoTeHlProtoFieldFixed64{{PERFETTO_TE_HL_PROTO_TYPE_FIXED64, id}, value}}; }
inline auto bytes(uint32_t id, const void* from, size_t size) {
  return detail::Field{PerfettoTeHlProtoFieldBytes{{PERFETTO_TE_HL_PROTO_TYPE_BYTES, id}, from, size}};
}
// An interned text. The table of InternedData is given by its field.
inline auto interned(uint32_t id, const char* text, uint32_t table) {
  return detail::Field{PerfettoTeHlProtoFieldCstrInterned{{PERFETTO_TE_HL_PROTO_TYPE_CSTR_INTERNED, id}, text, table}};
}

// Parts of the macros.
namespace detail {

// Stands after the extras of a macro, because there may be none.
inline PerfettoTeHlExtra* extra_of(std::nullptr_t) { return nullptr; }
template <class Extra>
PerfettoTeHlExtra* extra_of(Extra& extra) {
  return extra.extra();
}

template <class... Extras>
void emit(PerfettoTeCategoryImpl* category, int32_t type, const char* name, Extras&&... extras) {
  PerfettoTeHlExtra* const all[] = {extra_of(extras)..., nullptr};
  PerfettoTeHlEmitImpl(category, type, name, all);
}
template <class... Extras>
void emit(const esatto_category& category, int32_t type, const char* name, Extras&&... extras) {
  emit(category.impl, type, name, extras...);
}

template <class Name, class... Extras>
void emit_named(const esatto_category& category, int32_t type, const Name& name, Extras&&... extras) {
  emit(category, type, text(name), extras...);
}

template <class T>
auto counter_value(T value) {
  static_assert(std::is_arithmetic_v<T>, "the value of a counter is a number");
  if constexpr (std::is_floating_point_v<T>) {
    return Plain{PerfettoTeHlExtraCounterDouble{{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_DOUBLE}, static_cast<double>(value)}};
  } else {
    return Plain{PerfettoTeHlExtraCounterInt64{{PERFETTO_TE_HL_EXTRA_TYPE_COUNTER_INT64}, static_cast<int64_t>(value)}};
  }
}

// A track of values or states: an object, or a name.
class NamedValueTrack {
 public:
  NamedValueTrack(const char* name, uint64_t magic, uint32_t kind) : name_(name), magic_(magic), kind_(kind) {}
  PerfettoTeHlExtra* extra() { return esatto_describe_value_track_(&track_, name_, magic_, kind_); }

 private:
  const char* name_;
  uint64_t magic_;
  uint32_t kind_;
  struct esatto_value_track_ track_{};
};

inline auto on_kind(const Track& track, esatto_track_kind kind) {
  OnTrack extra;
  esatto_put_on_kind_(&extra.value, track.raw(), kind);
  return extra;
}

inline auto counter_track(const char* name) { return NamedValueTrack(name, ESATTO_COUNTER_MAGIC_, 8); }
inline auto counter_track(const std::string& name) { return counter_track(name.c_str()); }
inline auto counter_track(const Track& track) { return on_kind(track, ESATTO_TRACK_OF_VALUES); }
inline auto state_track(const char* name) { return NamedValueTrack(name, ESATTO_STATE_MAGIC_, 18); }
inline auto state_track(const std::string& name) { return state_track(name.c_str()); }
inline auto state_track(const Track& track) { return on_kind(track, ESATTO_TRACK_OF_STATES); }

template <class Counter, class T, class... Extras>
void emit_counter(const esatto_category& category, const Counter& counter, T value, Extras&&... extras) {
  emit(category, PERFETTO_TE_TYPE_COUNTER, nullptr, counter_track(counter), counter_value(value), extras...);
}

template <class Thing, class State, class... Extras>
void emit_state(const esatto_category& category, const Thing& thing, const State& state, Extras&&... extras) {
  emit(category, PERFETTO_TE_TYPE_STATE, text(state), state_track(thing), extras...);
}

// The open slices of a thread that have no track of their own. An end names no slice: it ends the
// innermost one. So a slice may record its end only if it is the innermost one of its thread. That
// is not sure in coroutines.
class OpenSlices {
 public:
  // The place of a slice. Each number is that of one slice of the program.
  struct Place {
    uint64_t number;
    uint32_t depth;
  };

  // Those of the calling thread, shared by all objects of the program. Not inlined, because
  // compilers keep addresses of thread_local variables while a coroutine is suspended.
  __attribute__((noinline, visibility("default"))) static OpenSlices& here() {
    static thread_local OpenSlices slices;
    return slices;
  }

  Place begin(PerfettoTeCategoryImpl* category) {
    if (__builtin_expect(!next_, false)) next_ = first_number();
    if (__builtin_expect(depth_ < kRemembered, true)) slices_[depth_] = {next_, category};
    return {next_++, depth_++};
  }

  // Ends the slices in this one that have no end yet. Returns false if this one is not open here.
  bool end(Place place) {
    if (__builtin_expect(depth_ != place.depth + 1 || place.depth >= kRemembered || slices_[place.depth].number != place.number, false)) {
      return end_slowly(place);
    }
    depth_ = place.depth;
    return true;
  }

 private:
  struct Open {
    uint64_t number;
    PerfettoTeCategoryImpl* category;
  };

  __attribute__((noinline, cold)) bool end_slowly(Place place) {
    const bool is_open = place.depth < depth_ && (place.depth >= kRemembered || slices_[place.depth].number == place.number);
    if (is_open) {
      for (uint32_t i = depth_; i-- > place.depth + 1;) {
        PerfettoTeHlExtra* const none[] = {nullptr};
        if (i < kRemembered) PerfettoTeHlEmitImpl(slices_[i].category, PERFETTO_TE_TYPE_SLICE_END, nullptr, none);
      }
      depth_ = place.depth;
    }
    return is_open;
  }

  static uint64_t first_number() {
    static std::atomic<uint64_t> threads{0};
    return (threads.fetch_add(1, std::memory_order_relaxed) << 40) + 1;
  }

  // Deeper slices are only counted.
  static constexpr uint32_t kRemembered = 32;

  uint64_t next_ = 0;
  uint32_t depth_ = 0;
  Open slices_[kRemembered] = {};
};

// An extra of the library. With it, an end is counted instead of recorded.
inline PerfettoTeHlExtra not_open{0x45730001};

}  // namespace detail

// A slice that ends when it goes out of scope. ESATTO_SLICE declares one.
class [[nodiscard]] Slice {
 public:
  explicit Slice(const esatto_category& category) : category_(esatto_is_enabled(&category) ? category.impl : nullptr) {}
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;
  ~Slice() {
    if (__builtin_expect(has_begun_, false)) end();
  }

  // Returns true if a session recorded the category when the slice was made.
  bool is_recorded() const { return __builtin_expect(category_ != nullptr, false); }

  // Begins the slice. Call it once, if the slice is recorded.
  template <class Name, class... Extras>
  void begin(const Name& name, Extras&&... extras) {
    (remember(extras), ...);
    detail::emit(category_, PERFETTO_TE_TYPE_SLICE_BEGIN, detail::text(name), extras...);
    if (!track_.header.type) place_ = detail::OpenSlices::here().begin(category_);
    // Not before: an argument may have thrown an exception.
    has_begun_ = true;
  }

 private:
  void end() {
    PerfettoTeHlExtra* extras[] = {nullptr, nullptr, nullptr};
    PerfettoTeHlExtra** next = extras;
    if (track_.header.type) {
      *next++ = &track_.header;
    } else if (__builtin_expect(!detail::OpenSlices::here().end(place_), false)) {
      *next++ = &detail::not_open;
    }
    if (name_) {
      // It ends where it began: in the sessions that record this category.
      category_name name(*name_);
      *next = name.extra();
      PerfettoTeHlEmitImpl(category_, PERFETTO_TE_TYPE_SLICE_END, nullptr, extras);
    } else {
      PerfettoTeHlEmitImpl(category_, PERFETTO_TE_TYPE_SLICE_END, nullptr, extras);
    }
  }

  // The track on which it ends.
  void remember(const detail::OnTrack& extra) { track_.object = extra.value; }
  void remember(const detail::Plain<PerfettoTeHlExtraNamedTrack>& extra) {
    track_.named = extra.value;
    track_.named.name = esatto_keep_(kept_, extra.value.name);
  }
  void remember(const detail::Plain<PerfettoTeHlExtraNestedTracks>& extra) { track_.process = extra.value; }
  template <class... Tracks>
  void remember(const detail::Nested<Tracks...>&) {
    static_assert(sizeof...(Tracks) == 0, "ESATTO_SLICE on nested tracks: take an esatto::Track, or ESATTO_BEGIN and ESATTO_END");
  }
  void remember(const category_name& extra) { name_ = std::make_unique<std::string>(extra.name()); }
  template <class Extra>
  void remember(const Extra&) {}

  // Null if nothing records it.
  PerfettoTeCategoryImpl* category_;
  bool has_begun_ = false;
  // Its place among the slices of its thread, if it has no track.
  detail::OpenSlices::Place place_{0, 0};
  // The name of a category that is known at run time only.
  std::unique_ptr<std::string> name_;
  union {
    PerfettoTeHlExtra header;
    esatto_on_ object;
    PerfettoTeHlExtraNamedTrack named;
    PerfettoTeHlExtraNestedTracks process;
  } track_{{0}};
  // The name of that track.
  char kept_[ESATTO_KEPT_BYTES_];
};

}  // namespace esatto

#endif  // ESATTO_TRACK_EVENT_HPP_
