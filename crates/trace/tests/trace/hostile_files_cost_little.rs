//! The cost of a file is linear in its size, for any content.

use std::io::Write as _;

use esatto_protozero::Message;
use esatto_schema::track_event::Type;
use esatto_trace::{Error, MAX_WORK_RATIO, MIN_WORK, Summary};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::common::Maker;

const COMPRESSED_PACKETS: u32 = 50;
const INTERNED_DATA: u32 = 12;
const CLOCK_SNAPSHOT: u32 = 6;
const SEQUENCE_FLAGS: u32 = 13;
const MACHINE_ID: u32 = 98;
const REMOTE_CLOCK_SYNC: u32 = 107;

/// Returns a packet of so many zeros.
fn padding(bytes: usize) -> Vec<u8> {
    Maker::default().packet(|packet| packet.bytes(900, &vec![0; bytes])).0
}

/// Returns a packet that holds these packets in compressed form.
fn compressed(packets: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(packets).unwrap();
    let zlib = encoder.finish().unwrap();
    Maker::default().packet(|packet| packet.bytes(COMPRESSED_PACKETS, &zlib)).0
}

/// Reads a file that the reader must refuse in the end, within the allowed cost.
fn assert_refused(file: &[u8]) -> Summary {
    let summary = Summary::read(file);
    assert!(matches!(summary.errors.last(), Some(Error::TooMuchWork { .. })), "{:?}", summary.errors.last());
    let allowed = MIN_WORK + file.len() as u64 * MAX_WORK_RATIO;
    assert!(summary.work() <= allowed + (1 << 16), "{} of {allowed}", summary.work());
    assert!(summary.to_string().contains("stopped reading at"));
    summary
}

#[test]
fn a_packet_that_inflates_a_thousandfold() {
    assert_refused(&compressed(&padding(1 << 20).repeat(40)));
}

#[test]
fn a_gzipped_file_that_inflates_a_thousandfold() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&padding(1 << 20).repeat(40)).unwrap();
    assert_refused(&encoder.finish().unwrap());
}

#[test]
fn nested_packets_that_inflate_little_each() {
    let inner = compressed(&padding(10_000));
    let middle = compressed(&inner.repeat(300));
    assert_refused(&middle.repeat(40));
}

#[test]
fn compressed_packets_without_content() {
    assert_refused(&compressed(&compressed(&[]).repeat(20_000)));
}

#[test]
fn packets_without_content() {
    assert_refused(&compressed(&[0x0a, 0].repeat(1_000_000)));
}

#[test]
fn an_ordinary_trace_may_inflate_by_fifty() {
    let mut maker = Maker::default();
    for index in 0..2000 {
        maker = maker.instant(index, 0, "the same name");
    }
    let file = compressed(&maker.0);
    assert!(maker.0.len() > 10 * file.len());
    let summary = Summary::read(&file.repeat(100)[..]);
    assert!(summary.errors.is_empty(), "{:?}", summary.errors);
    assert_eq!(summary.slices.count, 200_000);
}

#[test]
fn open_slices_on_many_tracks_that_merge() {
    const TRACKS: u64 = 10_000;
    let mut maker = Maker::default();
    for track in 1..=TRACKS {
        maker = maker.named(track, "one", 0);
        maker = maker.begin(track, track, "slice");
    }
    for track in 1..=TRACKS {
        maker = maker.end(track + TRACKS, track);
    }
    let summary = Summary::read(&maker.0[..]);
    assert_eq!((summary.slices.count, summary.slices.unfinished), (TRACKS, 0));
    assert_eq!(summary.tracks[0].lanes as u64, TRACKS);
    assert!(summary.work() <= 4 * TRACKS, "{}", summary.work());
}

#[test]
fn ends_that_no_open_slice_matches() {
    const SLICES: u64 = 5_000;
    let mut maker = Maker::default();
    for ts in 0..SLICES {
        maker = maker.begin(ts, 0, "a");
    }
    for ts in SLICES..2 * SLICES {
        maker = maker.event(ts, Type::TYPE_SLICE_END, 0, |event| _ = event.name("b"));
    }
    let summary = Summary::read(&maker.0[..]);
    assert_eq!(summary.problems["slice_ends_without_begin"], SLICES);
    // Each event is compared with the open slices of its track, of which there are 512 at most.
    assert!(summary.work() <= 2 * 512 * 2 * SLICES, "{}", summary.work());
}

