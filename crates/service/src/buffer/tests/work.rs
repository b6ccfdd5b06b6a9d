//! Work that strangers can cause: a constant for each byte that they send, times a logarithm, in
//! any order.

use super::*;

/// Chunks of a hostile writer.
const CHUNKS: u32 = 4096;

/// Most work for a chunk without content, with any content of the buffer: records, comparisons in
/// lists of 2^17, entries moved.
const WORK_PER_CHUNK: u64 = 100;

fn header(writer: u16, chunk_id: u32, count: u16, flags: u8) -> ChunkHeader {
    ChunkHeader { writer_id: writer, chunk_id, count, flags }
}

/// Orders of the ids below [`CHUNKS`].
fn orders() -> Vec<(&'static str, Vec<u32>)> {
    let middle = |i: u32| if i % 2 == 0 { i / 2 } else { CHUNKS - 1 - i / 2 };
    let mut random: Vec<u32> = (0..CHUNKS).collect();
    let mut state = 1u32;
    for i in (1..CHUNKS).rev() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random.swap(i as usize, (state >> 8) as usize % (i as usize + 1));
    }
    vec![
        ("ascending", (0..CHUNKS).collect()),
        ("descending", (0..CHUNKS).rev().collect()),
        ("into the middle", (0..CHUNKS).map(middle).collect()),
        ("from the middle", (0..CHUNKS).rev().map(middle).collect()),
        ("bit-reversed", (0..CHUNKS).map(|i| i.reverse_bits() >> (32 - CHUNKS.ilog2())).collect()),
        ("random", random),
    ]
}

/// The work that something takes.
fn work_of(buffer: &mut CentralBuffer, action: impl FnOnce(&mut CentralBuffer)) -> u64 {
    let before = buffer.work();
    action(buffer);
    buffer.work() - before
}

fn copy(buffer: &mut CentralBuffer, producer: u16, header: ChunkHeader, payload: &[u8]) {
    let identity = Identity::default();
    buffer.copy_from(ProducerId(producer), identity, header, &payload, &mut Vec::new());
}

fn read(buffer: &mut CentralBuffer) -> usize {
    buffer.begin_read();
    let mut packets = 0;
    while buffer.next_packet().is_some() {
        packets += 1;
    }
    packets
}

#[test]
fn chunk_ids_may_come_in_any_order() {
    for (name, ids) in orders() {
        let mut buffer = CentralBuffer::new(1024, FillPolicy::Ring).unwrap();
        let mut most = 0;
        for &id in &ids {
            let work = work_of(&mut buffer, |buffer| copy(buffer, 1, header(1, id, 1, 0), b"\x04abcd"));
            most = most.max(work);
        }
        assert!(most <= WORK_PER_CHUNK, "{name}: {most} for one chunk");
        let again = work_of(&mut buffer, |buffer| {
            for &id in &ids {
                copy(buffer, 1, header(1, id, 1, 0), b"\x04abcd");
            }
        });
        assert!(again <= WORK_PER_CHUNK * u64::from(CHUNKS), "{name}: {again} for repetitions");
        let patched = work_of(&mut buffer, |buffer| {
            for &id in &ids {
                let patch = Patch { offset: 1, data: *b"wxyz" };
                assert!(buffer.patch(ProducerId(1), WriterId(1), id, [patch].into_iter(), false));
            }
        });
        assert!(patched <= WORK_PER_CHUNK * u64::from(CHUNKS), "{name}: {patched} for patches");
        buffer.assert_consistent();
        let read = work_of(&mut buffer, |buffer| assert_eq!(read(buffer), CHUNKS as usize));
        assert!(read <= WORK_PER_CHUNK * u64::from(CHUNKS), "{name}: {read} to read");
    }
}

#[test]
fn chunks_in_any_order_are_overwritten_in_linear_work() {
    for (name, ids) in orders() {
        let mut buffer = CentralBuffer::new(64, FillPolicy::Ring).unwrap();
        let work = work_of(&mut buffer, |buffer| {
            for round in 0..4 {
                for &id in &ids {
                    copy(buffer, 1, header(1, id + round * CHUNKS, 1, 0), b"\x04abcd");
                }
            }
        });
        buffer.assert_consistent();
        assert!(work <= 4 * WORK_PER_CHUNK * u64::from(CHUNKS), "{name}: {work}");
    }
}

