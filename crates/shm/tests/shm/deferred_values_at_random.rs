//! Random packets with and without deferred values, which come in any order, between leaks, flushes
//! and lack of memory. The readable packets are those that were written.

use core::mem;

use esatto_protozero::Fields;
use esatto_shm::{Deferred, DeferredValue, TraceWriter};

use crate::{reading::Reader, rig::Rig};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn len(&mut self) -> usize {
        let most = [4, 60, 200, 3000, 6000][self.below(5)];
        self.below(most)
    }
}

struct Play {
    random: Random,
    rig: Rig,
    writer: TraceWriter,
    reader: Reader,
    open: Vec<(Deferred, DeferredValue)>,
    /// Numbers of the packets that ended without a leak.
    ended: Vec<u64>,
    next: u64,
}

impl Play {
    fn new(seed: u64, size: usize) -> Self {
        let rig = Rig::new(size);
        let writer = rig.writer();
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Self { random, rig, writer, reader: Reader::default(), open: Vec::new(), ended: Vec::new(), next: 1 }
    }

    /// Writes a packet: its number, then fields of as many such bytes. Their lengths come from the
    /// message or later.
    fn packet(&mut self) {
        let number = self.next;
        self.next += 1;
        let (mut fields, fill) = (self.random.below(5), number as u8);
        self.writer.begin_packet();
        self.writer.message().unwrap().varint(1, number);
        let leak = self.random.below(12) == 0;
        while fields > 0 {
            fields -= 1;
            let content = vec![fill; self.random.len()];
            if self.random.below(2) == 0 {
                let mut message = self.writer.message().unwrap();
                let mut nested = message.begin(2);
                nested.raw(&content);
                continue;
            }
            self.writer.message().unwrap().raw(&[0x12]);
            let late = if self.random.below(2) == 0 {
                self.writer.reserve_deferred()
            } else {
                self.writer.message().unwrap().raw(b"????");
                self.writer.defer_bytes(4)
            };
            match late {
                Some(late) => self.open.push((late, DeferredValue::length(content.len()).unwrap())),
                // Torn: the four bytes are in two chunks. A wrong packet is dropped.
                None => fields = usize::MAX,
            }
            self.writer.message().unwrap().raw(&content);
            if fields == usize::MAX || (leak && fields == 1) {
                return;
            }
            self.fill(4);
        }
        if !leak {
            self.writer.end_packet();
            self.ended.push(number);
        }
    }

    /// Tells some of the values, in any order.
    fn fill(&mut self, of: usize) {
        while !self.open.is_empty() && self.random.below(of) == 0 {
            let index = self.random.below(self.open.len());
            let (late, value) = self.open.swap_remove(index);
            self.writer.fill_deferred(late, value);
        }
    }

    /// Returns the numbers of the readable packets. All of them are whole.
    fn read(&self) -> Vec<u64> {
        let number_of = |packet: &Vec<u8>| {
            let mut fields = Fields::new(packet);
            let (mut number, mut is_marked) = (0, false);
            for field in fields.by_ref() {
                match field.id {
                    1 => number = field.as_u64(),
                    2 => assert!(field.as_bytes().iter().all(|b| *b == number as u8)),
                    42 => is_marked = true,
                    87 => {}
                    id => panic!("field {id}"),
                }
            }
            assert!(!fields.is_malformed() && (number > 0 || is_marked));
            number
        };
        // A flush marks a loss in a packet of its own.
        self.reader.packets().iter().map(number_of).filter(|number| *number > 0).collect()
    }

    fn run(mut self, steps: usize) -> (Vec<u64>, Vec<u64>) {
        for _ in 0..steps {
            match self.random.below(10) {
                0 => self.writer.flush(),
                1..=3 => self.fill(2),
                4 | 5 => self.reader.receive(&self.rig),
                _ => self.packet(),
            }
        }
        for (late, value) in mem::take(&mut self.open) {
            self.writer.fill_deferred(late, value);
        }
        drop(mem::replace(&mut self.writer, TraceWriter::null()));
        self.reader.receive(&self.rig);
        (self.read(), self.ended)
    }
}

#[test]
fn with_enough_memory_every_packet_that_was_ended_is_read() {
    for seed in 0..150 {
        let (read, ended) = Play::new(seed, 1 << 21).run(60);
        assert_eq!(read, ended, "seed {seed}");
    }
}

#[test]
fn with_too_little_memory_readable_packets_are_whole_and_in_order() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..150 {
        let (read, ended) = Play::new(seed, 16384).run(60);
        let mut rest = ended.iter();
        assert!(read.iter().all(|number| rest.any(|n| n == number)), "seed {seed}");
        kept += read.len();
        lost += ended.len() - read.len();
    }
    assert!(lost > 100 && kept > 100, "{lost} lost, {kept} kept");
}
