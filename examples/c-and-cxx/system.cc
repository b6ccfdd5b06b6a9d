// A program that the service of the machine records, together with other programs. It draws
// pictures until a number of them has been recorded.
//
// Usage: system_cxx PICTURES FILE, to let the service record into a file;
// or system_cxx [PICTURES], and at the same time:
//
//   esatto record -t 5s -o trace.pftrace -c - <<END
//   buffers { size_kb: 4096 }
//   data_sources { config {
//     name: "track_event" track_event_config { enabled_categories: "graphics" }
//   } }
//   END

#include <esatto/trace.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

inline esatto::Category graphics{"graphics", "What is drawn"};

static void draw(int picture) {
  ESATTO_SLICE(graphics, "draw", esatto::arg("picture", picture));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

int main(int argc, char** argv) {
  const int pictures = argc > 1 ? std::stoi(argv[1]) : 1000;

  // The service may start later: the library connects then.
  esatto::init(esatto::Backend::system);
  esatto::register_categories(graphics);

  std::optional<esatto::Session> session;
  if (argc > 2) session = esatto::Session::system(esatto::TraceConfig().categories({"graphics"}));

  for (int recorded = 0; recorded < pictures;) {
    const bool is_recorded = graphics.is_enabled();
    draw(recorded);
    if (is_recorded) recorded++;
  }
  // The flush hands over the last events before the program ends.
  ESATTO_INSTANT(graphics, "done", esatto::flush());
  return session ? session->finish(argv[2]).value() : 0;
}
