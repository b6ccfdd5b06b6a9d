//! Every exported function returns its fallback if a panic happens in it.

#![allow(
    clashing_extern_declarations,
    improper_ctypes,
    reason = "all pointers have one type here, and point to types that C does not see"
)]

use core::ffi::c_void;

use crate::abi::numbers::status;
use crate::abi::{LlIterator, PbDecoderField, Timestamp, TracerIterator};
use crate::panic_guard::Fallback;
#[cfg(not(perfetto_v59))]
use crate::v58 as version;
#[cfg(perfetto_v59)]
use crate::v59 as version;

pub(crate) type P = *mut c_void;

impl Fallback for usize {
    const FALLBACK: Self = 0;
}

/// Calls functions with null and 0. A panic happens in each of them. Checks that they return null
/// and 0, and returns their names.
macro_rules! fall_back {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {{
        unsafe extern "C" {
            $(fn $name($(_: $argument),*) -> $result;)*
        }
        $(
            let result = $crate::panic_guard::test_panic::in_guard_of(|| {
                // SAFETY: it has this type, and does nothing with its arguments.
                unsafe { $name($(<$argument as $crate::panic_guard::Fallback>::FALLBACK),*) }
            });
            assert_eq!(result, <$result as $crate::panic_guard::Fallback>::FALLBACK, stringify!($name));
        )*
        [$(stringify!($name)),*]
    }};
}

pub(crate) use fall_back;

#[rustfmt::skip]
fn with_comparable_results() -> impl Iterator<Item = &'static str> {
    fall_back! {
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

/// The functions whose results cannot be compared with `==`.
fn with_other_results() -> impl Iterator<Item = &'static str> {
    use crate::panic_guard::test_panic::in_guard_of;
    unsafe extern "C" {
        fn PerfettoTeCategoryImplGetEnabled(_: P) -> *const bool;
        fn PerfettoDsImplTraceIterateBegin(_: P) -> TracerIterator;
        fn PerfettoTeLlImplBegin(_: P, _: Timestamp) -> LlIterator;
        fn PerfettoPbDecoderParseField(_: P) -> PbDecoderField;
        fn PerfettoPbDecoderSkipField(_: P) -> u32;
        fn PerfettoDsGetTimestamp() -> Timestamp;
        fn PerfettoTeGetTimestamp() -> Timestamp;
    }
    // SAFETY: they have these types, and do nothing with their arguments. The flag lives for ever.
    unsafe {
        assert!(!*in_guard_of(|| PerfettoTeCategoryImplGetEnabled(P::FALLBACK)));
        assert!(in_guard_of(|| PerfettoDsImplTraceIterateBegin(P::FALLBACK)).tracer.is_null());
        assert!(in_guard_of(|| PerfettoTeLlImplBegin(P::FALLBACK, Timestamp::FALLBACK)).ds.tracer.is_null());
        assert_eq!(in_guard_of(|| PerfettoPbDecoderParseField(P::FALLBACK)).status, status::ERROR);
        assert_eq!(in_guard_of(|| PerfettoPbDecoderSkipField(P::FALLBACK)), status::ERROR);
        assert_eq!(in_guard_of(|| PerfettoDsGetTimestamp()).value, 0);
        assert_eq!(in_guard_of(|| PerfettoTeGetTimestamp()).value, 0);
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
fn every_exported_function_stops_panics() {
    let mut tested: Vec<&str> =
        with_comparable_results().chain(with_other_results()).chain(version::tests::guarded()).collect();
    tested.sort_unstable();
    let mut expected = version::tests::exported();
    expected.sort_unstable();
    assert_eq!(tested, expected);
}
