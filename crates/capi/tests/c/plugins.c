/* Two shared objects and the program trace, each on its own threads. One is unloaded while a
 * session records, and loaded again. PLUGIN_ONE and PLUGIN_TWO are their paths. */

#include <dlfcn.h>

#include "events.h"
#include "plugin.h"

struct plugin {
  void* handle;
  __typeof__(plugin_begin)* begin;
  __typeof__(plugin_is_on)* is_on;
  __typeof__(plugin_work)* work;
  __typeof__(plugin_end)* end;
};

static struct plugin load(const char* path) {
  struct plugin p = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  if (!p.handle) fprintf(stderr, "%s\n", dlerror());
  CHECK(p.handle);
  p.begin = (__typeof__(p.begin))dlsym(p.handle, "plugin_begin");
  p.is_on = (__typeof__(p.is_on))dlsym(p.handle, "plugin_is_on");
  p.work = (__typeof__(p.work))dlsym(p.handle, "plugin_work");
  p.end = (__typeof__(p.end))dlsym(p.handle, "plugin_end");
  CHECK(p.begin && p.is_on && p.work && p.end);
  p.begin();
  return p;
}

static void unload(struct plugin* p, const char* path) {
  p->end();
  CHECK(dlclose(p->handle) == 0);
  /* It is unloaded. */
  CHECK(!dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

static void* on_a_thread_of_its_own(void* plugin) {
  for (int i = 0; i < 3; i++) ((struct plugin*)plugin)->work(100 + i);
  return NULL;
}

int main(int argc, char** argv) {
  const char *one_path = getenv("PLUGIN_ONE"), *two_path = getenv("PLUGIN_TWO");
  CHECK(one_path && two_path);
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"program", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* cat = init_with_category(&desc);
  struct plugin one = load(one_path), two = load(two_path);
  struct bytes config = config_for_categories("*"), ds_config = {{0}, 0}, source = {{0}, 0};
  put_text(&ds_config, 1, "c.plugin");
  put_message(&source, 1, &ds_config);
  put_message(&config, 2, &source);
  struct PerfettoTracingSessionImpl* session = start(&config);
  WAIT_FOR(one.is_on() && two.is_on() && *PerfettoTeCategoryImplGetEnabled(cat));
  instant(cat, "both");
  one.work(1);
  two.work(2);
  pthread_t threads[] = {spawn(on_a_thread_of_its_own, &one), spawn(on_a_thread_of_its_own, &two)};
  join(threads[0]);
  join(threads[1]);

  unload(&one, one_path);
  two.work(3);
  instant(cat, "between");
  /* Other memory at its address. */
  for (int i = 0; i < 100; i++) CHECK(malloc(5000));
  struct plugin again = load(one_path);
  WAIT_FOR(again.is_on());
  again.work(4);
  unload(&again, one_path);
  unload(&two, two_path);
  instant(cat, "without plugins");
  PerfettoTracingSessionStopBlocking(session);
  finish(session, "trace");

  /* Types without their plugins are harmless. */
  session = start(&config);
  instant(cat, "once more");
  stop_and_finish(session, "second");
  return 0;
}
