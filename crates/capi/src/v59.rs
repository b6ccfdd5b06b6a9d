//! Functions that v59 has added, or has under another name or with other arguments
//! (`docs/spec/c-abi.md` §18).

use esatto::data_source::FlushReason;

use crate::abi::StreamWriter;
use crate::data_source::{DataSourceType, FlushArgs};
use crate::ffi::{Mut, Out, Ref};
use crate::panic_guard::guard;
use crate::stream::export_writer;
use crate::tracer::{self, Tracer};

export_writer!(
    PerfettoPbMsgWriterUpdateWritePtr,
    PerfettoPbMsgWriterNewChunk,
    PerfettoPbMsgWriterAppendBytesSlowpath,
    PerfettoPbMsgWriterReserveBytesSlowpath,
    PerfettoPbMsgWriterAnnotatePatch
);

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsTracerImplPacketBegin(tracer: Mut<'_, Tracer>, writer: Out<'_, StreamWriter>) {
    writer.write(guard(|| tracer::begin_packet(tracer)));
}

/// "Tracing V2" is an experimental transport of Perfetto's, which a service need not choose. The
/// library never uses it.
#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetSupportsTracingV2(ds_impl: Ref<'_, DataSourceType>, _supports: u8) -> bool {
    guard(|| ds_impl.get().is_some_and(|ds| !ds.is_registered()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsOnFlushArgsGetReason(args: Ref<'_, FlushArgs>) -> u64 {
    guard(|| args.get().map_or(0, reason_number))
}

/// Returns the number of the reason for a flush, 0 if it is unknown.
fn reason_number(args: &FlushArgs) -> u64 {
    args.flush.as_ref().map_or(0, |flush| match flush.reason() {
        FlushReason::Periodic => 1,
        FlushReason::TraceStop => 2,
        FlushReason::TraceClone => 3,
        FlushReason::Explicit => 4,
        _ => 0,
    })
}

#[cfg(test)]
#[allow(clashing_extern_declarations, improper_ctypes, reason = "as in `crate::tests`")]
pub(crate) mod tests {
    use super::StreamWriter;
    use crate::panic_guard::test_panic::in_guard_of;
    use crate::tests::{P, fall_back};

    const NEW: [&str; 2] = ["PerfettoDsSetSupportsTracingV2", "PerfettoDsOnFlushArgsGetReason"];

    /// Returns the functions of this version: those in `symbols.txt`, renamed, and the new ones.
    pub(crate) fn exported() -> Vec<&'static str> {
        let v58 = include_str!("../tests/c_abi/symbols.txt").lines();
        let renamed = v58
            .filter(|line| line.starts_with("Perfetto"))
            .map(|name| &*name.replace("PerfettoStreamWriter", "PerfettoPbMsgWriter").leak());
        renamed.chain(NEW).collect()
    }

    /// Checks that the functions of this file return their fallbacks, and returns their names.
    pub(crate) fn guarded() -> impl Iterator<Item = &'static str> {
        unsafe extern "C" {
            fn PerfettoDsTracerImplPacketBegin(_: P, _: *mut StreamWriter);
        }
        let mut writer = core::mem::MaybeUninit::<StreamWriter>::uninit();
        // SAFETY: it has this type, and fills the struct for any tracer.
        let writer = unsafe {
            in_guard_of(|| PerfettoDsTracerImplPacketBegin(core::ptr::null_mut(), writer.as_mut_ptr()));
            writer.assume_init()
        };
        assert!(writer.target.is_null());
        let names = fall_back! {
            PerfettoPbMsgWriterUpdateWritePtr(P) -> ();
            PerfettoPbMsgWriterNewChunk(P) -> ();
            PerfettoPbMsgWriterAppendBytesSlowpath(P, P, usize) -> ();
            PerfettoPbMsgWriterReserveBytesSlowpath(P, usize) -> ();
            PerfettoPbMsgWriterAnnotatePatch(P, P) -> P;
            PerfettoDsSetSupportsTracingV2(P, bool) -> bool;
            PerfettoDsOnFlushArgsGetReason(P) -> u64;
        };
        names.into_iter().chain(["PerfettoDsTracerImplPacketBegin"])
    }
}
