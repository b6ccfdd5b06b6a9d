// An exception that leaves a callback of the program: 0 on the program's thread, 1 on the
// library's.

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <esatto/abi.h>

static void on_category(PerfettoTeCategoryImpl*, PerfettoDsInstanceIndex, bool, bool, void*) {
  throw std::runtime_error("of the program");
}

static void on_stop(PerfettoTracingSessionImpl*, void*) { throw std::runtime_error("of the program"); }

int main(int, char** argv) {
  PerfettoProducerInProcessInit(nullptr);
  PerfettoTeInit();
  static PerfettoTeCategoryDescriptor desc = {"sound", nullptr, nullptr, 0};
  PerfettoTeCategoryImpl* cat = PerfettoTeCategoryImplCreate(&desc);
  PerfettoTracingSessionImpl* session = PerfettoTracingSessionInProcessCreate();
  // A buffer of 64 KiB; track events of all categories.
  char config[] = "\x0a\x02\x08\x40\x12\x15\x0a\x13\x0a\x0btrack_event\x8a\x07\x03\x12\x01*";
  PerfettoTracingSessionSetup(session, config, sizeof config - 1);
  PerfettoTracingSessionStartBlocking(session);
  if (argv[1][0] == '0') {
    try {
      PerfettoTeCategoryImplSetCallback(cat, on_category, nullptr);
    } catch (const std::exception&) {
      return 2;
    }
    return 3;
  }
  PerfettoTracingSessionSetStopCb(session, on_stop, nullptr);
  PerfettoTracingSessionStopBlocking(session);
  PerfettoTracingSessionDestroy(session);
  return 4;
}
