use std::sync::atomic::{AtomicU32, Ordering};

use super::{read, record};

esatto::categories! { static LAZY = "lazy"; }

static EVALUATED: AtomicU32 = AtomicU32::new(0);

fn argument() -> u32 {
    EVALUATED.fetch_add(1, Ordering::Relaxed)
}

fn trace() {
    let _slice = esatto::slice!(LAZY, "slice", argument = argument());
    esatto::instant!(LAZY, "instant", |event| event.annotate("argument", argument()));
}

#[test]
fn they_are_evaluated_once_while_it_is_on() {
    trace();
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 0);
    assert!(!LAZY.is_enabled());
    let session = record(&LAZY);
    assert!(LAZY.is_enabled());
    trace();
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 2);
    let trace_read = read(session);
    assert_eq!(trace_read.slices.len(), 2);
    assert!(!LAZY.is_enabled());
    trace();
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 2);
}
