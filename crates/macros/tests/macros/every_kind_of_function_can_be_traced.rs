#![allow(clippy::unused_self, reason = "methods are what is tested")]

use super::{arguments, outline, record, record_named};

esatto::categories! { static KINDS = "every kind of function"; }

/// The macro keeps its docs and attributes.
#[must_use]
#[inline]
#[esatto::trace(KINDS)]
fn plain() -> u32 {
    #![allow(clippy::needless_return, reason = "early returns end the slice, too")]
    fn item_at_the_beginning() -> u32 {
        7
    }
    return item_at_the_beginning();
}

#[esatto::trace(KINDS, name = "another name")]
fn renamed() {}

#[esatto::trace(KINDS)]
fn r#match() {}

#[esatto::trace(KINDS)]
fn generic<'a, T, const N: usize>(values: &'a [T; N]) -> &'a T
where
    T: Clone + PartialEq + 'a,
{
    &values[0]
}

#[esatto::trace(KINDS)]
fn impl_trait(values: impl IntoIterator<Item = u32>) -> impl Iterator<Item = u32> {
    values.into_iter().map(|value| value + 1)
}

#[esatto::trace(KINDS)]
extern "C" fn foreign(a: u32, b: u32, c: u32) -> u32 {
    a + b + c
}

#[esatto::trace(KINDS)]
fn never() -> ! {
    panic!("as planned")
}

struct Thing {
    value: u32,
}

trait Trait {
    fn required(&self) -> u32;

    #[esatto::trace(KINDS)]
    fn provided(&self) -> u32 {
        self.required() + 1
    }
}

impl Trait for Thing {
    #[esatto::trace(KINDS)]
    fn required(&self) -> u32 {
        self.value
    }
}

#[esatto::trace(KINDS, args(all), skip(secret))]
impl Thing {
    const fn new(value: u32) -> Self {
        Self { value }
    }

    fn by_reference(&mut self, added: u32, secret: &str) -> &mut u32 {
        self.value += added + u32::from(secret.is_empty());
        &mut self.value
    }

    #[esatto::trace(KINDS, name = "own", args(self.value = self.value))]
    fn with_its_own(self) -> u32 {
        self.value
    }
}

#[test]
fn a_call_is_a_slice_from_entry_to_return() {
    let trace = record(&KINDS, || {
        assert_eq!(plain(), 7);
        assert_eq!(of_one_line(), 5);
        renamed();
        r#match();
        assert_eq!(*generic(&[1, 2]), 1);
        assert!(impl_trait([1, 2]).eq([2, 3]));
        assert_eq!(foreign(1, 2, 3), 6);
        let mut thing = Thing::new(3);
        assert_eq!(thing.provided(), 4);
        assert_eq!(*thing.by_reference(1, "…"), 4);
        assert_eq!(thing.with_its_own(), 4);
        assert!(std::panic::catch_unwind(|| never()).is_err());
        renamed();
    });
    let expected = [
        "plain",
        "of_one_line",
        "another name",
        "match",
        "generic",
        "impl_trait",
        "foreign",
        "provided",
        "  required",
        "Thing::by_reference",
        "own",
        "never",
        "another name",
    ];
    assert_eq!(outline(&trace), expected);
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()), "each ends, by unwinding, too");
    assert_eq!(arguments(&trace, "Thing::by_reference"), ["added: 1"]);
    assert_eq!(arguments(&trace, "own"), ["self.value: 4"]);
}

mod inner {
    #[esatto::trace]
    pub(super) fn without_a_category() {}
}

#[test]
fn the_default_category_has_the_name_of_the_module() {
    let category = concat!(module_path!(), "::inner");
    let trace = record_named(category, inner::without_a_category);
    assert_eq!(outline(&trace), ["without_a_category"]);
    assert_eq!(trace.events[0].categories, [category]);
}

static PUMP: esatto::Track = esatto::Track::with_name("pump", 3);

#[esatto::trace(KINDS, track = &PUMP)]
fn on_a_track() {}

#[esatto::trace(KINDS, track = &esatto::Track::dynamic(format!("pump {number}"), 3), ret)]
fn on_a_track_made_for_the_call(number: u32) -> u32 {
    number
}

#[test]
fn a_call_can_be_recorded_on_a_track() {
    let trace = record(&KINDS, || {
        on_a_track();
        on_a_track_made_for_the_call(7);
    });
    let track_of = |name: &str| {
        let slice = trace.slices.iter().find(|slice| slice.name.as_deref() == Some(name)).expect("is there");
        slice.track_name.as_deref()
    };
    assert_eq!(track_of("on_a_track"), Some("pump"));
    assert_eq!(track_of("on_a_track_made_for_the_call"), Some("pump 7"));
}

// Compiles without a warning about braces.
#[rustfmt::skip]
#[esatto::trace(KINDS)]
fn of_one_line() -> u32 { 5 }
