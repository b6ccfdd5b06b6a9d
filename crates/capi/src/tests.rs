//! Every exported function meets a panic and has done nothing.

#![allow(
    clashing_extern_declarations,
    improper_ctypes,
    reason = "pointers of all kinds are one type here, and point to what C does not see"
)]

use core::ffi::c_void;

use crate::abi::{LlIterator, PbDecoderField, Timestamp, TracerIterator, status};
use crate::flavour;
use crate::guard::Nothing;

pub(crate) type P = *mut c_void;

impl Nothing for usize {
    const NOTHING: Self = 0;
}

/// Calls functions with null and 0, each with a panic under way, and sees that they return that.
macro_rules! all_do_nothing {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {{
        unsafe extern "C" {
            $(fn $name($(_: $argument),*) -> $result;)*
        }
        $(
            // SAFETY: it has such arguments, and does nothing with them.
            let result = $crate::guard::planted::in_a(|| unsafe { $name($(<$argument as $crate::guard::Nothing>::NOTHING),*) });
            assert_eq!(result, <$result as $crate::guard::Nothing>::NOTHING, stringify!($name));
        )*
        [$(stringify!($name)),*]
    }};
}

pub(crate) use all_do_nothing;

#[rustfmt::skip]
fn simple_ones() -> impl Iterator<Item = &'static str> {
    all_do_nothing! {
        PerfettoDsFlushDone(P) -> ();
        PerfettoDsGetDefaultClockId() -> u32;
        PerfettoDsImplCreate() -> P;
        PerfettoDsImplGetCustomTls(P, P, u32) -> P;
        PerfettoDsImplGetIncrementalState(P, P, u32) -> P;
        PerfettoDsImplGetInstanceLocked(P, u32) -> P;
        PerfettoDsImplRegister(P, P, P, usize) -> bool;
        PerfettoDsImplReleaseInstanceLocked(P, u32) -> ();
        PerfettoDsImplTraceIterateBreak(P, P) -> ();
        PerfettoDsImplTraceIterateNext(P, P) -> ();
        PerfettoDsImplUpdateDescriptor(P, P, usize) -> ();
        PerfettoDsOnFlushArgsPostpone(P) -> P;
        PerfettoDsOnStopArgsPostpone(P) -> P;
        PerfettoDsSetBufferExhaustedPolicy(P, u32) -> bool;
        PerfettoDsSetBufferExhaustedPolicyConfigurable(P, bool) -> bool;
        PerfettoDsSetCbUserArg(P, P) -> ();
        PerfettoDsSetOnClearIncr(P, P) -> ();
        PerfettoDsSetOnCreateIncr(P, P) -> ();
        PerfettoDsSetOnCreateTls(P, P) -> ();
        PerfettoDsSetOnDeleteIncr(P, P) -> ();
        PerfettoDsSetOnDeleteTls(P, P) -> ();
        PerfettoDsSetOnDestroyCallback(P, P) -> ();
        PerfettoDsSetOnFlushCallback(P, P) -> ();
        PerfettoDsSetOnSetupCallback(P, P) -> ();
        PerfettoDsSetOnStartCallback(P, P) -> ();
        PerfettoDsSetOnStopCallback(P, P) -> ();
        PerfettoDsStopDone(P) -> ();
        PerfettoDsTracerImplFlush(P, P, P) -> ();
        PerfettoDsTracerImplGetDropCount(P) -> u64;
        PerfettoDsTracerImplPacketEnd(P, P) -> ();
        PerfettoGetThreadIdImpl() -> i32;
        PerfettoHeapBufferCopyInto(P, P, P, usize) -> ();
        PerfettoHeapBufferCreate(P) -> P;
        PerfettoHeapBufferDestroy(P, P) -> ();
        PerfettoProducerActivateTriggers(P, u32) -> ();
        PerfettoProducerBackendInitArgsCreate() -> P;
        PerfettoProducerBackendInitArgsDestroy(P) -> ();
        PerfettoProducerBackendInitArgsSetMachineId(P, u32) -> ();
        PerfettoProducerBackendInitArgsSetShmemSizeHintKb(P, u32) -> ();
        PerfettoProducerInProcessInit(P) -> ();
        PerfettoProducerSystemInit(P) -> ();
        PerfettoTeCategoryImplCreate(P) -> P;
        PerfettoTeCategoryImplDestroy(P) -> ();
        PerfettoTeCategoryImplGetIid(P) -> u64;
        PerfettoTeCategoryImplSetCallback(P, P, P) -> ();
        PerfettoTeHlEmitImpl(P, i32, P, P) -> ();
        PerfettoTeInit() -> ();
        PerfettoTeLlImplBreak(P, P) -> ();
        PerfettoTeLlImplDynCatEnabled(P, u32, P) -> bool;
        PerfettoTeLlImplIntern(P, i32, P, usize, P) -> u64;
        PerfettoTeLlImplNext(P, Timestamp, P) -> ();
        PerfettoTeLlImplTrackSeen(P, u64) -> bool;
        PerfettoTePublishCategories() -> ();
        PerfettoTracingSessionDestroy(P) -> ();
        PerfettoTracingSessionFlushAsync(P, u32, P, P) -> ();
        PerfettoTracingSessionFlushBlocking(P, u32) -> bool;
        PerfettoTracingSessionInProcessCreate() -> P;
        PerfettoTracingSessionReadTraceBlocking(P, P, P) -> ();
        PerfettoTracingSessionSetStopCb(P, P, P) -> ();
        PerfettoTracingSessionSetup(P, P, usize) -> ();
        PerfettoTracingSessionStartAsync(P) -> ();
        PerfettoTracingSessionStartBlocking(P) -> ();
        PerfettoTracingSessionStopAsync(P) -> ();
        PerfettoTracingSessionStopBlocking(P) -> ();
        PerfettoTracingSessionSystemCreate() -> P;
    }
    .into_iter()
}

