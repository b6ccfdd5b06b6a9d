/* Declarations for both C and C++: initialisation, categories, tracks of the process and its
 * threads.
 *
 * esatto/trace.h and esatto/trace.hpp include this file. Do not include it yourself. */

#ifndef ESATTO_BASE_H_
#define ESATTO_BASE_H_

#if !defined(__GNUC__)
#error "esatto/trace.h needs gcc or clang: scopes end by __attribute__((cleanup))"
#endif

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ThreadSanitizer does not see how the library, which is not instrumented, orders threads. So the
 * headers tell it: what happens before ESATTO_ORDER_BEFORE_ is visible after ESATTO_ORDER_AFTER_
 * with the same address. Without ThreadSanitizer both do nothing. */
#if defined(__SANITIZE_THREAD__)
#define ESATTO_THREAD_SANITIZER_ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ESATTO_THREAD_SANITIZER_ 1
#endif
#endif
#ifdef ESATTO_THREAD_SANITIZER_
void __tsan_acquire(void* address);
void __tsan_release(void* address);
#define ESATTO_ORDER_BEFORE_(address) __tsan_release((void*)(address))
#define ESATTO_ORDER_AFTER_(address) __tsan_acquire((void*)(address))
#else
#define ESATTO_ORDER_BEFORE_(address) ((void)(address))
#define ESATTO_ORDER_AFTER_(address) ((void)(address))
#endif

/* Backends: a service in the program itself, or the service of the machine. Bits for
 * esatto_init. */
enum {
  ESATTO_IN_PROCESS = PERFETTO_BACKEND_IN_PROCESS,
  ESATTO_SYSTEM = PERFETTO_BACKEND_SYSTEM,
};

/* Connects the program to backends (ESATTO_IN_PROCESS | ESATTO_SYSTEM).
 *
 * Call it first. Before that, trace points do nothing, and functions that register something end
 * the program. If the service does not run, the library waits for it in the background. You may
 * call this again for another backend. */
static inline void esatto_init(uint32_t backends) {
  struct PerfettoProducerBackendInitArgs* args = PerfettoProducerBackendInitArgsCreate();
  if (backends & ESATTO_IN_PROCESS) PerfettoProducerInProcessInit(args);
  if (backends & ESATTO_SYSTEM) PerfettoProducerSystemInit(args);
  PerfettoProducerBackendInitArgsDestroy(args);
}

/* A category: an object that lives as long as the program. */
struct esatto_category {
  PERFETTO_ATOMIC(bool)* enabled;
  struct PerfettoTeCategoryImpl* impl;
  struct PerfettoTeCategoryDescriptor descriptor;
};

static inline bool esatto_load_(PERFETTO_ATOMIC(bool)* flag) {
#ifdef __cplusplus
  return flag->load(std::memory_order_relaxed);
#else
  return atomic_load_explicit(flag, memory_order_relaxed);
#endif
}

/* Returns false, for a category whose flag is true because it is not registered. If a session
 * records events, a line on stderr says so, of the first categories of this source file. A signal
 * handler may trace, so it does no more. */
