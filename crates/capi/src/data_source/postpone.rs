//! Stops and flushes that the program completes later.

use std::sync::Arc;

use esatto::{Flush, Stop, raw};

use super::instance::{FlushArgs, Instance, StopArgs};
use crate::ffi::{Mut, Owned};
use crate::panic_guard::guard_uncancelled;

/// `PerfettoDsAsyncStopper`.
struct AsyncStopper {
    stop: Stop,
    instance: Arc<Instance>,
    process: u32,
}

/// `PerfettoDsAsyncFlusher`.
struct AsyncFlusher(Flush);

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsOnStopArgsPostpone(args: Mut<'_, StopArgs>) -> Owned<AsyncStopper> {
    guard_uncancelled(|| {
        let Some(args) = args.get() else { return Owned::NULL };
        // SAFETY: the instance runs the callback that has these arguments.
        let instance = unsafe { &*args.instance };
        let shared = instance.registered.source.instance(instance.slot as usize);
        match (shared, args.stop.take()) {
            (Some(instance), Some(stop)) => Owned::new(AsyncStopper { stop, instance, process: raw::forks() }),
            (_, stop) => {
                args.stop = stop;
                Owned::NULL
            }
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsStopDone(stopper: Owned<AsyncStopper>) {
    guard_uncancelled(|| {
        let Some(stopper) = stopper.take() else { return };
        if stopper.process != raw::forks() {
            // It is the parent's, and another thread of the parent may have locked its mutexes. It
            // is leaked.
            core::mem::forget(stopper);
            return;
        }
        let AsyncStopper { stop, instance, .. } = *stopper;
        let stop = instance.let_end(stop);
        // In this order, so that the control thread destroys the instance before it tells the
        // session.
        drop(instance);
        drop(stop);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsOnFlushArgsPostpone(args: Mut<'_, FlushArgs>) -> Owned<AsyncFlusher> {
    guard_uncancelled(|| {
        let flush = args.get().and_then(|args| args.flush.take());
        flush.map_or(Owned::NULL, |flush| Owned::new(AsyncFlusher(flush)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsFlushDone(flusher: Owned<AsyncFlusher>) {
    guard_uncancelled(|| {
        if let Some(flusher) = flusher.take() {
            flusher.0.complete();
        }
    })
}
