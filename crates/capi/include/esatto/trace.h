/* Tracing in C11, with gcc or clang, over the C ABI of Perfetto's tracing library (esatto/abi.h).
 *
 *   static struct esatto_category net = ESATTO_CATEGORY("net", "What goes over the network");
 *
 *   void answer(int request) {
 *     ESATTO_SLICE(&net, "answer", ESATTO_ARG("request", request));
 *     …
 *   }
 *
 *   int main(void) {
 *     esatto_init(ESATTO_SYSTEM);
 *     ESATTO_REGISTER(&net);
 *     …
 *
 * If nothing records a trace point, it costs a load and a branch, and its arguments are not
 * evaluated.
 *
 * track_event.h has events, track.h tracks that are objects, data_source.h packets of the program's
 * own, proto.h the encoding of messages, session.h recording. Names that end with _ are not for
 * programs. Define PERFETTO_C_V59 for the library of v59. */

#ifndef ESATTO_TRACE_H_
#define ESATTO_TRACE_H_

#ifdef __cplusplus
#error "C++ has esatto/trace.hpp"
#endif

#include "base.h"
#include "data_source.h"
#include "proto.h"
#include "session.h"
#include "track.h"
#include "track_event.h"

#endif /* ESATTO_TRACE_H_ */
