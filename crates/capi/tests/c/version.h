/* The header for the version that a program is compiled for. Functions that v59 has renamed have
 * the names of v58 (docs/spec/c-abi.md §18). */

#ifndef VERSION_H_
#define VERSION_H_

#include <esatto/abi.h>

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
