use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Yield, block_on, outline, record};

esatto::categories! { static DROPS = "destructors of parameters"; }

/// Records its drop as a slice.
#[derive(Debug)]
struct Part(&'static str);

impl Drop for Part {
    fn drop(&mut self) {
        let _drop = esatto::slice!(DROPS, dynamic: self.0);
    }
}

const A: Part = Part("a");
const B: Part = Part("b");
const C: Part = Part("c");
const D: Part = Part("d");

/// Returns the outline of the thread, without the lanes of async functions.
fn on_the_thread(work: impl FnOnce()) -> Vec<String> {
    let trace = record(&DROPS, work);
    assert!(trace.slices.iter().all(|slice| slice.duration_ns.is_some()));
    let on_lanes = trace.slices.iter().filter(|slice| slice.tid.is_none()).count();
    let mut lines = outline(&trace);
    // The slice of a lifetime begins just before the first poll.
    for _ in 0..on_lanes {
        let lane = lines.windows(2).position(|pair| pair[0] == pair[1]).expect("a poll follows");
        lines.remove(lane);
    }
    lines
}

/// Two functions with the same body, of which the first one is traced.
macro_rules! twins {
    ($([$($option:tt)*])? fn $traced:ident, $plain:ident ($($parameters:tt)*) $(-> $output:ty)? $body:block) => {
        #[esatto::trace(DROPS, name = "call" $($($option)*)?)]
        fn $traced($($parameters)*) $(-> $output)? $body
        fn $plain($($parameters)*) $(-> $output)? {
            let _call = esatto::slice!(DROPS, "before the drops");
            $body
        }
    };
}

twins! { fn names, plain_names(_a: Part, b: Part) { drop(b); let _c = C; } }
twins! { fn mutable, plain_mutable(mut a: Part, b: Part) -> Part { assert_ne!(a.0, b.0); a = C; a } }
twins! { fn unused, plain_unused(_: Part, _: Part) {} }
twins! { fn parts, plain_parts((_a, _): (Part, Part), (_, _d): (Part, Part)) {} }
twins! { [, ret] fn returned, plain_returned(_a: Part, _: Part) -> u32 { 1 } }
twins! { [, args(x.0 = x.0)] fn recorded, plain_recorded((x, _): (Part, Part), _c: Part) -> &'static str { x.0 } }

#[test]
fn they_are_in_the_slice_in_their_order() {
    let compare = |traced: &mut dyn FnMut(), plain: &mut dyn FnMut()| {
        let expected: Vec<String> = on_the_thread(plain)
            .into_iter()
            .filter(|line| line.trim() != "before the drops")
            .map(|line| line.trim().to_owned())
            .collect();
        let found = on_the_thread(traced);
        assert_eq!(found[0], "call");
        let inside: Vec<String> =
            found[1..].iter().map(|line| line.strip_prefix("  ").unwrap_or("outside").into()).collect();
        assert_eq!(inside, expected, "{found:?}");
        assert!(!expected.is_empty());
    };
    compare(&mut || names(A, B), &mut || plain_names(A, B));
    compare(&mut || std::mem::forget(mutable(A, B)), &mut || std::mem::forget(plain_mutable(A, B)));
    compare(&mut || unused(A, B), &mut || plain_unused(A, B));
    compare(&mut || parts((A, B), (C, D)), &mut || plain_parts((A, B), (C, D)));
    compare(&mut || assert_eq!(returned(A, B), 1), &mut || assert_eq!(plain_returned(A, B), 1));
    compare(&mut || assert_eq!(recorded((A, B), C), "a"), &mut || assert_eq!(plain_recorded((A, B), C), "a"));
}

struct Connection {
    name: &'static str,
    _first: Part,
    _second: Part,
}

impl Connection {
    const fn new() -> Self {
        Self { name: "connection", _first: A, _second: B }
    }
}

trait Close: Sized {
    fn close_by_default(self, last: Part) {
        let _last = last;
    }
    fn close_it(self) -> Self;
}

#[esatto::trace(DROPS)]
impl Close for Connection {
    fn close_by_default(self, _last: Part) {}
    fn close_it(mut self) -> Self {
        self.name = "closed";
        self
    }
}

#[esatto::trace(DROPS)]
impl Connection {
    fn close(self) {}

    fn name(self, _: Part) -> &'static str {
        self.name
    }

    fn shared(self: Arc<Self>) -> usize {
        Arc::strong_count(&self)
    }

    async fn close_later(self) {}

    async fn wait(self, first: Part, (_second, _): (Part, u32), _: Part) -> Result<&'static str, std::fmt::Error> {
        let _ = &first;
        Yield::default().await;
        std::fmt::Write::write_str(&mut String::new(), "")?;
        Ok(self.name)
    }
}

