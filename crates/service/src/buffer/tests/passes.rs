//! Reading in several batches, while the buffer is written to.

use super::*;

impl Bench {
    /// Continues where the last batch ended.
    fn resume(&mut self, limit: usize) -> String {
        self.buffer.resume_read();
        self.go_on(limit)
    }
}

#[test]
fn a_batch_continues_where_the_last_one_ended() {
    let mut bench = Bench::ring();
    bench.put("w2.0[a b] w3.0[c]");
    assert_eq!(bench.resume(1), "a");
    bench.put("w1.0[x]");
    assert_eq!(bench.resume(2), "b c", "what comes behind the pass has to wait");
    assert_eq!(bench.resume(usize::MAX), "x", "nothing is left when the pass ends");
    assert_eq!(bench.go_on(1), "");
}

#[test]
fn a_new_read_begins_with_the_first_sequence() {
    let mut bench = Bench::ring();
    bench.put("w2.0[a b]");
    assert_eq!(bench.read_some(1), "a");
    bench.put("w1.0[x]");
    assert_eq!(bench.read(), "x b");
}

#[test]
fn a_writer_that_is_faster_than_the_reader_does_not_keep_the_pass_for_itself() {
    let mut bench = Bench::ring();
    bench.put("w1.0[a] w1.1[a] w2.0[b] p2w1.0[c]");
    let mut read = String::new();
    for id in 2..8 {
        read += &bench.resume(1);
        bench.put(&format!("w1.{id}[a]"));
    }
    assert_eq!(read, "aabcaa");
}

#[test]
fn writers_that_had_one_id_come_in_their_order() {
    let mut bench = Bench::ring();
    bench.put("w2.0[c] w1.0[a]");
    bench.buffer.renew_writer(ProducerId(1), WriterId(1));
    bench.put("w1.0[b]");
    bench.buffer.retire_producer(ProducerId(1));
    bench.put("w1.0[x] w2.0[y]");
    assert_eq!(bench.read(), "a b x c y");
}

#[test]
fn a_clone_that_is_taken_within_a_pass_begins_with_the_first_sequence() {
    let mut bench = Bench::ring();
    bench.put("w2.0[a b] w3.0[c]");
    assert_eq!(bench.read_some(2), "a b");
    bench.put("w1.0[x]");
    let mut clone = Bench { buffer: bench.buffer.try_clone().unwrap() };
    assert_eq!(clone.resume(usize::MAX), "x c");
    assert_eq!(bench.resume(usize::MAX), "c x");
}

#[test]
fn a_patch_is_noticed_without_a_new_pass() {
    let mut bench = Bench::ring();
    bench.put("w1.0![a b>] w1.1[<c] w2.0[d e]");
    assert_eq!(bench.resume(2), "a d");
    bench.unblock(1, 0);
    assert_eq!(bench.resume(usize::MAX), "e bc");
}
