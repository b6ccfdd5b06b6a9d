// Every macro and class of esatto/trace.hpp. The traces go to the files of the arguments.

#include <esatto/trace.hpp>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>

#include "check.h"

namespace {

// The text of a path would not live until the event is recorded.
static_assert(esatto::detail::is_text<std::string> && esatto::detail::is_text<const char*> && esatto::detail::is_text<char[4]>);
static_assert(!esatto::detail::is_text<std::filesystem::path>);

esatto::Category net{"net", "Network"};
const char* tags[] = {"fast", nullptr};
esatto::Category plain{"plain", "", tags};
esatto::Category off{"off"};

const char* debug_tags[] = {"debug", nullptr};
esatto::Category debug{"debug", "Not recorded unless it is asked for", debug_tags};

int evaluated;
int count() { return ++evaluated; }
std::string name_of_it() { return evaluated++, "name"; }

void nobody_records() {
  ESATTO_SLICE(off, name_of_it(), esatto::arg("n", count()));
  ESATTO_BEGIN(off, name_of_it(), esatto::arg("n", count()));
  ESATTO_END(off, esatto::arg("n", count()));
  ESATTO_INSTANT(off, name_of_it(), esatto::flow(static_cast<uint64_t>(count())));
  ESATTO_COUNTER(off, name_of_it(), count());
  ESATTO_STATE(off, "thing", name_of_it());
  CHECK(evaluated == 0);
}

void leaves_early(int how) {
  ESATTO_SLICE(net, "leaves early", esatto::arg("how", how));
  if (how == 0) return;
  for (;;) {
    ESATTO_SLICE(net, "in a loop");
    if (how == 1) break;
    throw std::runtime_error("out");
  }
}

enum class Colour : unsigned char { red = 3 };

void annotations() {
  const std::string text = "text";
  char array[] = "array";
  ESATTO_INSTANT(net, "annotated", esatto::arg("bool", true), esatto::arg("char", 'c'), esatto::arg("short", short{-2}), esatto::arg("int", -3),
                 esatto::arg("long", -4L), esatto::arg("long long", INT64_MIN), esatto::arg("byte", uint8_t{200}), esatto::arg("unsigned", 5u),
                 esatto::arg("u64", uint64_t{1} << 40), esatto::arg("float", 0.25f), esatto::arg("double", 2.5), esatto::arg("text", text),
                 esatto::arg("literal", "literal"), esatto::arg("array", array), esatto::arg("pointer", reinterpret_cast<int*>(16)),
                 esatto::arg("null", static_cast<const char*>(nullptr)), esatto::arg("colour", Colour::red), esatto::arg("temporary", text + "!"),
                 esatto::arg("nullptr", nullptr));
}

void tracks() {
  auto worker = esatto::Track::slices("worker", 7);
  const auto celsius = esatto::Track::counter("heat", "C", worker);
  const auto light = esatto::Track::states("light");
  {
    ESATTO_SLICE(net, "on a track", esatto::on(worker), esatto::arg("n", 1));
    ESATTO_SLICE(net, "on a named track", esatto::arg("n", 2), esatto::on_named("named", 3));
    ESATTO_SLICE(net, "on the process", esatto::on_process());
  }
  auto inner = esatto::nest::named("inner", 4);
  inner.sibling_order_rank = 2;
  auto outer = esatto::nest::named("outer");
  outer.child_ordering = PERFETTO_TE_HL_CHILD_ORDERING_EXPLICIT;
  ESATTO_INSTANT(net, "on a nested track", esatto::on_nested(esatto::nest::process(), outer, inner));
  ESATTO_INSTANT(net, "below the worker", esatto::on_nested(esatto::nest::track(worker), esatto::nest::named("below")));
  ESATTO_INSTANT(net, "below the thread", esatto::on_nested(esatto::nest::thread(), esatto::nest::named("below the thread")));
  ESATTO_INSTANT(net, "of no process", esatto::on_named("global", 1, 0));
  ESATTO_COUNTER(net, celsius, 20);
  ESATTO_COUNTER(net, celsius, 20.5);
  ESATTO_COUNTER(net, "packets", 3u);
  ESATTO_COUNTER(net, std::string("packets"), -4);
  ESATTO_COUNTER(net, "load", 0.75f, esatto::arg("why", "because"));
  ESATTO_COUNTER(net, "load", 0.5L);
  ESATTO_STATE(net, "machine", "on");
  ESATTO_STATE(net, "machine", nullptr, esatto::arg("why", "because"));
  ESATTO_STATE(net, light, "green");
  ESATTO_STATE(net, light, std::string("red"));
  // The track is moved to another object.
  esatto::Track moved = std::move(worker);
  ESATTO_INSTANT(net, "on the moved track", esatto::on(moved));
}

[[noreturn]] int throws() { throw std::runtime_error("out"); }

// Slices whose category is known at run time end only where they began, and those whose arguments
// throw an exception do not end.
void dynamic_slices() {
  auto any = esatto::any_category();
  ESATTO_SLICE(net, "around");
  {
    ESATTO_SLICE(any, "must not be there", esatto::category_name("off"));
    ESATTO_SLICE(any, "must not be there", esatto::on_named("named", 3), esatto::category_name(std::string("off")));
  }
  {
    ESATTO_SLICE(esatto::any_category(), "slice of a dynamic category", esatto::category_name(std::string("plain")));
    ESATTO_INSTANT(net, "inside 2");
  }
  try {
    ESATTO_SLICE(net, "must not be there", esatto::arg("n", throws()));
  } catch (const std::runtime_error&) {
  }
  ESATTO_INSTANT(net, "inside 1");
}

void the_rest() {
  dynamic_slices();
  auto before = esatto::now(), after = before;
  before.value -= 2000000;
  after.value -= 500000;
  ESATTO_BEGIN(plain, "1.5 ms", esatto::at(before), esatto::on_named("past"));
  ESATTO_END(plain, esatto::at(after), esatto::on_named("past"));
  ESATTO_INSTANT(net, "starts", esatto::flow(1), esatto::flow_across(0xabcdef));
  ESATTO_INSTANT(net, "ends", esatto::flow_ends(1), esatto::flow_across_ends(0xabcdef));
  ESATTO_INSTANT(net, "correlated", esatto::correlation(11));
  ESATTO_INSTANT(net, "correlated by text", esatto::correlation("eleven"));
  for (int i = 0; i < 3; i++) ESATTO_INSTANT(net, "dynamic " + std::to_string(i), esatto::no_intern());
  ESATTO_INSTANT(esatto::any_category(), "of a dynamic category", esatto::category_name("plain"));
  ESATTO_INSTANT(esatto::any_category(), "must not be there", esatto::category_name(std::string("off")));
  ESATTO_INSTANT(net, "typed",
                 esatto::fields(esatto::message(33, esatto::field(2, "file.c"), esatto::field(4, 17), esatto::fixed32(1000, 1), esatto::field(1001, 1.5f)),
                                esatto::message(4, esatto::interned(1, "interned", 3), esatto::field(5, 0.5)),
                                esatto::message(4, esatto::field(10, std::string("bytes")), esatto::bytes(6, "a b", 3)), esatto::fixed64(47, 0xabcdef)));
  ESATTO_INSTANT(net, "last", esatto::flush());
}

void events(const char* path) {
  auto session = esatto::Session::in_process(esatto::TraceConfig().buffer_kb(1024).categories({"net", "pl*"}, {"*"}));
  CHECK(net.is_enabled() && plain.is_enabled());
  nobody_records();
  ESATTO_BEGIN(plain, "outer");
  for (int how = 0; how < 3; how++) {
    try {
      leaves_early(how);
    } catch (const std::runtime_error&) {
    }
  }
  ESATTO_END(plain);
  annotations();
  tracks();
  the_rest();
  CHECK(session.save("/no such folder/trace") == std::errc::no_such_file_or_directory);
  CHECK(!session.finish(path));
  CHECK(!net.is_enabled());
  auto usual = esatto::Session::in_process(esatto::TraceConfig().categories());
  CHECK(net.is_enabled() && off.is_enabled() && !debug.is_enabled());
}

std::string order;

class Weather : public esatto::DataSource<Weather> {
 public:
  ~Weather() { order += 'd'; }
  void on_setup(const esatto::SetupArgs& args) {
    CHECK(args.config.find("c.weather") != std::string_view::npos);
    order += 'u';
  }
  void on_start() { order += 's'; }
  void on_flush(esatto::FlushArgs& args) {
    order += 'f';
#ifdef PERFETTO_C_V59
    CHECK(args.reason() == PERFETTO_DS_FLUSH_REASON_EXPLICIT || args.reason() == PERFETTO_DS_FLUSH_REASON_TRACE_STOP);
#endif
    auto later = args.postpone();
  }
  void on_stop(esatto::StopArgs& args) {
    order += 'e';
    stop_ = std::make_unique<esatto::PostponedStop>(args.postpone());
    std::thread([stop = std::move(stop_)] { report("while stopping"); }).detach();
  }
  struct IncrementalState {
    int times = 0;
  };
  struct ThreadState {
    std::string all;
  };
  static void report(const std::string& text) {
    trace([&](Context context) {
      {
        auto packet = context.packet();
        packet.put_timestamp();
        auto test = packet.nested(900);
        test.put_string(1, text);
        auto payload = test.nested(5);
        for (int i = 0; i < 60; i++) payload.put_string(1, std::string(200, static_cast<char>('a' + i % 26)));
      }
      context.incremental_state().times++;
      context.thread_state().all += text;
      context.flush();
      CHECK(context.drop_count() == 0);
    });
  }
  int own = 5;

