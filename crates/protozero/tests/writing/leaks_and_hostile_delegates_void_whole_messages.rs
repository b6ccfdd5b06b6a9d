//! Random messages into delegates that have no memory, give too little, lie about it or panic, with
//! guards leaked anywhere. A message is whole or missing. Buffers are inline arrays, which move if
//! the writer is careless.

use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use esatto_protozero::{
    Delegate, Filled, HeapBuffer, Message, ScatteredBuffer, ScatteredWriter, SliceBuffer, StaticBuffer,
};
use proptest::prelude::*;

use crate::any_message_into_any_buffers::{Op, ops, shortest, write};

/// Message, and the treatment of its guards.
#[derive(Clone, Debug)]
struct Plan {
    ops: Vec<Op>,
    /// Guards to leak, counted as they are begun.
    leaks: Vec<usize>,
    leak_root: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    // Chains with nothing between lengths, up to and beyond the depth at which slots are elsewhere.
    let depth = prop_oneof![4 => Just(0usize), 2 => 1..6usize, 1 => 12..20usize];
    let leaks = prop_oneof![2 => Just(vec![]), 2 => prop::collection::vec(0..24usize, 1..4)];
    (ops(), depth, leaks, prop::bool::weighted(0.1)).prop_map(|(ops, depth, leaks, leak_root)| {
        let ops = (0..depth).fold(ops, |inner, _| vec![Op::Nested(1, inner)]);
        Plan { ops, leaks, leak_root }
    })
}

impl Plan {
    /// Writes the message. Returns true if a guard was leaked.
    fn write(&self, mut root: Message<'_>) -> bool {
        let mut begun = 0;
        let leaked = self.nested(&mut root, &self.ops, &mut begun);
        if self.leak_root {
            core::mem::forget(root);
        }
        leaked || self.leak_root
    }

    fn nested(&self, message: &mut Message<'_>, ops: &[Op], begun: &mut usize) -> bool {
        let mut leaked = false;
        for op in ops {
            let Op::Nested(id, inner) = op else {
                write(message, core::slice::from_ref(op));
                continue;
            };
            let number = *begun;
            *begun += 1;
            let mut guard = message.begin(*id);
            leaked |= self.nested(&mut guard, inner, begun);
            if self.leaks.contains(&number) {
                core::mem::forget(guard);
                leaked = true;
            }
        }
        leaked
    }
}

const LARGEST: usize = 64;

/// Memory inside of the value. It shows `len` bytes, or a different number each time.
struct Buffer {
    bytes: [u8; LARGEST],
    len: usize,
    lies: bool,
    asked: usize,
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.asked += 1;
        if self.lies {
            self.len = (self.len * 7 + self.asked) % (LARGEST + 1);
            if self.len == 13 {
                panic_silently();
            }
        }
        &mut self.bytes[..self.len]
    }
}

/// Panics without a message, unless that would end the process.
fn panic_silently() {
    if !std::thread::panicking() {
        resume_unwind(Box::new("on purpose"));
    }
}

/// Faults of a delegate.
#[derive(Clone, Debug, Default)]
struct Faults {
    lies: bool,
    /// Calls in which it panics.
    panics: Vec<usize>,
}

#[derive(Debug)]
struct Hostile {
    /// Lengths of the buffers that it provides in turn; `None` if it has none.
    lens: Vec<Option<usize>>,
    faults: Faults,
    acquired: usize,
    calls: usize,
    /// Whole content, and the offset of the unfinished message in it.
    content: Vec<u8>,
    unfinished: Option<usize>,
    /// Offsets of lengths in `content`, and which of them are missing.
    lengths: Vec<(usize, bool)>,
    /// Offsets in the buffer that is released next.
    announced: Vec<usize>,
}

impl Hostile {
    fn new(lens: Vec<Option<usize>>, faults: Faults) -> Self {
        Self {
            lens,
            faults,
            acquired: 0,
            calls: 0,
            content: vec![],
            unfinished: None,
            lengths: vec![],
            announced: vec![],
        }
    }

