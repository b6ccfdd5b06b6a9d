//! A program's own delegate. Messages that are larger than a packet go through a channel in packets
//! of 64 bytes while they are being written. The receiver puts them together.
//!
//! Run with `cargo run -p esatto-protozero --example chunks_over_a_channel`.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use esatto_protozero::{Delegate, Fields, Filled, ScatteredWriter, View, kind};

const PACKET_SIZE: usize = 64;

/// Packet of the channel.
enum Packet {
    /// Bytes of messages, and the number of lengths in them that are not known yet.
    Data { bytes: Vec<u8>, missing: usize },
    /// Length in an earlier packet.
    Length { packet: usize, offset: usize, bytes: [u8; 4] },
}

/// Sender: sends a packet as soon as it is full, and lengths when they are known.
struct Outbox {
    channel: Sender<Packet>,
    sent: usize,
    /// Packet and offset of each length to come, by number.
    lengths: Vec<(usize, usize)>,
    missing: usize,
}

impl Delegate for Outbox {
    type Buffer = Vec<u8>;

    fn acquire(&mut self, _min_len: usize) -> Option<Vec<u8>> {
        Some(vec![0; PACKET_SIZE])
    }

    fn release(&mut self, mut bytes: Vec<u8>, filled: Filled) {
        bytes.truncate(filled.used);
        let missing = std::mem::take(&mut self.missing);
        // A receiver that has ended gets nothing.
        let _ = self.channel.send(Packet::Data { bytes, missing });
        self.sent += 1;
    }

    fn defer_length(&mut self, offset: usize) -> Option<u32> {
        self.missing += 1;
        self.lengths.push((self.sent, offset));
        u32::try_from(self.lengths.len() - 1).ok()
    }

    fn fill_length(&mut self, number: u32, bytes: [u8; 4]) {
        let (packet, offset) = self.lengths[number as usize];
        let _ = self.channel.send(Packet::Length { packet, offset, bytes });
    }
}

/// Receiver: passes packets on in order, when all their lengths have arrived.
fn receive(channel: &Receiver<Packet>) -> Vec<u8> {
    let (mut whole, mut first) = (Vec::new(), 0);
    let mut waiting: VecDeque<(Vec<u8>, usize)> = VecDeque::new();
    for packet in channel {
        match packet {
            Packet::Data { bytes, missing } => waiting.push_back((bytes, missing)),
            Packet::Length { packet, offset, bytes } => {
                let (waiting, missing) = &mut waiting[packet - first];
                waiting[offset..offset + 4].copy_from_slice(&bytes);
                *missing -= 1;
            }
        }
        while waiting.front().is_some_and(|(_, missing)| *missing == 0) {
            whole.extend(waiting.pop_front().into_iter().flat_map(|(bytes, _)| bytes));
            first += 1;
        }
    }
    assert!(waiting.is_empty(), "every length was told");
    whole
}

fn main() {
    let (sender, receiver) = channel();
    let reader = thread::spawn(move || receive(&receiver));

    let outbox = Outbox { channel: sender, sent: 0, lengths: Vec::new(), missing: 0 };
    let mut writer = ScatteredWriter::new(outbox);
    for chapter in 1..=3 {
        // message Chapter { uint32 number = 1; repeated string lines = 2; }, as field 1 of a book
        let mut book = writer.message();
        let mut message = book.begin(1);
        message.varint(1, chapter);
        for line in 1..=chapter * 10 {
            message.string(2, &format!("line {line} of chapter {chapter}"));
        }
    }
    let sent = writer.delegate().sent;
    drop(writer); // sends what is left, and closes the channel

    let bytes = reader.join().expect("the reader does not panic");
    for chapter in Fields::new(&bytes) {
        let chapter = View::new(chapter.as_bytes());
        let lines = chapter.repeated::<kind::Bytes>(2).count();
        println!("chapter {:?}: {lines} lines", chapter.last::<kind::Uint32>(1).unwrap_or_default());
    }
    println!("{} bytes in {} packets, the first sent long before its message ended", bytes.len(), sent + 1);
    assert_eq!(Fields::new(&bytes).count(), 3);
}
