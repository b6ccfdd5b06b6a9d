//! Models of the lock of a thread's state, which the control thread takes while the thread is
//! outside.

use core::mem;

use esatto_instances::{BiasedLock, Requirement, Rule, Without};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::check;

/// Loom notices if two threads are in it at once, or if one does not see an earlier change of
/// another.
type Value = UnsafeCell<u32>;

fn increment(value: &mut Value) {
    // SAFETY: loom checks it.
    value.with_mut(|value| unsafe { *value += 1 });
}

/// Enters once.
fn once(lock: &BiasedLock<Value>) {
    // SAFETY: only the owner calls this.
    let mut entered = unsafe { lock.enter() }.expect("it is not inside");
    increment(&mut entered);
}

/// Enters once, in three steps without a guard between them.
fn in_steps(lock: &BiasedLock<Value>) {
    // SAFETY: only the owner calls this.
    mem::forget(unsafe { lock.enter() }.expect("it is not inside"));
    // SAFETY: the guard was forgotten.
    let mut entered = unsafe { lock.entered() };
    increment(&mut entered);
    mem::forget(entered);
    // SAFETY: as above.
    drop(unsafe { lock.entered() });
}

/// The owner enters twice, while `others` threads try to hold the value.
fn owner_and(others: usize, inside: fn(&BiasedLock<Value>)) {
    let lock = Arc::new(BiasedLock::new(Value::new(0)));
    let handles: Vec<_> = (0..others)
        .map(|_| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                let mut held = 0;
                BiasedLock::hold_all([&*lock].into_iter(), |value| {
                    increment(value);
                    held += 1;
                });
                held
            })
        })
        .collect();
    for _ in 0..2 {
        inside(&lock);
    }
    let held: u32 = handles.into_iter().map(|handle| handle.join().expect("it ends")).sum();
    // SAFETY: only this thread enters.
    let entered = unsafe { lock.enter() }.expect("it is not inside");
    let total = entered.with(|value| {
        // SAFETY: loom checks it.
        unsafe { *value }
    });
    assert_eq!(total, 2 + held);
}

pub(crate) fn two_threads_never_have_the_value_together() {
    check(3, || owner_and(1, once));
}

pub(crate) fn three_threads_never_have_the_value_together() {
    check(2, || owner_and(2, once));
}

pub(crate) fn an_owner_that_stays_inside_keeps_the_value() {
    check(3, || owner_and(1, in_steps));
}

/// The system has lost its barrier: other threads tell owners to make barriers.
pub(crate) fn a_lost_barrier_keeps_threads_apart() {
    let _without = Without::new(Requirement::Rule(Rule::SystemsBarrier));
    check(3, || owner_and_two_tries(once));
}

/// The owner enters twice, while another thread tries twice: the first time it tells the owner.
fn owner_and_two_tries(inside: fn(&BiasedLock<Value>)) {
    let lock = Arc::new(BiasedLock::new(Value::new(0)));
    let other = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            let mut held = 0;
            for _ in 0..2 {
                BiasedLock::hold_all([&*lock].into_iter(), |value| {
                    increment(value);
                    held += 1;
                });
            }
            held
        })
    };
    for _ in 0..2 {
        inside(&lock);
    }
    let held: u32 = other.join().expect("it ends");
    // SAFETY: only this thread enters.
    let entered = unsafe { lock.enter() }.expect("it is not inside");
    let total = entered.with(|value| {
        // SAFETY: loom checks it.
        unsafe { *value }
    });
    assert_eq!(total, 2 + held);
}
