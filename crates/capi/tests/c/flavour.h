/* The header for the flavour that a program is compiled for: with -DV59 that of v59 (docs/spec/c-abi.md §18). */

#ifndef FLAVOUR_H_
#define FLAVOUR_H_

#ifdef V59
#define PerfettoStreamWriterUpdateWritePtr PerfettoPbMsgWriterUpdateWritePtr
#define PerfettoStreamWriterNewChunk PerfettoPbMsgWriterNewChunk
#define PerfettoStreamWriterAppendBytesSlowpath PerfettoPbMsgWriterAppendBytesSlowpath
#define PerfettoStreamWriterReserveBytesSlowpath PerfettoPbMsgWriterReserveBytesSlowpath
#define PerfettoStreamWriterAnnotatePatch PerfettoPbMsgWriterAnnotatePatch
#define PerfettoDsTracerImplPacketBegin packet_begin_of_v58
#endif

#include "perfetto_c.h"

/* The program's part of a stream writer: v59 has something behind it. */
struct writer {
  struct PerfettoStreamWriter at;
#ifdef V59
  uint32_t encoding;
#endif
};

#ifdef V59
#undef PerfettoDsTracerImplPacketBegin
void PerfettoDsTracerImplPacketBegin(struct PerfettoDsTracerImpl*, struct PerfettoStreamWriter*);
PERFETTO_C_ASSERT(sizeof(struct writer) == 48);
#else
PERFETTO_C_ASSERT(sizeof(struct writer) == 40);
#endif

#endif
