/* Categories whose name comes with the event. */

#include "events.h"

static void dynamic(struct PerfettoTeCategoryDescriptor* desc, const char* name) {
  struct PerfettoTeHlExtraDynamicCategory extra = {{PERFETTO_TE_HL_EXTRA_TYPE_DYNAMIC_CATEGORY}, desc};
  if (*perfetto_te_any_categories_enabled) instant(perfetto_te_any_categories, name, X(extra));
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  static struct PerfettoTeCategoryDescriptor desc = {"static", NULL, NULL, 0};
  struct PerfettoTeCategoryImpl* cat = init_with_category(&desc);
  static struct PerfettoTeCategoryDescriptor one = {"dyn.one", NULL, NULL, 0}, two = {"dyn.two", NULL, NULL, 0};
  dynamic(&one, "before");
  struct bytes config = config_for_categories("dyn.one");
  struct PerfettoTracingSessionImpl* only_one = start(&config);
  WAIT_FOR(*perfetto_te_any_categories_enabled);
  dynamic(&one, "in one");
  dynamic(&two, "in none");
  config = config_for_categories("dyn.*");
  struct PerfettoTracingSessionImpl* both = start(&config);
  /* If the service is another process, the instance starts a little later. */
  if (is_system_wide()) usleep(300000);
  for (int i = 0; i < 2; i++) {
    dynamic(&one, "of one");
    dynamic(&two, "of two");
  }
  /* More categories than the library remembers. */
  for (int i = 0; i < 40; i++) {
    char name[20];
    snprintf(name, sizeof name, i % 2 ? "dyn.%d" : "off.%d", i);
    struct PerfettoTeCategoryDescriptor many = {name, NULL, NULL, 0};
    dynamic(&many, "of many");
  }
  instant(cat, "of a static category");
  stop_and_finish(only_one, "one");
  dynamic(&one, "of one, later");
  stop_and_finish(both, "both");
  dynamic(&one, "after");
  return 0;
}
