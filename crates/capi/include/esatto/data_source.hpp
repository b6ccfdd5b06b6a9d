// Data sources in C++17: packets of the program's own, and what a session tells of its life. See esatto/trace.hpp.

#ifndef ESATTO_DATA_SOURCE_HPP_
#define ESATTO_DATA_SOURCE_HPP_

#include <string_view>
#include <type_traits>
#include <utility>

#include "data_source.h"
#include "proto.hpp"

namespace esatto {

// A packet, which is recorded when it goes out of scope. Of a Context.
class Packet : public Message {
 public:
  explicit Packet(PerfettoDsTracerImpl* tracer) : tracer_(tracer) {
    esatto_packet_open_(tracer, &writer_);
    message_ = esatto_root_message_(&writer_);
  }
  ~Packet() { PerfettoDsTracerImplPacketEnd(tracer_, &writer_); }

  // What time it is, as every packet should tell.
  Packet& put_timestamp() { return esatto_put_timestamp(&message_), *this; }

 private:
  PerfettoDsTracerImpl* tracer_;
  esatto_writer writer_;
};

// What the session wants of an instance.
struct SetupArgs {
  PerfettoDsInstanceIndex instance;
  std::string_view config;  // a serialized DataSourceConfig; only during the call
};

namespace detail {

// What is to be said once, from any thread: when it is destroyed, or before.
template <class Handle, void (*say)(Handle*)>
class Done {
 public:
  explicit Done(Handle* handle) : handle_(handle) {}
  Done(Done&& from) noexcept : handle_(std::exchange(from.handle_, nullptr)) {}
  Done& operator=(Done&& from) noexcept { return std::swap(handle_, from.handle_), *this; }
  ~Done() { done(); }
  void done() {
    if (Handle* handle = std::exchange(handle_, nullptr)) say(handle);
  }

 private:
  Handle* handle_;
};

}  // namespace detail

using PostponedStop = detail::Done<PerfettoDsAsyncStopper, PerfettoDsStopDone>;
using PostponedFlush = detail::Done<PerfettoDsAsyncFlusher, PerfettoDsFlushDone>;

class StopArgs {
 public:
  explicit StopArgs(PerfettoDsOnStopArgs* args) : args_(args) {}
  // Once: the instance goes on until the result is done or destroyed.
  [[nodiscard]] PostponedStop postpone() { return PostponedStop(PerfettoDsOnStopArgsPostpone(args_)); }

 private:
  PerfettoDsOnStopArgs* args_;
};

class FlushArgs {
 public:
  explicit FlushArgs(PerfettoDsOnFlushArgs* args) : args_(args) {}
  // Once: the session waits until the result is done or destroyed.
  [[nodiscard]] PostponedFlush postpone() { return PostponedFlush(PerfettoDsOnFlushArgsPostpone(args_)); }
#ifdef PERFETTO_C_V59
  // See enum PerfettoDsFlushReason.
  uint64_t reason() const { return PerfettoDsOnFlushArgsGetReason(args_); }
#endif

 private:
  PerfettoDsOnFlushArgs* args_;
};

struct DataSourceOptions {
  // What is done when there is no room.
  PerfettoDsBufferExhaustedPolicy policy = PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_DROP;
  bool policy_is_up_to_sessions = false;
};

// A data source is a class derived from this. For each session that wants it there is an object of the class, which is told of the session's life by
// functions that the class may have; they are called by a thread of the library, and must not throw:
//
//   class Weather : public esatto::DataSource<Weather> {
//    public:
//     void on_setup(const esatto::SetupArgs&);
//     void on_start();
//     void on_flush(esatto::FlushArgs&);
//     void on_stop(esatto::StopArgs&);
//     struct IncrementalState {…};  // for each thread and session, new when the session has forgotten what it was told
//     struct ThreadState {…};       // for each thread and session
//   };
//
//   Weather::register_as("com.example.weather");
//   Weather::trace([](Weather::Context context) { context.packet().put_timestamp().put_string(…); });
template <class Derived>
class DataSource {
 public:
  using IncrementalState = void;
  using ThreadState = void;
  void on_setup(const SetupArgs&) {}
  void on_start() {}
  void on_flush(FlushArgs&) {}
  void on_stop(StopArgs&) {}

