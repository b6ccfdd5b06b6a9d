//! Whatever happens to a guard, a wrong length never gets out, and messages before and after it are whole.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use esatto_protozero::{Delegate, Fields, Filled, HeapBuffer, Message, ScatteredBuffer, ScatteredWriter, StaticBuffer};
use proptest::prelude::*;

use crate::chunks::Chunks;

/// A message of nested messages, one of which may be leaked.
#[derive(Clone, Debug)]
struct Plan {
    payloads: Vec<Vec<usize>>,
    leak: Option<(usize, usize)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let payloads = prop::collection::vec(prop::collection::vec(0..150usize, 1..6), 1..6);
    (payloads, prop::option::of((0..5usize, 0..5usize))).prop_map(|(payloads, leak)| Plan { payloads, leak })
}

/// Writes the plan; true if a guard was leaked.
fn write(mut root: Message<'_>, plan: &Plan) -> bool {
    let mut leaked = false;
    for (i, chain) in plan.payloads.iter().enumerate() {
        leaked |= nest(&mut root, chain, plan.leak.filter(|leak| leak.0 == i).map(|leak| leak.1));
        root.varint(3, i as u64);
    }
    leaked
}

fn nest(parent: &mut Message<'_>, chain: &[usize], leak: Option<usize>) -> bool {
    let Some((&len, rest)) = chain.split_first() else { return false };
    let mut message = parent.begin(1);
    message.bytes(2, &vec![7; len]);
    let leaked = nest(&mut message, rest, leak.and_then(|leak| leak.checked_sub(1)));
    message.varint(4, 4);
    if leak == Some(0) {
        core::mem::forget(message);
    }
    leaked || leak == Some(0)
}

/// What the plan says if nothing is leaked.
fn check(bytes: &[u8], plan: &Plan) {
    let mut fields = Fields::new(bytes);
    for (i, chain) in plan.payloads.iter().enumerate() {
        let mut inner = fields.next().expect("a chain").as_bytes();
        for (level, &len) in chain.iter().enumerate() {
            let mut fields = Fields::new(inner);
            assert_eq!(fields.next().expect("a payload").as_bytes(), vec![7; len]);
            if level + 1 < chain.len() {
                inner = fields.next().expect("the next level").as_bytes();
            }
            assert_eq!(fields.next().expect("a number").as_u64(), 4);
            assert!(fields.rest().is_empty());
        }
        assert_eq!(fields.next().expect("an index").as_u64(), i as u64);
    }
    assert!(fields.rest().is_empty());
}

