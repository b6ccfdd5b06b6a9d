// Tracks that are made before main. The trace goes to the file of the first argument.

#include <esatto/trace.hpp>
#include <vector>

#include "check.h"

inline esatto::Category net{"net"};
static const esatto::Track queue = esatto::Track::slices("queue");
static esatto::Track depth = esatto::Track::counter("depth", nullptr, queue);

int main(int argc, char** argv) {
  CHECK(argc == 2);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(net);
  auto session = esatto_session_start(ESATTO_IN_PROCESS, nullptr);
  { ESATTO_SLICE(net, "job", esatto::on(queue)); }
  ESATTO_COUNTER(net, depth, 3);
  ESATTO_INSTANT(net, "nested", esatto::on_nested(esatto::nest::track(queue), esatto::nest::named("named")));
  // Tracks that move while slices on them are open.
  std::vector<esatto::Track> lanes;
  auto handle = [&](auto& self, int depth) -> void {
    lanes.push_back(esatto::Track::row("lane", static_cast<uint64_t>(depth) + 1));
    ESATTO_SLICE(net, "connection", esatto::on(lanes.back()));
    if (depth < 9) self(self, depth + 1);
  };
  handle(handle, 0);
  CHECK(esatto_session_finish(session, argv[1]) == 0);
  printf("%d\n", static_cast<int>(getpid()));
}