 private:
  std::unique_ptr<esatto::PostponedStop> stop_;
};

class Silent : public esatto::DataSource<Silent> {};

void data_sources(const char* path) {
  Weather::report("nobody hears it");
  CHECK(Weather::register_as("c.weather") && Weather::register_as("c.weather"));
  CHECK(Silent::register_as("c.silent", {PERFETTO_DS_BUFFER_EXHAUSTED_POLICY_STALL_AND_DROP, true}));
  CHECK(!Weather::is_enabled());
  auto session = esatto::Session::in_process(esatto::TraceConfig().data_source("c.weather").data_source("c.silent"));
  CHECK(Weather::is_enabled() && Silent::is_enabled());
  Weather::report("first");
  Weather::report("second");
  int turns = 0;
  Weather::trace([&](Weather::Context context) {
    turns++;
    CHECK(context.instance() && context.instance()->own == 5);
    CHECK(context.incremental_state().times == 2 && context.thread_state().all == "firstsecond");
    Weather::trace([&](Weather::Context) { turns = 100; });
  });
  CHECK(turns == 1);
  try {
    Weather::trace([](Weather::Context) { throw std::runtime_error("out"); });
    CHECK(false);
  } catch (const std::runtime_error&) {
  }
  Silent::trace([](Silent::Context context) { context.packet().put_timestamp().nested(900).put_string(1, "silent"); });
  CHECK(session.flush());
  CHECK(!session.finish(path));
  CHECK(order.find("usf") == 0 && !Weather::Locked(0));
  CHECK(!Weather::is_enabled() && !Silent::is_enabled());
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  nobody_records();
  ESATTO_INSTANT(esatto::any_category(), name_of_it(), esatto::category_name("plain"));
  CHECK(evaluated == 0);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(net, plain, off, debug);
  events(argv[1]);
  data_sources(argv[2]);
  return 0;
}
