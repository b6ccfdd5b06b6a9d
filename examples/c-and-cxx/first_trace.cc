// A first trace: a kitchen at work, recorded by the program itself.
//
// Usage: first_trace_cxx [FILE], then open the file in ui.perfetto.dev.

#include <esatto/trace.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

inline esatto::Category kitchen{"kitchen", "What is cooked"};
inline esatto::Category stove{"stove", "What the stove does"};

static void cook(uint64_t order, const std::string& dish, int minutes) {
  // From here to the end of the function.
  ESATTO_SLICE(kitchen, dish, esatto::flow(order), esatto::arg("order", order), esatto::arg("minutes", minutes));
  for (int i = 0; i < minutes; i++) {
    ESATTO_COUNTER(stove, "degrees", 150 + 10 * i);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (minutes > 3) ESATTO_INSTANT(kitchen, "burnt", esatto::arg("why", "too long"));
}

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "first_trace.pftrace";

  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(kitchen, stove);

  // Without a session, trace points do nothing.
  auto session = esatto::Session::in_process(esatto::TraceConfig().buffer_kb(1024).categories({"*"}));

  for (uint64_t order = 1; order <= 3; order++) {
    // Orders have their own track, and an arrow to their results.
    ESATTO_INSTANT(kitchen, "order", esatto::on_named("orders"), esatto::flow(order), esatto::arg("order", order));
    cook(order, order == 2 ? "stew" : "soup", static_cast<int>(order) + 1);
  }

  if (std::error_code error = session.finish(path)) {
    std::cerr << path << ": " << error.message() << "\n";
    return 1;
  }
  std::cout << path << "\n";
}
