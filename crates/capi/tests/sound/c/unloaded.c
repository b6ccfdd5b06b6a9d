/* A library that is opened at run time, and closed while it has a thread and other threads have
 * traced. It stays loaded. Two versions are independent. */

#include <dlfcn.h>

#include "sound.h"

/* Functions of one library that this program uses. */
struct library {
  void* handle;
  void (*init)(const struct PerfettoProducerBackendInitArgs*);
  void (*te_init)(void);
  struct PerfettoTeCategoryImpl* (*create)(struct PerfettoTeCategoryDescriptor*);
  PERFETTO_ATOMIC(bool) * (*enabled)(struct PerfettoTeCategoryImpl*);
  void (*emit)(struct PerfettoTeCategoryImpl*, int32_t, const char*, struct PerfettoTeHlExtra* const*);
  struct PerfettoTracingSessionImpl* (*session)(void);
  void (*setup)(struct PerfettoTracingSessionImpl*, void*, size_t);
  void (*start)(struct PerfettoTracingSessionImpl*);
  void (*stop)(struct PerfettoTracingSessionImpl*);
  void (*read)(struct PerfettoTracingSessionImpl*, PerfettoTracingSessionReadCb, void*);
  uint64_t* uuid;
  struct PerfettoTeCategoryImpl* cat;
  struct PerfettoTracingSessionImpl* recording;
};

static void* symbol(void* handle, const char* name) {
  void* address = dlsym(handle, name);
  CHECK(address);
  return address;
}

static void open_library(struct library* lib, const char* path) {
  lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib->handle) fprintf(stderr, "%s\n", dlerror());
  CHECK(lib->handle);
  *(void**)&lib->init = symbol(lib->handle, "PerfettoProducerInProcessInit");
  *(void**)&lib->te_init = symbol(lib->handle, "PerfettoTeInit");
  *(void**)&lib->create = symbol(lib->handle, "PerfettoTeCategoryImplCreate");
  *(void**)&lib->enabled = symbol(lib->handle, "PerfettoTeCategoryImplGetEnabled");
  *(void**)&lib->emit = symbol(lib->handle, "PerfettoTeHlEmitImpl");
  *(void**)&lib->session = symbol(lib->handle, "PerfettoTracingSessionInProcessCreate");
  *(void**)&lib->setup = symbol(lib->handle, "PerfettoTracingSessionSetup");
  *(void**)&lib->start = symbol(lib->handle, "PerfettoTracingSessionStartBlocking");
  *(void**)&lib->stop = symbol(lib->handle, "PerfettoTracingSessionStopBlocking");
  *(void**)&lib->read = symbol(lib->handle, "PerfettoTracingSessionReadTraceBlocking");
  lib->uuid = symbol(lib->handle, "perfetto_te_process_track_uuid");
  lib->init(NULL);
  lib->te_init();
  static struct PerfettoTeCategoryDescriptor desc = {"sound", NULL, NULL, 0};
  lib->cat = lib->create(&desc);
}

static void record(struct library* lib) {
  struct bytes buffer = {{0}, 0}, ds_config = {{0}, 0}, ds = {{0}, 0}, config = {{0}, 0}, te = {{0}, 0};
  put_number(&buffer, 1, 1024);
  put_text(&ds_config, 1, "track_event");
  put_text(&te, 2, "*");
  put_message(&ds_config, 113, &te);
  put_message(&ds, 1, &ds_config);
  put_message(&config, 1, &buffer);
  put_message(&config, 2, &ds);
  lib->recording = lib->session();
  lib->setup(lib->recording, config.at, config.len);
  lib->start(lib->recording);
}

static struct trace finish(struct library* lib) {
  struct trace trace = {NULL, 0};
  lib->stop(lib->recording);
  lib->read(lib->recording, append, &trace);
  return trace;
}

static _Atomic(bool) has_traced, go_on;

static void* trace_and_wait(void* library) {
  struct library* lib = (struct library*)library;
  lib->emit(lib->cat, PERFETTO_TE_TYPE_INSTANT, "of a thread", no_extras);
  has_traced = true;
  while (!go_on) usleep(1000);
  lib->emit(lib->cat, PERFETTO_TE_TYPE_INSTANT, "after it was closed", no_extras);
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  static struct library one, other;
  open_library(&one, argv[1]);
  open_library(&other, argv[2]);
  CHECK(one.handle != other.handle && one.uuid != other.uuid && one.cat != other.cat);
  record(&one);
  CHECK(*one.enabled(one.cat) && !*other.enabled(other.cat));
  record(&other);
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, trace_and_wait, &one));
  while (!has_traced) usleep(1000);
  one.emit(one.cat, PERFETTO_TE_TYPE_INSTANT, "of the one", no_extras);
  other.emit(other.cat, PERFETTO_TE_TYPE_INSTANT, "of the other", no_extras);
  CHECK(!dlclose(one.handle) && !dlclose(other.handle));
  Dl_info info;
  CHECK(dladdr((void*)(uintptr_t)one.emit, &info) && dladdr((void*)(uintptr_t)other.emit, &info));
  pid_t pid = fork_in_time();
  if (!pid) {
    one.emit(one.cat, PERFETTO_TE_TYPE_INSTANT, "of the child", no_extras);
    other.emit(other.cat, PERFETTO_TE_TYPE_INSTANT, "of the child", no_extras);
    CHECK(!*one.enabled(one.cat) && !*other.enabled(other.cat));
    exit(0);
  }
  wait_for_child(pid);
  go_on = true;
  CHECK(!pthread_join(thread, NULL));
  struct trace of_one = finish(&one), of_other = finish(&other);
  CHECK(has(&of_one, "of the one") && has(&of_one, "of a thread") && has(&of_one, "after it was closed"));
  CHECK(!has(&of_one, "of the child") && !has(&of_other, "of the child"));
  CHECK(has(&of_other, "of the other") && !has(&of_one, "of the other") && !has(&of_other, "of the one"));
  /* Again. The program ends while everything runs. */
  record(&one);
  return 0;
}