    fn call(&mut self) {
        self.calls += 1;
        if self.faults.panics.contains(&self.calls) {
            panic_silently();
        }
    }

    fn is_honest(&self) -> bool {
        !self.faults.lies && self.faults.panics.is_empty()
    }
}

impl Delegate for Hostile {
    type Buffer = Buffer;

    fn acquire(&mut self, _min_len: usize) -> Option<Buffer> {
        self.call();
        let len = self.lens[self.acquired % self.lens.len()];
        self.acquired += 1;
        Some(Buffer { bytes: [0xee; LARGEST], len: len?, lies: self.faults.lies, asked: 0 })
    }

    fn release(&mut self, buffer: Buffer, filled: Filled) {
        self.call();
        let announced = core::mem::take(&mut self.announced);
        if !self.is_honest() {
            return;
        }
        assert!(filled.used <= buffer.len);
        let start = self.content.len();
        self.content.extend_from_slice(&buffer.bytes[..filled.used]);
        for offset in announced {
            assert!(offset + 4 <= filled.used, "a length is in what is released");
            assert_eq!(buffer.bytes[offset..offset + 4], [0; 4], "an open length is zero");
            self.lengths.push((start + offset, true));
        }
        self.unfinished = match filled.unfinished {
            Some(0) => Some(self.unfinished.unwrap_or(start)),
            begin => begin.map(|begin| start + begin),
        };
    }

    fn defer_length(&mut self, offset: usize) -> Option<u32> {
        self.call();
        self.announced.push(offset);
        Some((self.lengths.len() + self.announced.len() - 1) as u32)
    }

    fn fill_length(&mut self, number: u32, bytes: [u8; 4]) {
        self.call();
        if !self.is_honest() {
            return;
        }
        let (offset, missing) = &mut self.lengths[number as usize];
        assert!(core::mem::take(missing), "a length is told once");
        self.content[*offset..*offset + 4].copy_from_slice(&bytes);
    }

    fn abandon(&mut self) {
        self.call();
        if self.is_honest() {
            let begin = self.unfinished.take().expect("something is unfinished");
            self.content.truncate(begin);
            // They will never be needed.
            self.lengths.iter_mut().filter(|(offset, _)| *offset >= begin).for_each(|length| length.1 = false);
        }
    }
}

/// Checks that `bytes` are these messages, one after the other.
fn check(mut bytes: &[u8], messages: &[&Plan]) {
    for plan in messages {
        let mut one = HeapBuffer::with_capacity(1 << 16);
        write(&mut one.message(), &plan.ops);
        assert_eq!(shortest(&plan.ops, &mut bytes), shortest(&plan.ops, &mut one.as_slice()));
    }
    assert!(bytes.is_empty(), "{} bytes too many", bytes.len());
}

/// Moves a value to another address.
fn moved<T>(value: T) -> Box<T> {
    Box::new(value)
}

