// Tracing in C++17, with gcc or clang, over the C ABI of Perfetto's tracing library (esatto/abi.h).
//
//   inline esatto::Category net{"net", "What goes over the network"};
//
//   void answer(int request) {
//     ESATTO_SLICE(net, "answer", esatto::arg("request", request));
//     …
//   }
//
//   int main() {
//     esatto::init(esatto::Backend::system);
//     esatto::register_categories(net);
//     …
//
// If nothing records a trace point, it costs a load and a branch, and its arguments are not
// evaluated.
//
// track_event.hpp has events and tracks, data_source.hpp packets of the program's own, proto.hpp
// the encoding of messages, session.hpp recording. C++ can use categories and tracks of C.
// Namespace esatto::detail and names that end with _ are not for programs. Define PERFETTO_C_V59
// for the library of v59.

#ifndef ESATTO_TRACE_HPP_
#define ESATTO_TRACE_HPP_

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "esatto/trace.hpp needs C++17 (-std=c++17); C has esatto/trace.h"
#else

#include "base.h"
#include "data_source.hpp"
#include "proto.hpp"
#include "session.hpp"
#include "track_event.hpp"

#endif  // C++17

#endif  // ESATTO_TRACE_HPP_