  // Tells services of it, after esatto::init. False if there are too many in the program: it then stays off.
  static bool register_as(const char* name, const DataSourceOptions& wishes = {}) {
    esatto_data_source_options options{};
    options.on_setup = setup;
    options.on_start = start;
    options.on_stop = stop;
    options.on_destroy = destroy;
    if (!std::is_same_v<decltype(&Derived::on_flush), void (DataSource::*)(FlushArgs&)>) options.on_flush = flush;
    if constexpr (!std::is_void_v<typename Derived::ThreadState>) {
      options.create_thread_state = create<typename Derived::ThreadState>;
      options.delete_thread_state = remove<typename Derived::ThreadState>;
    }
    if constexpr (!std::is_void_v<typename Derived::IncrementalState>) {
      options.create_incremental_state = create<typename Derived::IncrementalState>;
      options.delete_incremental_state = remove<typename Derived::IncrementalState>;
    }
    options.policy = wishes.policy;
    options.policy_is_up_to_sessions = wishes.policy_is_up_to_sessions;
    return esatto_data_source_register(&source_, name, &options);
  }

  // Whether any session records it: a load and nothing else.
  static bool is_enabled() { return __builtin_expect(source_.enabled->load(std::memory_order_relaxed), false); }

  // The object of an instance, locked by this thread; nothing if the session is over. For as short as possible: a stop waits for it.
  class Locked {
   public:
    explicit Locked(PerfettoDsInstanceIndex instance)
        : instance_(instance), object_(static_cast<Derived*>(esatto_lock_instance(&source_, instance))) {}
    Locked(Locked&& from) noexcept : instance_(from.instance_), object_(std::exchange(from.object_, nullptr)) {}
    Locked& operator=(Locked&&) = delete;
    ~Locked() {
      if (object_) esatto_unlock_instance(&source_, instance_);
    }
    explicit operator bool() const { return object_ != nullptr; }
    Derived* operator->() const { return object_; }
    Derived& operator*() const { return *object_; }

   private:
    PerfettoDsInstanceIndex instance_;
    Derived* object_;
  };

  // A session that records the data source, in the trace point that one is in; not for longer.
  class Context {
   public:
    explicit Context(esatto_iteration& it) : it_(&it) {}
    PerfettoDsInstanceIndex instance_index() const { return it_->at.inst_id; }
    Locked instance() const { return Locked(it_->at.inst_id); }
    // Begins a packet; one at a time.
    Packet packet() const { return Packet(it_->at.tracer); }
    // What the thread has told this session: a new object after the session has forgotten.
    auto& incremental_state() const { return *static_cast<typename Derived::IncrementalState*>(esatto_incremental_state(it_)); }
    auto& thread_state() const { return *static_cast<typename Derived::ThreadState*>(esatto_thread_state(it_)); }
    // Hands over what this thread has written.
    void flush() const { esatto_flush(it_, nullptr, nullptr); }
    // How many packets of this thread this session has lost.
    uint64_t drop_count() const { return esatto_drop_count(it_); }

   private:
    esatto_iteration* it_;
  };

  // Calls the body, with a Context, for each session that records the data source. Where there is none, a load and a branch. A trace point in a trace
  // point does nothing.
  template <class Body>
  static void trace(Body&& body) {
    if (!is_enabled()) return;
    struct Iteration {
      esatto_iteration it = esatto_iteration_begin_(&source_);
      ~Iteration() { esatto_iteration_end_(&it); }
    } iteration;
    for (; iteration.it.at.tracer; esatto_iteration_next_(&iteration.it)) body(Context(iteration.it));
  }

 private:
  static Derived& object(void* context) { return *static_cast<Derived*>(context); }
  static void* setup(PerfettoDsImpl*, PerfettoDsInstanceIndex instance, void* config, size_t size, void*, PerfettoDsOnSetupArgs*) noexcept {
    auto* object = new Derived;
    object->on_setup(SetupArgs{instance, {static_cast<const char*>(config), size}});
    return object;
  }
  static void start(PerfettoDsImpl*, PerfettoDsInstanceIndex, void*, void* context, PerfettoDsOnStartArgs*) noexcept { object(context).on_start(); }
  static void stop(PerfettoDsImpl*, PerfettoDsInstanceIndex, void*, void* context, PerfettoDsOnStopArgs* args) noexcept {
    StopArgs wrapped(args);
    object(context).on_stop(wrapped);
  }
  static void flush(PerfettoDsImpl*, PerfettoDsInstanceIndex, void*, void* context, PerfettoDsOnFlushArgs* args) noexcept {
    FlushArgs wrapped(args);
    object(context).on_flush(wrapped);
  }
  static void destroy(PerfettoDsImpl*, void*, void* context) noexcept { delete static_cast<Derived*>(context); }
  template <class State>
  static void* create(PerfettoDsImpl*, PerfettoDsInstanceIndex, PerfettoDsTracerImpl*, void*) noexcept {
    return new State();
  }
  template <class State>
  static void remove(void* state) noexcept {
    delete static_cast<State*>(state);
  }

  inline static esatto_data_source source_ = ESATTO_DATA_SOURCE;
};

}  // namespace esatto

#endif  // ESATTO_DATA_SOURCE_HPP_
