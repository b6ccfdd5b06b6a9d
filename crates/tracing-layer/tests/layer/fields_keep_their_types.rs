use std::fmt;

use tracing::field::Empty;

use super::{arguments, parts, show, with_each};

#[derive(Debug)]
struct Failure(Option<Box<Self>>);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "outer" } else { "inner" })
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.as_deref().map(|cause| cause as _)
    }
}

#[test]
fn in_spans() {
    let work = || {
        let error = Failure(Some(Box::new(Failure(None))));
        let error: &(dyn std::error::Error + 'static) = &error;
        let list = [1, 2];
        let span = tracing::info_span!(
            "all", unsigned = 7_u64, signed = -7_i64, float = 0.5, yes = true, text = "grün", debug = ?list, display = %list.len(), error
        );
        span.in_scope(|| ());
        drop(span);
        let span = tracing::info_span!("more than fit", a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = "x".repeat(300));
        span.in_scope(|| ());
    };
    with_each(work, |front, trace| {
        let (_, slices) = parts(trace, "all");
        let expected = [
            "unsigned: 7u",
            "signed: -7i",
            "float: 0.5f",
            "yes: true",
            "text: \"grün\"",
            "debug: \"[1, 2]\"",
            "display: \"2\"",
            "error: \"outer: inner\"",
        ];
        assert_eq!(arguments(trace, slices[0]), expected, "{front:?}");
        let (_, slices) = parts(trace, "more than fit");
        assert_eq!(arguments(trace, slices[0]).len(), 7, "{front:?}");
        assert_eq!(trace.events[slices[0].event].categories, [module_path!()], "{front:?}");
    });
}

#[test]
fn if_they_are_recorded_later() {
    let work = || {
        let span = tracing::info_span!("later", first = 1, second = Empty, third = Empty, fourth = Empty);
        span.record("third", "before");
        span.in_scope(|| {
            span.record("second", 2);
            span.record("fourth", 0.25);
        });
    };
    with_each(work, |front, trace| {
        let (_, slices) = parts(trace, "later");
        assert_eq!(
            arguments(trace, slices[0]),
            ["first: 1i", "third: \"before\"", "second: 2i", "fourth: 0.25f"],
            "{front:?}"
        );
    });
}

#[test]
fn in_events_with_a_message() {
    let work = || {
        tracing::info!(size = 3, name = "x", "read {} bytes", 3);
        tracing::info!(message = 7);
    };
    with_each(work, |front, trace| {
        let annotations = |event: usize| -> Vec<_> {
            trace.events[event].annotations.iter().map(|a| format!("{}: {}", a.name, show(&a.value))).collect()
        };
        assert_eq!(annotations(0), ["message: \"read 3 bytes\"", "size: 3i", "name: \"x\""], "{front:?}");
        assert_eq!(annotations(1), ["message: 7i"], "{front:?}");
    });
}

#[test]
fn and_a_long_text_is_cut_with_a_mark() {
    let long = "ü".repeat(40_000);
    let whole = "x".repeat(64 << 10);
    let work = || tracing::info!(text = long, display = %long, debug = ?long, whole);
    with_each(work, |front, trace| {
        let texts = trace.events[0].annotations.iter().map(|annotation| show(&annotation.value));
        let texts: Vec<String> = texts.collect();
        for text in &texts[..3] {
            assert!(text.len() < 70_000 && text.ends_with("ü… (cut)\""), "{front:?}: {} bytes", text.len());
        }
        assert_eq!(texts[3], format!("\"{whole}\""), "{front:?}");
    });
}

#[test]
fn even_if_their_formatting_is_traced() {
    struct Nosy;
    impl fmt::Debug for Nosy {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            tracing::info_span!("inside", value = "inner").in_scope(|| tracing::info!("formatting"));
            f.write_str("nosy")
        }
    }
    let work = || tracing::info_span!("outside", before = 1, value = ?Nosy, after = 2).in_scope(|| ());
    with_each(work, |front, trace| {
        let (_, slices) = parts(trace, "outside");
        assert_eq!(arguments(trace, slices[0]), ["before: 1i", "value: \"nosy\"", "after: 2i"], "{front:?}");
    });
}
