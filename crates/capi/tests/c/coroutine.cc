// Slices of coroutines, which another thread resumes, or which end in another order.

#include <esatto/trace.hpp>
#include <coroutine>
#include <exception>
#include <thread>

#include "check.h"

static esatto::Category net{"net"};
static std::coroutine_handle<> suspended;

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

struct Suspend {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> handle) { suspended = handle; }
  void await_resume() {}
};

static Task without_track() {
  ESATTO_SLICE(net, "without a track");
  co_await Suspend{};
}

static Task with_track() {
  auto track = esatto::Track::slices("coroutine");
  ESATTO_SLICE(net, "with a track", esatto::on(track));
  co_await Suspend{};
}

static Task on_one_thread() {
  ESATTO_SLICE(net, "on one thread");
  co_await Suspend{};
}

static Task named(const char* name) {
  ESATTO_SLICE(net, name);
  co_await Suspend{};
}

// The second coroutine ends after the slice of the first one, which is around its own.
static void in_another_order() {
  named("first");
  auto first = suspended;
  named("second");
  auto second = suspended;
  first.resume();
  ESATTO_SLICE(net, "after");
  {
    ESATTO_SLICE(net, "in after");
    second.resume();
  }
}

static void resume_elsewhere() {
  std::thread([] {
    ESATTO_SLICE(net, "outer");
    {
      ESATTO_SLICE(net, "inner");
      suspended.resume();
      ESATTO_INSTANT(net, "in inner");
    }
  }).join();
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(net);
  auto session = esatto::Session::in_process(esatto::TraceConfig().buffer_kb(1024).categories());
  with_track();
  resume_elsewhere();
  on_one_thread();
  suspended.resume();
  {
    ESATTO_SLICE(net, "around");
    without_track();
  }
  resume_elsewhere();
  in_another_order();
  return session.finish(argv[1]).value();
}
