/* Data sources: a program writes its own packets and learns when sessions start and stop. In
 * C++, see esatto::DataSource. */

#ifndef ESATTO_DATA_SOURCE_H_
#define ESATTO_DATA_SOURCE_H_

#include "proto.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A data source: an object that lives as long as the program. */
struct esatto_data_source {
  PERFETTO_ATOMIC(bool)* enabled;
  struct PerfettoDsImpl* impl;
};

/* Initial value of a struct esatto_data_source. */
#define ESATTO_DATA_SOURCE {&perfetto_atomic_false, NULL}

/* Options of a data source. All may be null or 0. A thread of the library calls the callbacks. */
struct esatto_data_source_options {
  PerfettoDsOnSetupCb on_setup;     /* returns the instance's context; gets a DataSourceConfig */
  PerfettoDsOnStartCb on_start;     /* from now on packets are recorded */
  PerfettoDsOnFlushCb on_flush;
  PerfettoDsOnStopCb on_stop;
  PerfettoDsOnDestroyCb on_destroy; /* the context is not used any more */
  void* user_arg;                   /* passed to all callbacks */
  /* Objects per thread and instance. The thread state is for any data. The incremental state is for
   * data that the thread has already written to the trace: the library clears it when readers may
   * have lost that. */
  PerfettoDsOnCreateCustomState create_thread_state;
  PerfettoDsOnDeleteCustomState delete_thread_state;
  PerfettoDsOnCreateCustomState create_incremental_state;
  PerfettoDsOnDeleteCustomState delete_incremental_state;
  PerfettoDsOnClearCustomState clear_incremental_state;
  /* Behaviour if the buffer is full: see enum PerfettoDsBufferExhaustedPolicy. */
  enum PerfettoDsBufferExhaustedPolicy policy;
  bool policy_is_up_to_sessions;
  /* The service does not wait for the end of a stop. The callback then cannot postpone it. */
  bool does_not_notify_of_stop;
};

/* Registers a data source and announces it to the services. Call it after esatto_init, and before
 * other threads reach the trace points. Returns false if the program has too many data sources;
 * this one then stays off. Does nothing if it is registered already. */
static inline bool esatto_data_source_register(struct esatto_data_source* source, const char* name, const struct esatto_data_source_options* options) {
  struct esatto_data_source_options none;
  struct esatto_buffer descriptor;
  struct PerfettoDsImpl* impl;
  void* bytes;
  size_t size;
  bool is_good;
  if (source->impl) return true;
  memset(&none, 0, sizeof none);
  if (!options) options = &none;
  impl = PerfettoDsImplCreate();
  if (options->on_setup) PerfettoDsSetOnSetupCallback(impl, options->on_setup);
  if (options->on_start) PerfettoDsSetOnStartCallback(impl, options->on_start);
  if (options->on_flush) PerfettoDsSetOnFlushCallback(impl, options->on_flush);
  if (options->on_stop) PerfettoDsSetOnStopCallback(impl, options->on_stop);
  if (options->on_destroy) PerfettoDsSetOnDestroyCallback(impl, options->on_destroy);
  PerfettoDsSetCbUserArg(impl, options->user_arg);
  if (options->create_thread_state) PerfettoDsSetOnCreateTls(impl, options->create_thread_state);
  if (options->delete_thread_state) PerfettoDsSetOnDeleteTls(impl, options->delete_thread_state);
  if (options->create_incremental_state) PerfettoDsSetOnCreateIncr(impl, options->create_incremental_state);
  if (options->delete_incremental_state) PerfettoDsSetOnDeleteIncr(impl, options->delete_incremental_state);
  if (options->clear_incremental_state) PerfettoDsSetOnClearIncr(impl, options->clear_incremental_state);
  PerfettoDsSetBufferExhaustedPolicy(impl, (uint32_t)options->policy);
  PerfettoDsSetBufferExhaustedPolicyConfigurable(impl, options->policy_is_up_to_sessions);
  esatto_buffer_open(&descriptor);
  esatto_put_string(&descriptor.message, 1, name);
  esatto_put_bool(&descriptor.message, 2, !options->does_not_notify_of_stop);
  bytes = esatto_buffer_take(&descriptor, &size);
  is_good = PerfettoDsImplRegister(impl, &source->enabled, bytes, size);
  free(bytes);
  if (is_good) {
    source->impl = impl;
  } else {
    source->enabled = &perfetto_atomic_false;
  }
  return is_good;
}

/* Runs a block for every session that records the data source:
 *
 *   ESATTO_TRACE(&source, it) {
 *     ESATTO_PACKET(it, packet) {
 *       esatto_put_timestamp(packet);
 *       ESATTO_MESSAGE(packet, 900, test) esatto_put_string(test, 1, "hello");
 *     }
 *   }
 *
 * If there is no session, it costs a load and a branch. `it` is a struct esatto_iteration. You may
 * leave the block by break, return and goto, but not by longjmp. A trace point inside a trace point
 * does nothing. If the thread is cancelled in the block, an open packet is cut short or
 * lost. */
#define ESATTO_TRACE(source, it)                                                                                     \
  for (struct esatto_iteration it __attribute__((cleanup(esatto_iteration_end_))) = esatto_iteration_begin_(source); \
       it.at.tracer; esatto_iteration_next_(&it))

