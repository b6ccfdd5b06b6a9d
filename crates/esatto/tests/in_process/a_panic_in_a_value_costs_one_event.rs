use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use esatto::{AnnotationWriter, Value};

use super::{read, record};

esatto::categories! { static PANICS = "panics"; }

struct Shy;

impl fmt::Debug for Shy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("half a wo")?;
        panic!("not now");
    }
}

/// A value that traces while it is traced.
struct Nested;

impl Value for Nested {
    fn write(&self, out: AnnotationWriter<'_>) {
        esatto::instant!(PANICS, "inner");
        out.text("outer");
    }
}

#[test]
fn the_thread_and_its_names_stay_usable() {
    let session = record(&PANICS);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        esatto::instant!(PANICS, "panics", first = esatto::debug(Shy), second = 2);
    }));
    assert!(panicked.is_err(), "the program's panic is the program's");
    for _ in 0..2 {
        // With the names that the other event was about to define.
        esatto::instant!(PANICS, "after", first = 1, second = esatto::interned("text"));
    }
    esatto::instant!(PANICS, "panics", second = Nested);
    let trace = read(session);
    assert!(trace.problems.is_empty(), "{:?}", trace.problems);
    let names: Vec<_> = trace.events.iter().map(|e| e.name.as_deref().expect("a name")).collect();
    assert_eq!(names, ["after", "after", "panics"], "and nothing from inside of a trace point");
    assert!(trace.events.iter().flat_map(|e| &e.annotations).all(|a| !a.name.is_empty()));
}

#[test]
fn long_texts_are_cut_off() {
    esatto::categories! { static LONG = "long"; }
    struct Endless;
    impl fmt::Display for Endless {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            loop {
                f.write_str("ü and so on, ")?;
            }
        }
    }
    let session = record(&LONG);
    esatto::instant!(LONG, "endless", text = esatto::display(Endless), after = 1);
    let trace = read(session);
    let esatto_trace::AnnotationValue::String(text) = &trace.events[0].annotations[0].value else { panic!("no text") };
    assert!(text.len() <= 64 * 1024 && text.len() > 60 * 1024);
    assert_eq!(trace.events[0].annotations.len(), 2);
}
