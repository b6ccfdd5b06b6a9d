//! What v58 has and other versions have otherwise (`docs/spec/c-abi.md` §18).

use crate::abi::StreamWriter;
use crate::stream::{self, export_writer};
use crate::tracer::{self, Tracer};

/// The stream writer ends where v59 tells the encoding.
pub(crate) const ENCODING_WORDS: usize = 0;
#[cfg(target_pointer_width = "64")]
pub(crate) const STREAM_WRITER_BYTES: usize = 40;

export_writer!(
    PerfettoStreamWriterUpdateWritePtr,
    PerfettoStreamWriterNewChunk,
    PerfettoStreamWriterAppendBytesSlowpath,
    PerfettoStreamWriterReserveBytesSlowpath,
    PerfettoStreamWriterAnnotatePatch
);

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplPacketBegin(tracer: *mut Tracer) -> StreamWriter {
    // SAFETY: the contract.
    unsafe { tracer::begin_packet(tracer) }
}