/// Most work for a chunk that overwrites others, of which each may take 16 chunks along.
const WORK_TO_OVERWRITE: u64 = 500;

/// Copies chunks and returns the most work that one of them took.
fn most_work(buffer: &mut CentralBuffer, chunks: impl Iterator<Item = (ChunkHeader, &'static [u8])>) -> u64 {
    chunks.map(|(header, payload)| work_of(buffer, |buffer| copy(buffer, 1, header, payload))).max().unwrap()
}

#[test]
fn one_chunk_in_any_order_overwrites_few() {
    for (name, ids) in orders() {
        let mut buffer = CentralBuffer::new(64, FillPolicy::Ring).unwrap();
        let chunk = |id| (header(1, id, 1, 0), &b"\x04abcd"[..]);
        let most =
            most_work(&mut buffer, (0..4).flat_map(|round| ids.iter().map(move |id| chunk(id + round * CHUNKS))));
        buffer.assert_consistent();
        assert!(most <= WORK_TO_OVERWRITE, "{name}: {most} for one chunk");
        let (packets, stats) = (read(&mut buffer) as u64, buffer.stats());
        let lost = stats.chunks_overwritten + stats.chunks_discarded;
        assert_eq!(packets + lost, 4 * u64::from(CHUNKS), "{name}: nothing is lost uncounted");
    }
}

#[test]
fn one_chunk_overwrites_few_of_a_packet_over_all_chunks() {
    let mut buffer = CentralBuffer::new(64, FillPolicy::Ring).unwrap();
    let chunks = (0..2 * CHUNKS).map(|id| (header(1, id, 1, if id == 0 { 2 } else { 3 }), &b"\x04abcd"[..]));
    let most = most_work(&mut buffer, chunks);
    buffer.assert_consistent();
    assert!(most <= WORK_TO_OVERWRITE, "{most} for one chunk");
    copy(&mut buffer, 1, header(1, 2 * CHUNKS, 2, 1), b"\x01e\x04next");
    buffer.begin_read();
    let packet = buffer.next_packet().unwrap();
    let marked = loss::PRESENT | loss::OVERWRITE | loss::ORPHAN_CONTINUATION;
    assert_eq!((packet.size_bytes(), packet.loss), (4, marked));
}

#[test]
fn overwriting_empty_packets_does_not_visit_all_of_them() {
    let mut buffer = CentralBuffer::new(256, FillPolicy::Ring).unwrap();
    let zeros: &'static [u8] = &[0; 10_000];
    let mut chunks: Vec<(ChunkHeader, &'static [u8])> = vec![(header(1, 1000, 0, 0), b"")];
    chunks.extend((984..1000).map(|id| (header(1, id, 10_000, 0), zeros)));
    chunks.extend((0..20_000).map(|id| (header(2, id, 0, 0), &b""[..])));
    for (header, payload) in chunks {
        let work = work_of(&mut buffer, |buffer| copy(buffer, 1, header, payload));
        let most = WORK_TO_OVERWRITE + 2 * payload.len() as u64;
        assert!(work <= most, "{work} for a chunk of {} bytes", payload.len());
    }
}

#[test]
fn sequences_that_wait_cost_a_read_nothing() {
    let mut buffer = CentralBuffer::new(4096, FillPolicy::Ring).unwrap();
    for writer in 1..=10_000 {
        copy(&mut buffer, 1, header(writer, 0, 1, 6), b"\x04abcd");
    }
    assert_eq!(read(&mut buffer), 0);
    for id in 0..100 {
        copy(&mut buffer, 2, header(1, id, 1, 0), b"\x04abcd");
        let work = work_of(&mut buffer, |buffer| assert_eq!(read(buffer), 1));
        assert!(work <= WORK_PER_CHUNK, "{work} beside those that wait");
    }
    let work = work_of(&mut buffer, |buffer| {
        buffer.begin_read();
        for id in 100..200 {
            copy(buffer, 2, header(1, id, 1, 0), b"\x04abcd");
            buffer.resume_read();
            assert!(buffer.next_packet().is_some());
        }
    });
    assert!(work <= 2 * 100 * WORK_PER_CHUNK, "{work} in batches");
}

/// A packet of which one chunk after the other arrives is not put together from its beginning each
/// time.
#[test]
fn a_packet_that_never_ends_is_looked_at_once() {
    let mut buffer = CentralBuffer::new(1024, FillPolicy::Ring).unwrap();
    copy(&mut buffer, 1, header(1, 0, 1, 2), b"\x04abcd");
    for id in 1..CHUNKS {
        let payload: &[u8] = if id % 2 == 0 { b"\x04abcd" } else { b"" };
        copy(&mut buffer, 1, header(1, id, (id % 2 == 0).into(), 3), payload);
        let work = work_of(&mut buffer, |buffer| assert_eq!(read(buffer), 0));
        assert!(work <= WORK_PER_CHUNK, "{work} at chunk {id}");
        let patch = Patch { offset: 1, data: *b"wxyz" };
        let early = buffer.patch(ProducerId(1), WriterId(1), 0, [patch].into_iter(), false);
        assert!(!early, "what is known to be whole stays as it is");
    }
    copy(&mut buffer, 1, header(1, CHUNKS, 1, 1), b"\x01e");
    buffer.begin_read();
    assert_eq!(buffer.next_packet().unwrap().size_bytes(), 4 * CHUNKS as usize / 2 + 1);
}

#[test]
fn repeating_a_chunk_costs_no_more_than_its_bytes() {
    let mut buffer = CentralBuffer::new(1024, FillPolicy::Ring).unwrap();
    let mut payload = vec![0; 4000];
    for (chunk, count) in (1..=4000).enumerate() {
        payload[chunk] = 0;
        let header = header(1, 0, count, 0);
        let chunk = Chunk {
            producer: ProducerId(1),
            identity: Identity::default(),
            header,
            complete: false,
            payload: &payload,
        };
        let work = work_of(&mut buffer, |buffer| buffer.copy(&chunk));
        assert!(work <= WORK_PER_CHUNK + 2 * payload.len() as u64, "{work} for {count} fragments");
        let work = work_of(&mut buffer, |buffer| assert_eq!(read(buffer), 0));
        assert!(work <= WORK_PER_CHUNK, "{work} to read them, which are empty");
    }
}

#[test]
fn the_work_of_short_lived_producers_follows_their_data() {
    let mut buffer = CentralBuffer::new(64 << 10, FillPolicy::Ring).unwrap();
    for writer in 1..=10_000 {
        copy(&mut buffer, 1, header(writer, 0, 1, 0), b"\x04abcd");
    }
    let work = work_of(&mut buffer, |buffer| {
        for round in 0..1000 {
            copy(buffer, 2, header(1, 0, 1, 0), b"\x04abcd");
            buffer.renew_writer(ProducerId(2), WriterId(1));
            buffer.retire_producer(ProducerId(2 + round % 2));
        }
    });
    assert!(work <= 1000 * WORK_PER_CHUNK, "{work}");
    assert_eq!(read(&mut buffer), 11_000);
}

#[test]
fn sequences_are_forgotten_in_linear_work() {
    let mut buffer = CentralBuffer::new(4096, FillPolicy::Ring).unwrap();
    // These stay.
    for writer in 1..=4000 {
        copy(&mut buffer, 1, header(writer, 0, 1, 6), b"\x04abcd");
    }
    let work = work_of(&mut buffer, |buffer| {
        for writer in 1..=20_000 {
            copy(buffer, 2, header(writer, 0, 1, 0), b"\x04abcd");
            assert_eq!(read(buffer), 1);
        }
    });
    assert!(work <= 20_000 * 2 * WORK_PER_CHUNK, "{work}");
    assert!(buffer.sequences.len() <= 4000 + MAX_EMPTY_SEQUENCES + MAX_EMPTY_SEQUENCES / 8 + 1);
}

#[test]
fn sequences_of_ended_writers_are_forgotten_first() {
    for do_end in [true, false] {
        let mut buffer = CentralBuffer::new(4096, FillPolicy::Ring).unwrap();
        copy(&mut buffer, 1, header(1, 0, 1, 0), b"\x04abcd");
        assert_eq!(read(&mut buffer), 1);
        for writer in 2..=5000 {
            copy(&mut buffer, 1, header(writer, 0, 1, 0), b"\x04abcd");
            assert_eq!(read(&mut buffer), 1);
            if do_end {
                buffer.end_writer(ProducerId(1), WriterId(writer));
            }
        }
        buffer.assert_consistent();
        assert!(buffer.sequences.len() <= MAX_EMPTY_SEQUENCES + MAX_EMPTY_SEQUENCES / 8 + 1);
        // A chunk that was read is a duplicate, if the buffer still knows its writer.
        copy(&mut buffer, 1, header(1, 0, 1, 0), b"\x04abcd");
        assert_eq!(read(&mut buffer), usize::from(!do_end), "the writers have ended: {do_end}");
    }
}

#[test]
fn the_memory_for_losses_and_new_writers_is_bounded() {
    let most = MAX_EMPTY_SEQUENCES + MAX_EMPTY_SEQUENCES / 8 + 1;
    let mut gone = CentralBuffer::new(4096, FillPolicy::Ring).unwrap();
    for writer in 1..=5000 {
        copy(&mut gone, 1, header(writer, 0, 1, 0), b"\x04abcd");
    }
    let mut buffer = CentralBuffer::new(4096, FillPolicy::Ring).unwrap();
    let work = work_of(&mut buffer, |buffer| buffer.inherit_loss(&gone));
    assert!(work <= 5000 * WORK_PER_CHUNK, "{work}");
    buffer.assert_consistent();
    assert!(buffer.sequences.len() <= most, "{} sequences with losses", buffer.sequences.len());

    for writer in 1..=5000 {
        gone.renew_writer(ProducerId(1), WriterId(writer));
    }
    gone.assert_consistent();
    assert!(gone.sequences.len() <= 5000 + most, "{} sequences of new writers", gone.sequences.len());
}

#[test]
fn one_producer_does_not_make_the_buffer_forget_other_producers() {
    let mut buffer = CentralBuffer::new(1024, FillPolicy::Ring).unwrap();
    copy(&mut buffer, 1, header(1, 5, 1, 0), b"\x04abcd");
    read(&mut buffer);
    for writer in 1..=5000 {
        copy(&mut buffer, 2, header(writer, 0, 1, 0), b"\x04abcd");
        read(&mut buffer);
    }
    copy(&mut buffer, 1, header(1, 5, 1, 0), b"\x04abcd");
    assert_eq!((read(&mut buffer), buffer.stats().chunks_discarded), (0, 1), "it still knows its duplicates");
}

#[test]
fn sequences_are_paid_for_with_space_of_the_buffer() {
    let mut buffer = CentralBuffer::new(4096, FillPolicy::Ring).unwrap();
    for round in 0..3 {
        for producer in 1..=5 {
            for writer in 1..=30_000 {
                copy(&mut buffer, producer, header(writer, round, 0, 0), b"");
            }
        }
    }
    buffer.assert_consistent();
    let most = FREE_SEQUENCES + 4096 * 1024 / 4096 + 4096 * 1024 / MIN_CROWDED_RECORD + MAX_EMPTY_SEQUENCES * 9 / 8 + 2;
    assert!(buffer.sequences.len() <= most, "{} sequences", buffer.sequences.len());
}

#[test]
fn a_turn_without_packets_ends_at_its_work_limit() {
    let mut buffer = CentralBuffer::new(4096, FillPolicy::Ring).unwrap();
    for id in 0..50_000 {
        copy(&mut buffer, 1, header(1, id, 1, 0), b"\x00");
    }
    copy(&mut buffer, 2, header(1, 0, 1, 0), b"\x04abcd");
    buffer.begin_read();
    let mut turns = 0;
    loop {
        let before = buffer.work();
        let (is_packet, is_end) = match buffer.next_within(1000) {
            Next::Packet(packet) => (packet.producer.0 == 2, false),
            Next::Exhausted => (false, true),
            Next::OutOfWork => (false, false),
        };
        // The list of chunks gives memory back, which moves a quarter of its entries.
        let most = 1000 + WORK_PER_CHUNK + 50_000 / 4 * 8 / 64;
        assert!(buffer.work() - before <= most, "a turn is too long");
        turns += 1;
        if is_packet || is_end {
            assert!(is_packet, "the packet was not found");
            break;
        }
    }
    assert!(turns >= 50, "{turns} turns");
}

#[test]
fn a_packet_too_large_for_any_reader_is_dropped_and_marked() {
    let mut buffer = CentralBuffer::new(128 << 10, FillPolicy::Ring).unwrap();
    // 60,000 bytes in each chunk.
    let mut piece = vec![0xe0, 0xd4, 0x03];
    piece.resize(3 + 60_000, b'x');
    let chunks = (MAX_PACKET_COST / (60_000 + FRAGMENT_COST)) as u32;
    for (sequence, count) in [(1, chunks), (2, chunks + 1), (3, 2)] {
        for id in 0..count {
            let flags = if id == 0 {
                2
            } else if id == count - 1 {
                1
            } else {
                3
            };
            copy(&mut buffer, 1, header(sequence, id, 1, flags), &piece);
        }
        copy(&mut buffer, 1, header(sequence, count, 1, 0), b"\x04next");
    }
    let mut found = Vec::new();
    buffer.begin_read();
    while let Some(packet) = buffer.next_packet() {
        found.push((packet.writer.0, packet.size_bytes(), packet.loss));
    }
    let large = chunks as usize * 60_000;
    let marked = loss::PRESENT | loss::ORPHAN_CONTINUATION;
    assert_eq!(found, [(1, large, 0), (1, 4, 0), (2, 4, marked), (3, 120_000, 0), (3, 4, 0)]);
    assert_eq!(buffer.stats().abi_violations, 1);
    assert_eq!(buffer.stats().chunks_overwritten, 0);
}

/// Copies 64-byte chunks of one writer into a buffer that has room for 64 of them, and returns the
/// ids of those that are read with the marks of their packets.
fn marks_of(ids: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut buffer = CentralBuffer::new(4, FillPolicy::Ring).unwrap();
    for id in ids {
        let mut payload = vec![44];
        payload.extend_from_slice(&id.to_le_bytes());
        payload.resize(45, 0);
        copy(&mut buffer, 1, header(1, id, 1, 0), &payload);
    }
    buffer.begin_read();
    let mut marks = Vec::new();
    while let Some(packet) = buffer.next_packet() {
        let bytes: Vec<u8> = packet.slices().flatten().copied().collect();
        marks.push((u32::from_le_bytes(bytes[..4].try_into().unwrap()), packet.loss));
    }
    marks
}

#[test]
fn a_gap_marks_only_the_packet_after_it() {
    // Chunk 40 comes first, so it is overwritten first, while 40 others come before it.
    let ids = [40].into_iter().chain(0..40).chain(41..65);
    let marks = marks_of(ids);
    assert_eq!(marks.iter().find(|(id, _)| *id == 40), None);
    let marked: Vec<_> = marks.into_iter().filter(|(_, loss)| *loss != 0).collect();
    assert_eq!(marked, [(41, loss::PRESENT | loss::READ_GAP)]);
}

#[test]
fn a_loss_after_the_last_packet_marks_the_next_one() {
    // The newest comes first, and nothing follows in which a gap could be found.
    let marks = marks_of([64].into_iter().chain(0..64));
    let marked: Vec<_> = marks.iter().filter(|(_, loss)| *loss != 0).collect();
    assert_eq!(marked, [&(0, loss::PRESENT | loss::OVERWRITE)]);
}