static __attribute__((noinline, cold, unused)) bool esatto_tell_not_registered_(const struct esatto_category* category) {
  enum { MAX_TOLD = 8 };
  static const struct esatto_category* told[MAX_TOLD];
  const char* name = category->descriptor.name;
  const char* const parts[] = {"esatto: the category \"", name ? name : "",
                               "\" is not registered here, so its events are not recorded: call ESATTO_REGISTER (C) or "
                               "esatto::register_categories (C++) before, in each shared object that has a copy of it\n"};
  struct iovec line[3];
  int i;
  if (!esatto_load_(perfetto_te_any_categories_enabled)) return false;
  for (i = 0; i < MAX_TOLD; i++) {
    const struct esatto_category* none = NULL;
    if (__atomic_compare_exchange_n(&told[i], &none, category, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
    if (none == category) return false;
  }
  if (i == MAX_TOLD) return false;
  for (i = 0; i < 3; i++) {
    line[i].iov_base = (void*)(uintptr_t)parts[i];
    line[i].iov_len = strlen(parts[i]);
  }
  if (writev(STDERR_FILENO, line, 3) < 0) return false;
  return false;
}

/* Returns true if a session records the category. Costs one load, and two more before the category
 * is registered. */
static inline bool esatto_is_enabled(const struct esatto_category* category) {
  if (__builtin_expect(!esatto_load_(category->enabled), true)) return false;
  if (category->impl) return true;
  /* Null in a program that was never initialised. */
  return perfetto_te_any_categories_enabled && esatto_tell_not_registered_(category);
}

/* Registers categories, up to a null pointer, and announces them to the services. Categories that
 * are registered already do not change. Call it before other threads reach the trace points. */
static inline void esatto_register_categories(struct esatto_category* const* categories) {
  PerfettoTeInit();
  for (; *categories; categories++) {
    struct esatto_category* category = *categories;
    if (category->impl) continue;
    category->descriptor.num_tags = 0;
    while (category->descriptor.tags && category->descriptor.tags[category->descriptor.num_tags]) category->descriptor.num_tags++;
    category->impl = PerfettoTeCategoryImplCreate(&category->descriptor);
    if (category->impl) category->enabled = PerfettoTeCategoryImplGetEnabled(category->impl);
  }
  PerfettoTePublishCategories();
}

/* Unregisters a category, before its shared object is unloaded. No thread may use it during the
 * call or later. */
static inline void esatto_unregister_category(struct esatto_category* category) {
  struct PerfettoTeCategoryImpl* impl = category->impl;
  if (!impl) return;
  category->enabled = &perfetto_atomic_false;
  category->impl = NULL;
  PerfettoTeCategoryImplDestroy(impl);
  PerfettoTePublishCategories();
}

/* The category for events whose category name is known at run time only: see ESATTO_CATEGORY_NAME
 * and esatto::category_name. */
static inline struct esatto_category esatto_any_category(void) {
  struct esatto_category any = {&perfetto_atomic_false, NULL, {NULL, NULL, NULL, 0}};
  if (perfetto_te_any_categories_enabled) {
    any.enabled = perfetto_te_any_categories_enabled;
    any.impl = perfetto_te_any_categories;
  }
  return any;
}

/* Returns the time of the clock of track events: nanoseconds since the machine was started. */
static inline struct PerfettoTeTimestamp esatto_now(void) { return PerfettoTeGetTimestamp(); }

/* Stands for the track of the process before categories are registered. */
#define ESATTO_PROCESS_LATER_ 0x6c61746572207069u

/* Returns the track of this process, as a parent of other tracks. Before categories are registered
 * it is a number that stands for this track in esatto_track_open only. */
static inline uint64_t esatto_process_track(void) {
  return perfetto_te_process_track_uuid ? perfetto_te_process_track_uuid : ESATTO_PROCESS_LATER_;
}

/* Returns the track of the calling thread, as a parent of other tracks. */
static inline uint64_t esatto_thread_track(void) { return esatto_process_track() ^ (uint64_t)PerfettoGetThreadIdImpl(); }

/* A parent may be from before categories were registered. */
static inline bool esatto_is_process_track_(uint64_t parent) { return parent == esatto_process_track() || parent == ESATTO_PROCESS_LATER_; }
static inline bool esatto_is_thread_track_(uint64_t parent) {
  return parent && esatto_is_process_track_(parent ^ (uint64_t)PerfettoGetThreadIdImpl());
}

/* Activates triggers, up to a null pointer, in the sessions that wait for one of them. If there is
 * no connection, the library forgets them after ttl_ms milliseconds.
 *
 * It returns when they are sent, or after 100 ms, so abort() or _exit() may follow. It takes locks
 * and memory: a handler of a fatal signal calls it on another thread. The child of a fork activates
 * triggers only after esatto_init. */
static inline void esatto_activate_triggers(const char** names, uint32_t ttl_ms) { PerfettoProducerActivateTriggers(names, ttl_ms); }

/* Returns a hash of a text, for tracks that are identified by their names. */
static inline uint64_t esatto_hash_(const char* text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
  return hash;
}

/* Returns the part that a parent has in the uuids of tracks below it. Each uuid is this part ^ id ^
 * hash of the name. Below the process, or nothing, it is the one of Perfetto's functions. Elsewhere
 * the parent is mixed, so that ids and names of two levels cannot cancel each other. */
static inline uint64_t esatto_parent_part_(uint64_t parent) {
  if (!parent || parent == esatto_process_track()) return parent;
  parent = (parent ^ parent >> 30) * 0xbf58476d1ce4e5b9u;
  parent = (parent ^ parent >> 27) * 0x94d049bb133111ebu;
  return parent ^ parent >> 31;
}

#define ESATTO_COUNTER_MAGIC_ 0xb1a4a67d7970839eu
#define ESATTO_STATE_MAGIC_ 0x9b6c5d2f1e3a47c8u

/* The first argument of a macro, and the rest. Each call passes one more argument at the end, so
 * that there always are others. */
#define ESATTO_FIRST_(first, ...) first
#define ESATTO_REST_(first, ...) __VA_ARGS__
#define ESATTO_UNIQUE_(prefix) ESATTO_JOIN_(prefix, __LINE__)
#define ESATTO_JOIN_(a, b) ESATTO_JOIN__(a, b)
#define ESATTO_JOIN__(a, b) a##b

#ifdef __cplusplus
}
#endif

#endif /* ESATTO_BASE_H_ */