proptest! {
    #[test]
    fn a_message_with_a_leaked_guard_is_not_there(plans in prop::collection::vec(plan(), 1..5)) {
        let mut heap = HeapBuffer::new();
        let mut fixed = StaticBuffer::<10_000>::new();
        let mut scattered = ScatteredBuffer::with_slices(16, 64);
        let (mut whole, mut dropped) = (Vec::new(), 0);
        for plan in &plans {
            let leaked = write(heap.message(), plan);
            write(fixed.message(), plan);
            write(scattered.message(), plan);
            if leaked { dropped += 1 } else { whole.push(plan) }
        }
        prop_assert_eq!([heap.dropped(), fixed.dropped(), scattered.dropped()], [dropped; 3]);
        let expected = Plan { payloads: whole.iter().flat_map(|plan| plan.payloads.clone()).collect(), leak: None };
        // Indices begin anew in each message.
        let check_all = |mut bytes: &[u8]| {
            for plan in &whole {
                let len = message_len(bytes, 2 * plan.payloads.len());
                check(&bytes[..len], plan);
                bytes = &bytes[len..];
            }
            assert!(bytes.is_empty());
        };
        check_all(heap.as_slice());
        check_all(fixed.as_slice());
        check_all(&scattered.to_vec());
        prop_assert_eq!(expected.payloads.is_empty(), heap.is_empty());
    }

    #[test]
    fn parts_of_a_void_message_that_are_gone_are_abandoned(size in 16..80usize, plans in prop::collection::vec(plan(), 1..5)) {
        let mut writer = ScatteredWriter::new(Chunks::of(size));
        let mut dropped = 0;
        for plan in &plans {
            dropped += usize::from(write(writer.message(), plan));
        }
        prop_assert_eq!(writer.dropped(), dropped);
        let chunks = writer.into_delegate();
        prop_assert!(chunks.abandoned <= dropped);
        for (bytes, filled) in chunks.raw.iter().zip(&chunks.filled) {
            prop_assert!(filled.unfinished.is_none_or(|begin| begin <= bytes.len()));
        }
    }

    #[test]
    fn without_buffers_a_message_is_void_and_the_next_may_be_written(size in 16..80usize, left in 0..6usize, plan in plan()) {
        let plan = Plan { leak: None, ..plan };
        let mut writer = ScatteredWriter::new(Chunks { left, ..Chunks::of(size) });
        write(writer.message(), &plan);
        if writer.dropped() == 0 {
            check(&writer.into_delegate().stitched(), &plan);
            return Ok(());
        }
        prop_assert_eq!(writer.delegate().left, 0);
        writer.delegate_mut().left = usize::MAX;
        write(writer.message(), &plan);
        prop_assert_eq!(writer.dropped(), 1);
        let chunks = writer.into_delegate();
        let begun = chunks.filled.iter().rposition(|filled| filled.unfinished.is_some_and(|begin| begin > 0));
        prop_assert!(begun.is_none_or(|_| chunks.abandoned <= 1));
    }
}

/// The length of the first `fields` fields.
fn message_len(bytes: &[u8], count: usize) -> usize {
    let mut fields = Fields::new(bytes);
    (0..count).for_each(|_| assert!(fields.next().is_some()));
    fields.offset()
}

#[test]
fn a_panic_in_a_message_leaves_the_buffer_usable() {
    let mut buffer = HeapBuffer::new();
    buffer.message().varint(1, 1);
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let mut message = buffer.message();
        let mut nested = message.begin(2);
        nested.varint(3, 3);
        panic!("on purpose");
    }));
    assert!(panics.is_err());
    // The guards were dropped, so the message is short but well formed.
    buffer.message().varint(4, 4);
    assert_eq!(buffer.as_slice(), b"\x08\x01\x12\x02\x18\x03\x20\x04");
}

/// Panics when the second buffer is asked for.
struct Panics(usize);

impl Delegate for Panics {
    type Buffer = Box<[u8]>;

    fn acquire(&mut self, _min_len: usize) -> Option<Box<[u8]>> {
        self.0 += 1;
        assert_ne!(self.0, 2, "on purpose");
        Some(vec![0; 32].into())
    }

    fn release(&mut self, _buffer: Box<[u8]>, _filled: Filled) {}

    fn defer_length(&mut self, _offset: usize) -> Option<u32> {
        None
    }

    fn fill_length(&mut self, _number: u32, _bytes: [u8; 4]) {
        unreachable!("no length was asked for");
    }
}

#[test]
fn a_delegate_that_panics_voids_the_message() {
    let mut writer = ScatteredWriter::new(Panics(0));
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let mut message = writer.message();
        let mut nested = message.begin(1);
        let mut inner = nested.begin(2);
        inner.bytes(3, &[0; 100]);
    }));
    assert!(panics.is_err());
    assert_eq!(writer.dropped(), 1);
    writer.message().begin(1).bytes(2, &[0; 100]);
    assert_eq!(writer.dropped(), 1);
}

#[test]
fn a_parent_may_be_written_after_a_panic_in_its_child() {
    let mut writer = ScatteredWriter::new(Panics(0));
    let mut message = writer.message();
    let panics = catch_unwind(AssertUnwindSafe(|| message.begin(1).begin(2).bytes(3, &[0; 100])));
    assert!(panics.is_err());
    message.bytes(4, &[0; 100]);
    message.begin(5).varint(6, 6);
    drop(message);
    assert_eq!(writer.dropped(), 1);
}
