// Data sources in C++17: a program writes its own packets and learns when sessions start and
// stop. See esatto/trace.hpp.

#ifndef ESATTO_DATA_SOURCE_HPP_
#define ESATTO_DATA_SOURCE_HPP_

#include <string_view>
#include <type_traits>
#include <utility>

#include "data_source.h"
#include "proto.hpp"

namespace esatto {

// A packet of a Context. It is recorded when it goes out of scope.
class Packet : public Message {
 public:
  explicit Packet(PerfettoDsTracerImpl* tracer) : tracer_(tracer) {
    esatto_packet_open_(tracer, &writer_);
    message_ = esatto_root_message_(&writer_);
  }
  ~Packet() { PerfettoDsTracerImplPacketEnd(tracer_, &writer_); }

  // Writes the current time. Every packet should have it.
  Packet& put_timestamp() { return esatto_put_timestamp(&message_), *this; }

 private:
  PerfettoDsTracerImpl* tracer_;
  esatto_writer writer_;
};

// Arguments of on_setup.
struct SetupArgs {
  PerfettoDsInstanceIndex instance;
  std::string_view config;  // a serialized DataSourceConfig, valid during the call
};

namespace detail {

// A message to the library that is sent once, by any thread: when this is destroyed, or before.
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
  // Call it once. The instance continues until the result is done or destroyed.
  [[nodiscard]] PostponedStop postpone() { return PostponedStop(PerfettoDsOnStopArgsPostpone(args_)); }

 private:
  PerfettoDsOnStopArgs* args_;
};

class FlushArgs {
 public:
  explicit FlushArgs(PerfettoDsOnFlushArgs* args) : args_(args) {}
  // Call it once. The session waits until the result is done or destroyed.
  [[nodiscard]] PostponedFlush postpone() { return PostponedFlush(PerfettoDsOnFlushArgsPostpone(args_)); }
#ifdef PERFETTO_C_V59
  // See enum PerfettoDsFlushReason.
  uint64_t reason() const { return PerfettoDsOnFlushArgsGetReason(args_); }
#endif

 private:
  PerfettoDsOnFlushArgs* args_;
};

struct DataSourceOptions {
  // Behaviour if the buffer is full.
  PerfettoDsBufferExhaustedPolicy policy = PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_DROP;
  bool policy_is_up_to_sessions = false;
};

// Base of a data source's class. Each session that records the data source has an object of the
// class. The class may have the following functions, which a thread of the library calls. They must
// not throw:
//
//   class Weather : public esatto::DataSource<Weather> {
//    public:
//     void on_setup(const esatto::SetupArgs&);
//     void on_start();
//     void on_flush(esatto::FlushArgs&);
//     void on_stop(esatto::StopArgs&);
//     struct IncrementalState {…};  // per thread and session; new after the library has cleared it
//     struct ThreadState {…};       // per thread and session
//   };
//
//   Weather::register_as("com.example.weather"); Weather::trace([](Weather::Context context) {
//   context.packet().put_timestamp().put_string(…); });
template <class Derived>
class DataSource {
 public:
  using IncrementalState = void;
  using ThreadState = void;
  void on_setup(const SetupArgs&) {}
  void on_start() {}
  void on_flush(FlushArgs&) {}
  void on_stop(StopArgs&) {}

  // Registers it and announces it to the services. Call it after esatto::init. Returns false if the
  // program has too many data sources; this one then stays off.
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

  // Returns true if a session records it. Costs one load.
  static bool is_enabled() { return __builtin_expect(source_.enabled->load(std::memory_order_relaxed), false); }

  // Returns the object of an instance, locked by this thread; nothing if the session is over. Keep
  // it only for a short time, because a stop waits for it.
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

  // A session that records the data source, in the current trace point. Do not keep it.
  class Context {
   public:
    explicit Context(esatto_iteration& it) : it_(&it) {}
    PerfettoDsInstanceIndex instance_index() const { return it_->at.inst_id; }
    Locked instance() const { return Locked(it_->at.inst_id); }
    // Begins a packet. Only one may be open at a time.
    Packet packet() const { return Packet(it_->at.tracer); }
    // The thread's incremental state for this session: a new object after the library has cleared
    // it.
    auto& incremental_state() const { return *static_cast<typename Derived::IncrementalState*>(esatto_incremental_state(it_)); }
    auto& thread_state() const { return *static_cast<typename Derived::ThreadState*>(esatto_thread_state(it_)); }
    // Hands the packets of this thread to the service.
    void flush() const { esatto_flush(it_, nullptr, nullptr); }
    // Returns the number of packets of this thread that this session has lost.
    uint64_t drop_count() const { return esatto_drop_count(it_); }

   private:
    esatto_iteration* it_;
  };

  // Calls the body with a Context for each session that records the data source. If there is none,
  // it costs a load and a branch. A trace point inside a trace point does nothing.
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
