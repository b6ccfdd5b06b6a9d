//! What v59 has and v58 has otherwise (`docs/spec/c-abi.md` §18).

use crate::abi::StreamWriter;
use crate::data_source::{DataSourceType, OnFlushArgs};
use crate::guard::guard;
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
    // SAFETY: the contract: of an iteration that goes on.
    let filled = guard(|| unsafe { tracer::begin_packet(tracer) });
    if !writer.is_null() {
        // SAFETY: the contract: a struct of the program, which need not be initialised.
        unsafe { writer.write(filled) };
    }
}

/// The other transport is an experiment of Perfetto's, which services choose only where they like: no packet ever takes it.
#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetSupportsTracingV2(ds_impl: *const DataSourceType, _supports: u8) -> bool {
    guard(|| {
        // SAFETY: the contract: from create, and registration has not failed.
        unsafe { ds_impl.as_ref() }.is_some_and(|ds| !ds.is_registered())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsOnFlushArgsGetReason(args: *const OnFlushArgs) -> u64 {
    guard(|| {
        // SAFETY: the contract: in the callback that has them.
        unsafe { args.as_ref() }.map_or(0, OnFlushArgs::reason)
    })
}

#[cfg(test)]
#[allow(clashing_extern_declarations, improper_ctypes, reason = "as in `crate::tests`")]
pub(crate) mod tests {
    use super::StreamWriter;
    use crate::guard::planted::in_a;
    use crate::tests::{P, all_do_nothing};

    const NEW: [&str; 2] = ["PerfettoDsSetSupportsTracingV2", "PerfettoDsOnFlushArgsGetReason"];

    /// The functions, of those in `symbols.txt` and new ones.
    pub(crate) fn exported() -> Vec<&'static str> {
        let v58 = include_str!("../../capi/tests/c_abi/symbols.txt").lines();
        let renamed = v58
            .filter(|line| line.starts_with("Perfetto"))
            .map(|name| &*name.replace("PerfettoStreamWriter", "PerfettoPbMsgWriter").leak());
        renamed.chain(NEW).collect()
    }

    /// Sees that those of this flavour do nothing.
    pub(crate) fn guarded() -> impl Iterator<Item = &'static str> {
        unsafe extern "C" {
            fn PerfettoDsTracerImplPacketBegin(_: P, _: *mut StreamWriter);
        }
        let mut writer = core::mem::MaybeUninit::<StreamWriter>::uninit();
        // SAFETY: it fills the struct, whatever the tracer is.
        let writer = unsafe {
            in_a(|| PerfettoDsTracerImplPacketBegin(core::ptr::null_mut(), writer.as_mut_ptr()));
            writer.assume_init()
        };
        assert!(writer.target.is_null());
        let others = all_do_nothing! {
            PerfettoPbMsgWriterUpdateWritePtr(P) -> ();
            PerfettoPbMsgWriterNewChunk(P) -> ();
            PerfettoPbMsgWriterAppendBytesSlowpath(P, P, usize) -> ();
            PerfettoPbMsgWriterReserveBytesSlowpath(P, usize) -> ();
            PerfettoPbMsgWriterAnnotatePatch(P, P) -> P;
            PerfettoDsSetSupportsTracingV2(P, bool) -> bool;
            PerfettoDsOnFlushArgsGetReason(P) -> u64;
        };
        others.into_iter().chain(["PerfettoDsTracerImplPacketBegin"])
    }
}