/// Those whose results cannot be compared.
fn others() -> impl Iterator<Item = &'static str> {
    use crate::guard::planted::in_a;
    unsafe extern "C" {
        fn PerfettoTeCategoryImplGetEnabled(_: P) -> *const bool;
        fn PerfettoDsImplTraceIterateBegin(_: P) -> TracerIterator;
        fn PerfettoTeLlImplBegin(_: P, _: Timestamp) -> LlIterator;
        fn PerfettoPbDecoderParseField(_: P) -> PbDecoderField;
        fn PerfettoPbDecoderSkipField(_: P) -> u32;
        fn PerfettoDsGetTimestamp() -> Timestamp;
        fn PerfettoTeGetTimestamp() -> Timestamp;
    }
    // SAFETY: they have such arguments, and do nothing with them; the flag lives for ever.
    unsafe {
        assert!(!*in_a(|| PerfettoTeCategoryImplGetEnabled(P::NOTHING)));
        assert!(in_a(|| PerfettoDsImplTraceIterateBegin(P::NOTHING)).tracer.is_null());
        assert!(in_a(|| PerfettoTeLlImplBegin(P::NOTHING, Timestamp::NOTHING)).ds.tracer.is_null());
        assert_eq!(in_a(|| PerfettoPbDecoderParseField(P::NOTHING)).status, status::ERROR);
        assert_eq!(in_a(|| PerfettoPbDecoderSkipField(P::NOTHING)), status::ERROR);
        assert_eq!(in_a(|| PerfettoDsGetTimestamp()).value, 0);
        assert_eq!(in_a(|| PerfettoTeGetTimestamp()).value, 0);
    }
    [
        "PerfettoTeCategoryImplGetEnabled",
        "PerfettoDsImplTraceIterateBegin",
        "PerfettoTeLlImplBegin",
        "PerfettoPbDecoderParseField",
        "PerfettoPbDecoderSkipField",
        "PerfettoDsGetTimestamp",
        "PerfettoTeGetTimestamp",
    ]
    .into_iter()
}

#[test]
fn every_exported_function_has_a_guard() {
    let mut tested: Vec<&str> = simple_ones().chain(others()).chain(flavour::tests::guarded()).collect();
    tested.sort_unstable();
    let mut expected = flavour::tests::exported();
    expected.sort_unstable();
    assert_eq!(tested, expected);
}