fn lens() -> impl Strategy<Value = Vec<Option<usize>>> {
    let len = prop_oneof![6 => (16..=LARGEST).prop_map(Some), 2 => (0..16usize).prop_map(Some), 1 => Just(None)];
    prop::collection::vec(prop_oneof![3 => (9..=LARGEST).prop_map(Some), 1 => len], 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_message_is_whole_or_void(lens in lens(), plans in prop::collection::vec((plan(), any::<bool>()), 1..6)) {
        let mut writer = Box::new(ScatteredWriter::new(Hostile::new(lens, Faults::default())));
        let (mut whole, mut before) = (vec![], 0);
        for (plan, flush) in &plans {
            let leaked = plan.write(writer.message());
            let dropped = writer.dropped() - before;
            prop_assert!(dropped == 1 || (dropped == 0 && !leaked));
            before += dropped;
            if dropped == 0 {
                whole.push(plan);
            }
            // The writer is moved in memory.
            writer = moved(*writer);
            if *flush {
                writer.flush();
            }
        }
        let delegate = writer.into_delegate();
        check(&delegate.content, &whole);
        prop_assert!(delegate.lengths.iter().all(|(_, missing)| !missing));
    }

    #[test]
    fn a_buffer_holds_whole_messages(plans in prop::collection::vec(plan(), 1..6)) {
        let (mut heap, mut scattered) = (HeapBuffer::new(), ScatteredBuffer::with_slices(16, 40));
        let mut fixed = Box::new(StaticBuffer::<300>::new());
        let mut memory = [0xee; 200];
        let mut lent = SliceBuffer::new(&mut memory);
        let (mut whole, mut whole_fixed, mut whole_lent) = (vec![], vec![], vec![]);
        for plan in &plans {
            if !plan.write(heap.message()) {
                whole.push(plan);
            }
            plan.write(scattered.message());
            let before = [fixed.dropped(), lent.dropped()];
            plan.write(fixed.message());
            plan.write(lent.message());
            if fixed.dropped() == before[0] {
                whole_fixed.push(plan);
            }
            if lent.dropped() == before[1] {
                whole_lent.push(plan);
            }
            fixed = moved(*fixed);
        }
        prop_assert_eq!([heap.dropped(), scattered.dropped()], [plans.len() - whole.len(); 2]);
        check(heap.as_slice(), &whole);
        check(&scattered.to_vec(), &whole);
        check(fixed.as_slice(), &whole_fixed);
        check(lent.as_slice(), &whole_lent);
        check(&heap.into_vec(), &whole);
    }

    #[test]
    fn a_delegate_may_panic_and_lie(
        lens in lens(),
        lies in any::<bool>(),
        panics in prop::collection::vec(1..30usize, 0..4),
        plans in prop::collection::vec((plan(), any::<bool>()), 1..6),
    ) {
        let mut writer = ScatteredWriter::new(Hostile::new(lens, Faults { lies, panics }));
        for (plan, catch_inside) in &plans {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let mut root = writer.message();
                if *catch_inside {
                    // The outer guards continue.
                    let mut nested = root.begin(1);
                    let panicked = catch_unwind(AssertUnwindSafe(|| plan.write(nested.begin(1))));
                    write(&mut nested, &plan.ops);
                    drop(nested);
                    root.varint(1, 1);
                    if let Err(panic) = panicked {
                        core::mem::forget(root);
                        resume_unwind(panic);
                    }
                } else {
                    plan.write(root);
                }
            }));
            if panicked.is_err() {
                let _ = catch_unwind(AssertUnwindSafe(|| writer.flush()));
            }
        }
        while catch_unwind(AssertUnwindSafe(|| writer.flush())).is_err() {}
    }
}

#[test]
fn a_leak_below_lengths_without_content_is_void() {
    for depth in 1..=20 {
        fn nest(message: &mut Message<'_>, depth: usize) {
            let mut nested = message.begin(1);
            if depth > 1 {
                nest(&mut nested, depth - 1);
            } else {
                core::mem::forget(nested.begin(1));
            }
        }
        let mut buffer = StaticBuffer::<256>::new();
        nest(&mut buffer.message(), depth);
        assert_eq!((buffer.dropped(), buffer.len()), (1, 0));
        let mut scattered = ScatteredBuffer::with_slices(16, 16);
        nest(&mut scattered.message(), depth);
        scattered.message().varint(1, 1);
        assert_eq!((scattered.dropped(), scattered.to_vec()), (1, b"\x08\x01".to_vec()));
    }
}

#[test]
fn leaks_in_deep_messages_do_not_use_up_memory() {
    fn nest(message: &mut Message<'_>, depth: usize) {
        if depth > 0 {
            return nest(&mut message.begin(1), depth - 1);
        }
        for _ in 0..200 {
            core::mem::forget(message.begin(1));
            message.varint(2, 2);
        }
    }
    for depth in [15, 16, 17, 30] {
        let mut buffer = HeapBuffer::new();
        nest(&mut buffer.message(), depth);
        assert_eq!((buffer.dropped(), buffer.len()), (1, 0));
        assert!(buffer.into_vec().capacity() <= 4096);
        let mut writer = ScatteredWriter::new(Hostile::new(vec![Some(64)], Faults::default()));
        nest(&mut writer.message(), depth);
        assert!(writer.into_delegate().acquired <= 4);
    }
}
