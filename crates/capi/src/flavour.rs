//! What v58 has and other versions have otherwise (`docs/spec/c-abi.md` §18).

use crate::abi::StreamWriter;
use crate::guard::guard;
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
    guard(|| {
        // SAFETY: the contract.
        unsafe { tracer::begin_packet(tracer) }
    })
}

#[cfg(test)]
#[allow(clashing_extern_declarations, improper_ctypes, reason = "as in `crate::tests`")]
pub(crate) mod tests {
    use super::StreamWriter;
    use crate::guard::Nothing;
    use crate::guard::planted::in_a;
    use crate::tests::{P, all_do_nothing};

    /// The functions, of those in `symbols.txt`.
    pub(crate) fn exported() -> Vec<&'static str> {
        let lines = include_str!("../tests/c_abi/symbols.txt").lines();
        lines.filter(|line| line.starts_with("Perfetto")).collect()
    }

    /// Sees that those of this flavour do nothing.
    pub(crate) fn guarded() -> impl Iterator<Item = &'static str> {
        unsafe extern "C" {
            fn PerfettoDsTracerImplPacketBegin(_: P) -> StreamWriter;
        }
        // SAFETY: it has such an argument, and does nothing with it.
        assert!(in_a(|| unsafe { PerfettoDsTracerImplPacketBegin(P::NOTHING) }).target.is_null());
        let others = all_do_nothing! {
            PerfettoStreamWriterUpdateWritePtr(P) -> ();
            PerfettoStreamWriterNewChunk(P) -> ();
            PerfettoStreamWriterAppendBytesSlowpath(P, P, usize) -> ();
            PerfettoStreamWriterReserveBytesSlowpath(P, usize) -> ();
            PerfettoStreamWriterAnnotatePatch(P, P) -> P;
        };
        others.into_iter().chain(["PerfettoDsTracerImplPacketBegin"])
    }
}
