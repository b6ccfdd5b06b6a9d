// Sessions in C++17, which record: in the program itself or in the machine's service. See
// esatto/trace.hpp.

#ifndef ESATTO_SESSION_HPP_
#define ESATTO_SESSION_HPP_

#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "session.h"

namespace esatto {

// A backend: a service in the program itself, or the service of the machine.
enum class Backend : uint32_t { in_process = ESATTO_IN_PROCESS, system = ESATTO_SYSTEM };
constexpr Backend operator|(Backend a, Backend b) { return static_cast<Backend>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b)); }

// Connects the program to backends. Call it first. Before that, trace points do nothing, and
// functions that register something end the program. If the service does not run, the library waits
// for it in the background. You may call this again for another backend.
inline void init(Backend backends) { esatto_init(static_cast<uint32_t>(backends)); }

// Makes a serialized TraceConfig from the options of most sessions. The default is one buffer of 4
// MiB.
class TraceConfig {
 public:
  TraceConfig& buffer_kb(uint32_t size) { return put(buffers_, 1, number(1, size)), *this; }
  // Ends the session after this time.
  TraceConfig& duration_ms(uint32_t time) { return rest_ += number(3, time), *this; }
  // Records track events of these categories, without those left out. Patterns such as "net.*" are
  // allowed, and the former list takes precedence. The default is all categories. One with the tag
  // slow or debug is recorded only if it is named in full.
  TraceConfig& categories(std::initializer_list<std::string_view> patterns = {}, std::initializer_list<std::string_view> left_out = {}) {
    std::string events;
    if (patterns.size() == 0) put(events, 2, "*");
    for (std::string_view tag : {"slow", "debug"}) put(events, 3, tag);
    for (std::string_view pattern : left_out) put(events, 1, pattern);
    for (std::string_view pattern : patterns) put(events, 2, pattern);
    std::string config;
    put(config, 113, events);
    return data_source("track_event", config);
  }
  // Records a data source by its name, with more serialized fields of its DataSourceConfig.
  TraceConfig& data_source(std::string_view name, std::string_view more = {}) {
    std::string config, source;
    put(config, 1, name);
    config += more;
    put(source, 1, config);
    return put(rest_, 2, source), *this;
  }
  // Adds serialized fields of TraceConfig.
  TraceConfig& more(std::string_view fields) { return rest_ += fields, *this; }

  std::string bytes() const { return (buffers_.empty() ? TraceConfig().buffer_kb(4096).buffers_ : buffers_) + rest_; }

 private:
  static void put_varint(std::string& to, uint64_t value) {
    uint8_t bytes[10];
    to.append(reinterpret_cast<char*>(bytes), static_cast<size_t>(esatto_encode_varint_(bytes, value) - bytes));
  }
  static std::string number(uint32_t field, uint64_t value) {
    std::string to;
    put_varint(to, field << 3);
    put_varint(to, value);
    return to;
  }
  static void put(std::string& to, uint32_t field, std::string_view bytes) {
    put_varint(to, field << 3 | 2);
    put_varint(to, bytes.size());
    to += bytes;
  }

  std::string buffers_, rest_;
};

// A session. It ends when it goes out of scope. Do not use it in two threads at once, or in
// callbacks of the library.
class Session {
 public:
  // Starts a session. The data sources of this program record when it returns.
  static Session in_process(const TraceConfig& config) { return Session(Backend::in_process, config.bytes()); }
  static Session system(const TraceConfig& config) { return Session(Backend::system, config.bytes()); }
  // Starts a session of one backend, with a serialized TraceConfig.
  Session(Backend backend, std::string_view config)
      : session_(esatto_session_start_with(static_cast<uint32_t>(backend), config.data(), config.size())) {}

  Session(Session&& from) noexcept : session_(std::exchange(from.session_, nullptr)) {}
  Session& operator=(Session&& from) noexcept { return std::swap(session_, from.session_), *this; }
  ~Session() {
    if (session_) PerfettoTracingSessionDestroy(session_);
  }

  // Flushes all packets into the session's buffers. Returns false if a producer did not answer in
  // time.
  bool flush(uint32_t timeout_ms = 5000) { return PerfettoTracingSessionFlushBlocking(session_, timeout_ms); }
  // Stops recording. The session records nothing any more when it returns.
  void stop() { PerfettoTracingSessionStopBlocking(session_); }

  // Calls body(const void*, size_t) with the packets that were not read before, piece by piece. The
  // body runs in a thread of the library and must not throw. The results of several calls, and the
  // file of save or finish, are one trace together, in the order of reading. Later packets refer to
  // names in earlier ones, so only the first result can be read alone.
  template <class Body>
  void read(Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    auto call = [](PerfettoTracingSessionImpl*, const void* data, size_t size, bool, void* user_arg) noexcept {
      ESATTO_ORDER_AFTER_(user_arg);
      if (size) (*static_cast<Plain*>(user_arg))(data, size);
      ESATTO_ORDER_BEFORE_(user_arg);
    };
    void* user_arg = const_cast<void*>(static_cast<const void*>(&body));
    ESATTO_ORDER_BEFORE_(user_arg);
    PerfettoTracingSessionReadTraceBlocking(session_, call, user_arg);
    ESATTO_ORDER_AFTER_(user_arg);
  }
  std::string read() {
    std::string trace;
    read([&trace](const void* data, size_t size) { trace.append(static_cast<const char*>(data), size); });
    return trace;
  }
  // Writes these packets into a file, which it creates or replaces. If there are none, because the
  // service did not take the session or has ended, the error is no_message_available (ENODATA), and
  // the file stays as it was.
  [[nodiscard]] std::error_code save(const std::string& path) { return {esatto_session_save(session_, path.c_str()), std::generic_category()}; }
  // Stops the session and saves its trace.
  [[nodiscard]] std::error_code finish(const std::string& path) { return stop(), save(path); }

  // The same session, for the functions of esatto/abi.h.
  PerfettoTracingSessionImpl* raw() const { return session_; }

 private:
  PerfettoTracingSessionImpl* session_;
};

}  // namespace esatto

#endif  // ESATTO_SESSION_HPP_
