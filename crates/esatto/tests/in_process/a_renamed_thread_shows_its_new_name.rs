use std::time::{Duration, Instant};

use super::{read, record};

esatto::categories! { static WORK = "renamed"; }

/// More than the 100 ms after which a sequence looks at its thread's name again.
const LONG_ENOUGH: Duration = Duration::from_millis(300);

/// Repeats one call site for some time, before and after the thread gets the name. Returns the
/// thread's id.
fn repeat(name: &str, pause: Duration, mut event: impl FnMut()) -> u32 {
    for is_renamed in [false, true] {
        if is_renamed {
            std::fs::write("/proc/thread-self/comm", name).expect("renames the thread");
        }
        let begin = Instant::now();
        let mut next = begin;
        while next < begin + LONG_ENOUGH {
            event();
            next += pause;
            match next.checked_duration_since(Instant::now()) {
                Some(rest) if pause > Duration::from_millis(1) => std::thread::sleep(rest),
                _ => while Instant::now() < next {},
            }
        }
    }
    let link = std::fs::read_link("/proc/thread-self").expect("names the thread");
    link.file_name().and_then(|tid| tid.to_str()?.parse().ok()).expect("is a number")
}

/// The fast path writes all of these events but the first.
#[cfg(target_os = "linux")]
#[test]
fn even_if_it_only_repeats_one_event() {
    let session = record(&WORK);
    let (seldom, often) = (Duration::from_millis(5), Duration::from_micros(5));
    let new_names = std::thread::scope(|scope| {
        let begin = |name: &'static str, pause, event: fn()| {
            std::thread::Builder::new()
                .name("old name".into())
                .spawn_scoped(scope, move || (repeat(name, pause, event), name))
                .expect("starts")
        };
        let threads = [
            begin("seldom", seldom, || esatto::instant!(WORK, "seldom")),
            begin("seldom, value", seldom, || esatto::instant!(WORK, "seldom with a value", value = 7_u64)),
            begin("often", often, || esatto::instant!(WORK, "often")),
            begin("often, value", often, || esatto::instant!(WORK, "often with a value", value = 7_u64)),
        ];
        threads.map(|thread| thread.join().expect("does not panic"))
    });
    let trace = read(session);
    for (tid, name) in new_names {
        let thread = trace.threads.iter().find(|thread| u64::from(tid) == thread.tid as u64).expect("is described");
        assert_eq!(thread.name.as_deref(), Some(name));
    }
}
