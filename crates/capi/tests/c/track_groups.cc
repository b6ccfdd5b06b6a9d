// Tracks below tracks that have no events of their own.

#include <esatto/trace.hpp>
#include <utility>

#include "check.h"

static esatto::Category net{"net"};

int main(int argc, char** argv) {
  CHECK(argc == 2);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(net);
  auto session = esatto::Session::in_process(esatto::TraceConfig().buffer_kb(1024).categories());
  // The group "disk" ends here. The others move.
  auto queue = esatto::Track::slices("queue", 1, esatto::Track::slices("disk"));
  auto before = esatto::Track::slices("requests", 0, queue);
  auto depth = esatto::Track::counter("depth", "requests", queue);
  auto mode = esatto::Track::states("mode", queue);
  auto requests = std::move(before);
  auto worldwide = esatto::Track::counter("worldwide", nullptr, esatto::Track::slices("world", 0, 0));
  queue = esatto::Track::slices("another");
  {
    ESATTO_SLICE(net, "request", esatto::on(requests));
    ESATTO_COUNTER(net, depth, 7);
    ESATTO_COUNTER(net, worldwide, 8);
  }
  ESATTO_STATE(net, mode, "busy");
  return session.finish(argv[1]).value();
}
