//! The lock of a thread's state (`sys/biased.rs`), which the control thread takes while the thread is elsewhere.

use core::mem;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::check;
use crate::order::{Promise, Rule, Without};
use crate::sys::biased::Biased;

/// Loom notices if two threads are in it at once, or if one does not see what another did before.
type Value = UnsafeCell<u32>;

fn increment(value: &mut Value) {
    // SAFETY: loom looks.
    value.with_mut(|value| unsafe { *value += 1 });
}

/// Inside once.
fn once(biased: &Biased<Value>) {
    // SAFETY: only the owner calls this.
    let mut entered = unsafe { biased.enter() }.expect("it is not inside");
    increment(entered.get());
}

/// Inside once, in three steps between which there is no guard.
fn in_steps(biased: &Biased<Value>) {
    // SAFETY: only the owner calls this.
    mem::forget(unsafe { biased.enter() }.expect("it is not inside"));
    // SAFETY: the guard was forgotten.
    let mut entered = unsafe { biased.entered() };
    increment(entered.get());
    mem::forget(entered);
    // SAFETY: as above.
    drop(unsafe { biased.entered() });
}

/// The owner is inside twice, while `others` threads try to hold the value.
fn owner_and(others: usize, inside: fn(&Biased<Value>)) {
    let biased = Arc::new(Biased::new(Value::new(0)));
    let handles: Vec<_> = (0..others)
        .map(|_| {
            let biased = Arc::clone(&biased);
            thread::spawn(move || {
                let mut held = 0;
                Biased::hold_all([&*biased].into_iter(), |value| {
                    increment(value);
                    held += 1;
                });
                held
            })
        })
        .collect();
    for _ in 0..2 {
        inside(&biased);
    }
    let held: u32 = handles.into_iter().map(|handle| handle.join().expect("it ends")).sum();
    // SAFETY: only this thread enters.
    let mut entered = unsafe { biased.enter() }.expect("it is not inside");
    let total = entered.get().with(|value| {
        // SAFETY: loom looks.
        unsafe { *value }
    });
    assert_eq!(total, 2 + held);
}

pub(crate) fn nobody_is_inside_together() {
    check(3, || owner_and(1, once));
}

pub(crate) fn nobody_is_inside_together_of_three() {
    check(2, || owner_and(2, once));
}

pub(crate) fn nobody_is_inside_while_the_owner_stays() {
    check(3, || owner_and(1, in_steps));
}

/// The system has no barrier any more: owners are told to make them.
pub(crate) fn nobody_is_inside_together_when_the_systems_barrier_is_lost() {
    let _without = Without::new(Promise::To(Rule::SystemsBarrier));
    check(3, || owner_and_two_looks(once));
}

/// The owner is inside twice, while another thread tries twice: the first time it tells the owner.
fn owner_and_two_looks(inside: fn(&Biased<Value>)) {
    let biased = Arc::new(Biased::new(Value::new(0)));
    let other = {
        let biased = Arc::clone(&biased);
        thread::spawn(move || {
            let mut held = 0;
            for _ in 0..2 {
                Biased::hold_all([&*biased].into_iter(), |value| {
                    increment(value);
                    held += 1;
                });
            }
            held
        })
    };
    for _ in 0..2 {
        inside(&biased);
    }
    let held: u32 = other.join().expect("it ends");
    // SAFETY: only this thread enters.
    let mut entered = unsafe { biased.enter() }.expect("it is not inside");
    let total = entered.get().with(|value| {
        // SAFETY: loom looks.
        unsafe { *value }
    });
    assert_eq!(total, 2 + held);
}