#[test]
fn self_is_dropped_in_the_slice() {
    let calls = || {
        Connection::new().close();
        assert_eq!(Connection::new().name(C), "connection");
        assert_eq!(Arc::new(Connection::new()).shared(), 1);
        Connection::new().close_by_default(D);
        let open = Connection::new().close_it();
        assert_eq!(open.name, "closed");
        std::mem::forget(open);
    };
    let expected = [
        "Connection::close",
        "  a",
        "  b",
        "Connection::name",
        "  c",
        "  a",
        "  b",
        "Connection::shared",
        "  a",
        "  b",
        "Connection::close_by_default",
        "  d",
        "  a",
        "  b",
        "Connection::close_it",
    ];
    assert_eq!(on_the_thread(calls), expected);
}

#[test]
fn async_functions_drop_them_in_their_last_poll() {
    let later = || block_on(Connection::new().close_later());
    assert_eq!(on_the_thread(later), ["Connection::close_later", "  a", "  b"]);
    let wait = || assert_eq!(block_on(Connection::new().wait(C, (D, 1), Part("e"))), Ok("connection"));
    let expected = ["Connection::wait", "Connection::wait", "  e", "  d", "  c", "  a", "  b"];
    assert_eq!(on_the_thread(wait), expected);
}

#[esatto::trace(DROPS)]
fn last_value(values: Mutex<Vec<u32>>) -> Option<u32> {
    values.lock().unwrap_or_else(PoisonError::into_inner).last().copied()
}

#[esatto::trace(DROPS)]
fn unit_at_the_end(values: Mutex<Vec<u32>>) {
    values.lock().unwrap_or_else(PoisonError::into_inner).push(1)
}

#[esatto::trace(DROPS)]
fn longest<'a>(texts: Vec<&'a str>, #[allow(unused_variables)] unused: Part) -> &'a str {
    texts.into_iter().max_by_key(|text| text.len()).unwrap_or_default()
}

#[esatto::trace(DROPS)]
fn chosen(number: u32, _part: Part) -> Box<dyn Fn(&str) -> usize> {
    if number == 0 {
        return Box::new(|text| text.len());
    }
    Box::new(move |text| text.len() + number as usize)
}

#[esatto::trace(DROPS)]
fn measure(_part: Part) -> impl Fn(&str) -> usize {
    |text| text.len()
}

#[esatto::trace(DROPS)]
fn fails(_part: Part) -> u32 {
    panic!("as planned")
}

#[esatto::trace(DROPS, track = &line.0)]
fn on_its_own_track(line: (esatto::Track, Part)) {
    let _ = &line;
}

#[esatto::trace(DROPS, ret)]
fn with_conditions(#[cfg(windows)] _absent: Part, #[cfg(not(windows))] _a: Part) -> u32 {
    1
}

#[esatto::trace(DROPS)]
fn with_a_condition(#[cfg(windows)] _absent: Part, #[cfg(not(windows))] _a: Part) {}

#[esatto::trace(DROPS)]
async fn text_of(value: Mutex<String>) -> usize {
    value.lock().unwrap_or_else(PoisonError::into_inner).len()
}

#[test]
fn functions_compile_as_before() {
    let trace = record(&DROPS, || {
        assert_eq!(last_value(Mutex::new(vec![1, 2])), Some(2));
        unit_at_the_end(Mutex::new(vec![]));
        let text = String::from("longest");
        assert_eq!(longest(vec!["short", &text], A), "longest");
        assert_eq!(chosen(0, A)("one") + chosen(1, A)("two"), 7);
        assert_eq!(measure(A)("four"), 4);
        assert!(std::panic::catch_unwind(|| fails(B)).is_err());
        on_its_own_track((esatto::Track::with_name("own", 1), A));
        assert_eq!(with_conditions(A), 1);
        with_a_condition(A);
        assert_eq!(block_on(text_of(Mutex::new("six".into()))), 3);
        fn is_send(future: impl Future<Output = usize> + Send) -> impl Future<Output = usize> {
            future
        }
        assert_eq!(block_on(is_send(text_of(Mutex::new(String::new())))), 0);
    });
    let lines = outline(&trace);
    let fails = lines.iter().position(|line| line == "fails").expect("is there");
    assert_eq!(lines[fails + 1], "  b", "also by unwinding");
}
