/* The header for the flavour that a program is compiled for: what v59 has renamed goes by the names of v58 (docs/spec/c-abi.md §18). */

#ifndef FLAVOUR_H_
#define FLAVOUR_H_

#include "perfetto_c.h"

#ifdef PERFETTO_C_V59
#define PerfettoStreamWriter PerfettoPbMsgWriter
#define PerfettoStreamWriterUpdateWritePtr PerfettoPbMsgWriterUpdateWritePtr
#define PerfettoStreamWriterNewChunk PerfettoPbMsgWriterNewChunk
#define PerfettoStreamWriterAppendBytesSlowpath PerfettoPbMsgWriterAppendBytesSlowpath
#define PerfettoStreamWriterReserveBytesSlowpath PerfettoPbMsgWriterReserveBytesSlowpath
#define PerfettoStreamWriterAnnotatePatch PerfettoPbMsgWriterAnnotatePatch
#define PERFETTO_STREAM_WRITER_PATCH_SIZE PERFETTO_PB_MSG_WRITER_PATCH_SIZE
#endif

#endif