#[test]
fn a_snapshot_of_many_clocks() {
    const CLOCKS: u32 = 3_000;
    let snapshot = |maker: Maker, clocks: &[u32]| {
        maker.packet(|packet| {
            let mut snapshot = packet.begin(CLOCK_SNAPSHOT);
            for &id in clocks {
                let mut clock = snapshot.begin(1);
                clock.varint(1, u64::from(id));
                clock.varint(2, 5);
            }
        })
    };
    let mut maker = snapshot(Maker::default(), &(200..200 + CLOCKS).collect::<Vec<_>>());
    for round in 0..10 {
        maker = snapshot(maker, &[100_000 + round, 100_100 + round]);
        maker = maker.packet(|packet| {
            packet.varint(8, 7);
            packet.varint(58, 200);
        });
    }
    let summary = Summary::read(&maker.0[..]);
    assert!(summary.work() <= 10 * 3 * u64::from(CLOCKS), "{}", summary.work());
}

#[test]
fn clocks_of_many_machines() {
    const MACHINES: u64 = 10_000;
    let clocks = |message: &mut Message<'_>| {
        for (id, ticks) in [(6, 5), (3, 4), (200, 3)] {
            let mut clock = message.begin(1);
            clock.varint(1, id);
            clock.varint(2, ticks);
        }
    };
    let mut maker = Maker::default();
    for machine in 0..MACHINES {
        maker = maker.packet(|packet| {
            packet.varint(MACHINE_ID, machine);
            let mut sync = packet.begin(REMOTE_CLOCK_SYNC);
            for _ in 0..3 {
                let mut exchange = sync.begin(1);
                clocks(&mut exchange.begin(2));
                clocks(&mut exchange.begin(3));
            }
        });
        maker = maker.packet(|packet| {
            packet.varint(MACHINE_ID, machine);
            clocks(&mut packet.begin(CLOCK_SNAPSHOT));
        });
        maker = maker.packet(|packet| {
            packet.varint(MACHINE_ID, machine);
            packet.varint(8, 7);
            packet.varint(58, 200);
            packet.begin(11).varint(9, 3);
        });
    }
    let summary = Summary::read(&maker.0[..]);
    assert_eq!((summary.slices.count, summary.machines.len() as u64), (MACHINES, MACHINES));
    assert!(summary.problems.is_empty(), "{:?}", summary.problems);
    assert!(summary.work() <= 10 * MACHINES, "{}", summary.work());
}

#[test]
fn a_long_interned_name_with_many_uses() {
    const USES: usize = 20_000;
    let maker = Maker::default().packet(|packet| {
        packet.varint(SEQUENCE_FLAGS, 1);
        let mut interned = packet.begin(INTERNED_DATA);
        let mut name = interned.begin(3);
        name.varint(1, 1);
        name.bytes(2, &vec![b'x'; 200_000]);
    });
    let maker = maker.event(1, Type::TYPE_INSTANT, 0, |event| {
        for value in 0..USES {
            event.debug_annotations().name_iid(1).uint_value(value as u64);
        }
    });
    // Copies of the name would take 4 GB.
    let summary = Summary::read(&maker.0[..]);
    assert_eq!((summary.annotations, summary.arguments), (USES as u64, 1));
}

#[test]
fn errors_without_end() {
    let summary = Summary::read(&[0x0a, 1, 0x08].repeat(5_000)[..]);
    assert_eq!((summary.errors.len(), summary.more_errors), (1000, 4000));
    assert!(summary.to_string().contains("… and 4000 more errors"));
}

#[test]
fn the_report_of_very_many_events_of_the_service() {
    const EVENTS: usize = 300_000;
    const SERVICE_EVENT: u32 = 69;
    let maker = Maker::default().packet(|packet| {
        packet.varint(8, 5);
        // Events of a kind that the schema does not know, and no start.
        let mut events = packet.begin(SERVICE_EVENT);
        for _ in 0..EVENTS {
            events.varint(15, 0);
        }
    });
    let summary = Summary::read(&maker.0[..]);
    assert_eq!(summary.service_events.len(), EVENTS);
    // To look for the start for each event would compare 90 billion names.
    let text = summary.to_string();
    assert!(text.contains(&format!("… and {} more", EVENTS - 24)), "{text}");
    assert!(summary.to_json_text().len() < 200 * EVENTS);
}

#[test]
fn statistics_of_very_many_buffers() {
    const BUFFERS: usize = 1_000_000;
    const TRACE_STATS: u32 = 35;
    let maker = |overwritten: u64| {
        Maker::default().packet(|packet| {
            let mut stats = packet.begin(TRACE_STATS);
            for _ in 0..BUFFERS {
                stats.begin(1).varint(3, overwritten);
            }
        })
    };
    let summary = Summary::read(&maker(0).0[..]);
    assert_eq!((summary.losses().len(), summary.losses().capacity()), (0, 0));
    let summary = Summary::read(&maker(1).0[..]);
    let buffers = summary.stats.as_ref().expect("there are some").buffers.len();
    assert!((128..BUFFERS / 100).contains(&buffers) && summary.losses().len() == buffers, "{buffers}");
    assert!(summary.to_string().contains("Losses") && summary.to_json_text().len() < 1 << 20);
}
