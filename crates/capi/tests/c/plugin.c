/* A shared object that traces with the library of the program. Its memory disappears when it is
 * unloaded, names included. It is compiled with its own NAME. */

#include "events.h"

#include "plugin.h"

static struct PerfettoTeCategoryDescriptor desc = {"plugin." NAME, "of a plugin", NULL, 0};
static struct PerfettoTeCategoryImpl* cat;
static struct PerfettoDsImpl* ds;
static PERFETTO_ATOMIC(bool)* enabled = &perfetto_atomic_false;

bool plugin_is_on(void) { return *PerfettoTeCategoryImplGetEnabled(cat) && *enabled; }

/* A type lives for ever. It has no callbacks, because they would be unloaded. */
void plugin_begin(void) {
  cat = PerfettoTeCategoryImplCreate(&desc);
  PerfettoTePublishCategories();
  ds = PerfettoDsImplCreate();
  enabled = register_as(ds, "c.plugin");
}

void plugin_work(int number) {
  struct PerfettoTeHlExtraDebugArgInt64 arg = {{PERFETTO_TE_HL_EXTRA_TYPE_DEBUG_ARG_INT64}, "number of " NAME, number};
  struct PerfettoTeHlExtraNamedTrack track = {
      {PERFETTO_TE_HL_EXTRA_TYPE_NAMED_TRACK}, "track of " NAME, 0, perfetto_te_process_track_uuid, true};
  instant(cat, "both", X(arg));
  instant(cat, "only " NAME, X(track));
  trace_text(ds, "packet of " NAME);
}

void plugin_end(void) {
  PerfettoTeCategoryImplDestroy(cat);
  PerfettoTePublishCategories();
}
