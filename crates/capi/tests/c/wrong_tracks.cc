// Events on tracks that were moved from, or are of another kind. The trace goes to the file of the
// first argument. The second one is the first mistake: "moved from".

#include <esatto/trace.hpp>

#include "check.h"

inline esatto::Category net{"net"};

int main(int argc, char** argv) {
  CHECK(argc == 3);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(net);
  auto session = esatto_session_start(ESATTO_IN_PROCESS, nullptr);
  esatto::Track before = esatto::Track::slices("slices"), states = esatto::Track::states("states");
  esatto::Track slices = std::move(before);
  {
    ESATTO_SLICE(net, "good", esatto::on(slices));
    ESATTO_STATE(net, states, "good");
  }
  fprintf(stderr, "%s\n", argv[2]);
  for (int i = 0; i < 3; i++) ESATTO_INSTANT(net, "x", esatto::on(before));
  fputs("values\n", stderr);
  for (int i = 0; i < 3; i++) ESATTO_COUNTER(net, slices, i);
  fputs("end\n", stderr);
  CHECK(esatto_session_finish(session, argv[1]) == 0);
}
