//! What v59 has and v58 has otherwise (`docs/spec/c-abi.md` §18).

use crate::abi::StreamWriter;
use crate::data_source::{DataSourceType, OnFlushArgs};
use crate::stream::{self, export_writer};
use crate::tracer::{self, Tracer};

/// Behind the rest of the stream writer: the encoding, and what the alignment leaves.
pub(crate) const ENCODING_WORDS: usize = 1;
#[cfg(target_pointer_width = "64")]
pub(crate) const STREAM_WRITER_BYTES: usize = 48;

export_writer!(
    PerfettoPbMsgWriterUpdateWritePtr,
    PerfettoPbMsgWriterNewChunk,
    PerfettoPbMsgWriterAppendBytesSlowpath,
    PerfettoPbMsgWriterReserveBytesSlowpath,
    PerfettoPbMsgWriterAnnotatePatch
);

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplPacketBegin(tracer: *mut Tracer, writer: *mut StreamWriter) {
    if !writer.is_null() {
        // SAFETY: the contract: of an iteration that goes on; and a struct of the program, which need not be initialised.
        unsafe { writer.write(tracer::begin_packet(tracer)) };
    }
}

/// The other transport is an experiment of Perfetto's, which services choose only where they like: no packet ever takes it.
#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetSupportsTracingV2(ds_impl: *const DataSourceType, _supports: u8) -> bool {
    // SAFETY: the contract: from create, and registration has not failed.
    unsafe { ds_impl.as_ref() }.is_some_and(|ds| !ds.is_registered())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsOnFlushArgsGetReason(args: *const OnFlushArgs) -> u64 {
    // SAFETY: the contract: in the callback that has them.
    unsafe { args.as_ref() }.map_or(0, OnFlushArgs::reason)
}
