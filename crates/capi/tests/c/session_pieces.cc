// A program that reads a part of its trace, and saves the rest.

#include <esatto/trace.hpp>
#include <cstdio>

#include "check.h"

static esatto::Category net{"net"};

int main(int argc, char** argv) {
  CHECK(argc == 3);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(net);
  auto session = esatto::Session::in_process(esatto::TraceConfig().buffer_kb(1024).categories());
  ESATTO_INSTANT(net, "event");
  CHECK(session.flush());
  const std::string first = session.read();
  std::FILE* file = std::fopen(argv[1], "wb");
  CHECK(file && std::fwrite(first.data(), 1, first.size(), file) == first.size() && std::fclose(file) == 0);
  ESATTO_INSTANT(net, "event");
  return session.finish(argv[2]).value();
}
