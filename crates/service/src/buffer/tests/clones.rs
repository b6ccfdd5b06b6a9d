//! Rows 113-118: clones.

use super::*;

#[test]
fn row_113_read_packets_are_not_in_the_clone() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.1[b] w1.2[c]");
    assert_eq!(bench.read_some(2), "a b");
    let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert_eq!(clone.read(), "c");
    assert_eq!(clone.read(), "");
    assert_eq!(bench.read(), "c", "the source is unaffected");
}

#[test]
fn row_114_before_and_after_a_missing_chunk() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.2[c]");
    let mut early = Bench { buffer: bench.buffer.try_clone().unwrap() };
    bench.put("w1.1[b]");
    let mut late = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert_eq!(early.read(), "a c=3");
    assert_eq!(late.read(), "a b c");
}

#[test]
fn row_115_patches_are_in_the_clone() {
    let mut bench = Bench::ring();
    bench.raw_flags(1, 0, 1, record::NEEDS_PATCHING, &[6, b'a', 0, 0, 0, 0, b'a']);
    let mut early = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert!(bench.patch(1, 0, 2, b"aaaa", false));
    let mut late = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert_eq!(late.read_bytes(), [b"aaaaaa"]);
    assert_eq!(early.read(), "", "it can never be patched any more");
}

#[test]
fn row_116_a_wrapped_buffer() {
    let mut bench = Bench::ring();
    for id in 0..16 {
        bench.put(&format!("w1.{id}[a400]"));
    }
    let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert_eq!(clone.read(), bench.read());
}

#[test]
fn row_117_a_clone_is_as_large_as_the_stored_chunks() {
    let mut bench = Bench::new(1024 * 1024);
    bench.put("w1.0[a]");
    assert!(bench.buffer.try_clone().unwrap().data.capacity() < 4096);
}

#[test]
fn row_118_nothing_goes_into_a_clone() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a]");
    let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
    // A debug build panics, to tell the developer. In each build the buffer does not change.
    let before = clone.buffer.data.clone();
    let refuses = |write: &mut dyn FnMut(&mut Bench), clone: &mut Bench| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write(clone)));
        assert_eq!(result.is_err(), cfg!(debug_assertions));
        assert_eq!(clone.buffer.data, before);
    };
    refuses(
        &mut |clone| {
            clone.put("w1.1[b]");
        },
        &mut clone,
    );
    refuses(&mut |clone| clone.raw(2, 0, 1, &[0]), &mut clone);
    // Patches come from producers, which may name the buffer of a clone.
    assert!(!clone.patch(1, 0, 1, b"xxxx", false));
    assert_eq!(clone.buffer.data, before);
    assert_eq!(clone.buffer.stats().patches_failed, 1);
    bench.unblock(1, 0);
    assert_eq!(bench.read(), "a");
    assert_eq!(clone.read(), "");
}
