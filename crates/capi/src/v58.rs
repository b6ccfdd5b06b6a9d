//! Functions of v58 that v59 has under another name or with other arguments (`docs/spec/c-abi.md`
//! §18).

use crate::abi::StreamWriter;
use crate::ffi::Mut;
use crate::panic_guard::guard;
use crate::stream::export_writer;
use crate::tracer::{self, Tracer};

export_writer!(
    PerfettoStreamWriterUpdateWritePtr,
    PerfettoStreamWriterNewChunk,
    PerfettoStreamWriterAppendBytesSlowpath,
    PerfettoStreamWriterReserveBytesSlowpath,
    PerfettoStreamWriterAnnotatePatch
);

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplPacketBegin(tracer: Mut<'_, Tracer>) -> StreamWriter {
    guard(|| tracer::begin_packet(tracer))
}

#[cfg(test)]
#[allow(clashing_extern_declarations, improper_ctypes, reason = "as in `crate::tests`")]
pub(crate) mod tests {
    use super::StreamWriter;
    use crate::panic_guard::Fallback;
    use crate::panic_guard::test_panic::in_guard_of;
    use crate::tests::{P, fall_back};

    /// Returns the functions of this version: those in `symbols.txt`.
    pub(crate) fn exported() -> Vec<&'static str> {
        let lines = include_str!("../tests/c_abi/symbols.txt").lines();
        lines.filter(|line| line.starts_with("Perfetto")).collect()
    }

    /// Checks that the functions of this file return their fallbacks, and returns their names.
    pub(crate) fn guarded() -> impl Iterator<Item = &'static str> {
        unsafe extern "C" {
            fn PerfettoDsTracerImplPacketBegin(_: P) -> StreamWriter;
        }
        // SAFETY: it has this type, and does nothing with its argument.
        assert!(in_guard_of(|| unsafe { PerfettoDsTracerImplPacketBegin(P::FALLBACK) }).target.is_null());
        let names = fall_back! {
            PerfettoStreamWriterUpdateWritePtr(P) -> ();
            PerfettoStreamWriterNewChunk(P) -> ();
            PerfettoStreamWriterAppendBytesSlowpath(P, P, usize) -> ();
            PerfettoStreamWriterReserveBytesSlowpath(P, usize) -> ();
            PerfettoStreamWriterAnnotatePatch(P, P) -> P;
        };
        names.into_iter().chain(["PerfettoDsTracerImplPacketBegin"])
    }
}