/* Writes a packet in an iteration. `packet` is a pointer to struct esatto_message, which
 * esatto_put_… and ESATTO_MESSAGE take. The packet is recorded at the end of the block, also by
 * break and continue, which leave only this block. */
#define ESATTO_PACKET(iteration, packet)                                                       \
  for (struct esatto_packet_ packet##_ __attribute__((cleanup(esatto_packet_end_))) = {.tracer = (iteration).at.tracer}; \
       esatto_packet_begin_(&packet##_);)                                                      \
    for (struct esatto_message* packet = &packet##_.message; packet; packet = NULL)

/* Writes a message into another one. Write nothing to the outer message meanwhile. */
#define ESATTO_MESSAGE(parent, field, message)                                         \
  for (struct esatto_message message##_ __attribute__((cleanup(esatto_message_end))) = \
           esatto_message_begin(parent, field), *message = &message##_;                \
       message; message = NULL)

/* A session that records the data source, in the current trace point. */
struct esatto_iteration {
  struct PerfettoDsImplTracerIterator at; /* at.inst_id is the number of the instance */
  struct PerfettoDsImpl* impl;
};

/* Returns the thread's object for this instance, which create_thread_state has made. */
static inline void* esatto_thread_state(struct esatto_iteration* it) { return PerfettoDsImplGetCustomTls(it->impl, it->at.tracer, it->at.inst_id); }

/* Returns the thread's incremental state for this instance, which create_incremental_state has
 * made. It is a new object after the library has cleared it. */
static inline void* esatto_incremental_state(struct esatto_iteration* it) {
  return PerfettoDsImplGetIncrementalState(it->impl, it->at.tracer, it->at.inst_id);
}

/* Hands the packets of this thread to the service. A thread of the library calls the callback, if
 * there is one, later or never. */
static inline void esatto_flush(struct esatto_iteration* it, PerfettoDsTracerOnFlushCb done, void* user_arg) {
  PerfettoDsTracerImplFlush(it->at.tracer, done, user_arg);
}

/* Returns the number of packets of this thread that this session has lost. */
static inline uint64_t esatto_drop_count(struct esatto_iteration* it) { return PerfettoDsTracerImplGetDropCount(it->at.tracer); }

/* Locks an instance for this thread until esatto_unlock_instance, and returns the context that
 * on_setup has made. Returns null, and does not lock, if the instance has ended. */
static inline void* esatto_lock_instance(struct esatto_data_source* source, PerfettoDsInstanceIndex instance) {
  void* context = source->impl ? PerfettoDsImplGetInstanceLocked(source->impl, instance) : NULL;
  if (context) ESATTO_ORDER_AFTER_((char*)source->impl + instance);
  return context;
}

static inline void esatto_unlock_instance(struct esatto_data_source* source, PerfettoDsInstanceIndex instance) {
  ESATTO_ORDER_BEFORE_((char*)source->impl + instance);
  PerfettoDsImplReleaseInstanceLocked(source->impl, instance);
}

/* Writes the current time. Every packet should have it. */
static inline void esatto_put_timestamp(struct esatto_message* packet) {
  struct PerfettoDsTimestamp now = PerfettoDsGetTimestamp();
  esatto_put_uint(packet, 8, now.value);
  esatto_put_uint(packet, 58, now.clock_id);
}

/* Parts of the macros and functions above. */

static inline struct esatto_iteration esatto_iteration_begin_(struct esatto_data_source* source) {
  struct esatto_iteration it = {{0, NULL, NULL}, source->impl};
#ifdef __cplusplus
  bool is_enabled = source->enabled->load(std::memory_order_relaxed);
#else
  bool is_enabled = atomic_load_explicit(source->enabled, memory_order_relaxed);
#endif
  if (__builtin_expect(is_enabled && it.impl, false)) it.at = PerfettoDsImplTraceIterateBegin(it.impl);
  return it;
}

static inline void esatto_iteration_next_(struct esatto_iteration* it) { PerfettoDsImplTraceIterateNext(it->impl, &it->at); }

static inline void esatto_iteration_end_(struct esatto_iteration* it) {
  if (it->at.tracer) PerfettoDsImplTraceIterateBreak(it->impl, &it->at);
}

/* Initially only `tracer` is set. */
struct esatto_packet_ {
  struct PerfettoDsTracerImpl* tracer; /* null after the end */
  struct esatto_message message;
  esatto_writer writer;
  bool is_open;
};

static inline void esatto_packet_open_(struct PerfettoDsTracerImpl* tracer, esatto_writer* writer) {
#ifdef PERFETTO_C_V59
  PerfettoDsTracerImplPacketBegin(tracer, writer);
#else
  *writer = PerfettoDsTracerImplPacketBegin(tracer);
#endif
}

static inline void esatto_packet_end_(struct esatto_packet_* packet) {
  if (packet->tracer && packet->is_open) PerfettoDsTracerImplPacketEnd(packet->tracer, &packet->writer);
  packet->tracer = NULL;
}

/* Begins the packet and returns true. The second call ends it and returns false. */
static inline bool esatto_packet_begin_(struct esatto_packet_* packet) {
  if (packet->is_open) {
    esatto_packet_end_(packet);
    return false;
  }
  esatto_packet_open_(packet->tracer, &packet->writer);
  packet->message = esatto_root_message_(&packet->writer);
  return packet->is_open = true;
}

#ifdef __cplusplus
}
#endif

#endif /* ESATTO_DATA_SOURCE_H_ */
