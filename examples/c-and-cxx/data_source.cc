// A data source of the program: a battery. It writes Perfetto's message BatteryCounters, so that
// Perfetto's tools draw it.
//
// Usage: data_source_cxx [FILE]

#include <esatto/trace.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

// Each session that wants the data source has an object of this class.
class Battery : public esatto::DataSource<Battery> {
 public:
  // A thread of the library calls it.
  void on_setup(const esatto::SetupArgs& args) { std::cout << "session " << args.instance << " wants the battery\n"; }

  static void sample(float percent, int64_t current_ua) {
    // Runs once for each session that wants the data source. Without a session it costs nothing.
    trace([&](Context context) {
      auto packet = context.packet();
      packet.put_timestamp();
      packet.nested(kBattery).put_float(kPercent, percent).put_int(kCurrentUa, current_ua);
    });
  }

 private:
  // Fields of perfetto.protos.TracePacket and perfetto.protos.BatteryCounters.
  static constexpr uint32_t kBattery = 38, kPercent = 2, kCurrentUa = 3;
};

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "data_source.pftrace";

  esatto::init(esatto::Backend::in_process);
  if (!Battery::register_as("com.example.battery")) return 1;
  Battery::sample(100, 0);  // no session records this one

  auto session = esatto::Session::in_process(esatto::TraceConfig().data_source("com.example.battery"));
  for (int i = 0; i < 10; i++) {
    Battery::sample(90.0f - static_cast<float>(i), -250000 + 1000 * i);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  if (std::error_code error = session.finish(path)) {
    std::cerr << path << ": " << error.message() << "\n";
    return 1;
  }
  std::cout << path << "\n";
}
