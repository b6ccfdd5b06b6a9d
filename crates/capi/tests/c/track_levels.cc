// Tracks whose ids are those of other levels: see track_levels.c.

#include <esatto/trace.hpp>
#include <thread>

#include "check.h"

static esatto::Category net{"net"};
static uint64_t now;

static auto at(uint64_t ns) {
  PerfettoTeTimestamp time = esatto_now();
  time.value = now + ns;
  return esatto::at(time);
}

static void equal_ids() {
  for (int i = 0; i < 6; i++) {
    uint64_t id = 1 + i % 3;
    auto stream = esatto::Track::slices("stream", id, esatto::Track::slices("connection", id));
    if (i < 3)
      ESATTO_BEGIN(net, "of a connection", at(i), esatto::on(stream));
    else
      ESATTO_END(net, at(100 + i % 3), esatto::on(stream));
  }
}

static void nested_paths() {
  for (int i = 0; i < 6; i++) {
    uint64_t id = 1 + i % 3;
    auto path = esatto::on_nested(esatto::nest::process(), esatto::nest::named("outer", id), esatto::nest::named("inner", id));
    if (i < 3)
      ESATTO_BEGIN(net, "of a path", at(i), path);
    else
      ESATTO_END(net, at(100 + i % 3), path);
  }
}

// The number of the thread is the id of its track. Each part is the same track, given in another
// way.
static void threads() {
  uint64_t tids[2], parents[2];
  for (int i = 0; i < 2; i++) {
    std::thread([&, i] {
      tids[i] = PerfettoGetThreadIdImpl();
      parents[i] = esatto_thread_track();
      auto track = esatto::Track::slices("queue", tids[i], esatto_thread_track());
      ESATTO_BEGIN(net, "of a thread", at(i), esatto::on(track));
    }).join();
  }
  for (int i = 0; i < 2; i++) ESATTO_END(net, at(100 + i), esatto::on_named("queue", tids[i], parents[i]));
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(net);
  auto session = esatto::Session::in_process(esatto::TraceConfig().buffer_kb(1024).categories());
  now = esatto_now().value;
  equal_ids();
  nested_paths();
  threads();
  return session.finish(argv[1]).value();
}
