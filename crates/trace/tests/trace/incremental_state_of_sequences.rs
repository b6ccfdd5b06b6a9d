use esatto_protozero::Message;

use crate::common::Maker;

const CLEARED: u64 = 1;
const NEEDED: u64 = 2;

/// Adds an instant on the default track whose name is interned.
fn interned(maker: Maker, flags: u64, iid: u64, define: Option<&str>, more: impl FnOnce(&mut Message<'_>)) -> Maker {
    maker.packet(|packet| {
        packet.varint(8, 100);
        packet.varint(13, flags);
        more(packet);
        {
            let mut event = packet.begin(11);
            event.varint(9, 3);
            event.varint(10, iid);
            event.varint(3, iid);
        }
        if let Some(name) = define {
            let mut data = packet.begin(12);
            for table in [1, 2] {
                let mut entry = data.begin(table);
                entry.varint(1, iid);
                entry.string(2, name);
            }
        }
    })
}

fn names(maker: &Maker) -> Vec<Option<String>> {
    maker.trace().events.into_iter().map(|event| event.name).collect()
}

#[test]
fn names_hold_until_the_next_clear() {
    let mut maker = interned(Maker::default(), CLEARED, 1, Some("one"), |_| {});
    maker = interned(maker, NEEDED, 1, None, |_| {});
    maker = interned(maker, NEEDED, 1, Some("redefined"), |_| {});
    maker = interned(maker, CLEARED, 1, Some("two"), |_| {});
    maker = interned(maker, NEEDED, 9, None, |_| {});
    let names = names(&maker);
    let expected = ["one", "one", "one", "two"].map(|name| Some(name.to_owned()));
    assert_eq!(names[..4], expected, "the first definition counts");
    assert_eq!(names[4], None);
    let event = &maker.trace().events[4];
    assert_eq!(event.categories, ["unknown(9)"]);
    let summary = maker.summary();
    assert_eq!(summary.interning_errors, 2);
    assert_eq!((summary.problems["unresolved_event_names"], summary.problems["unresolved_categories"]), (1, 1));
    assert_eq!(summary.sequences[0].state_clears, 2);
}

#[test]
fn packets_that_need_lost_state_are_skipped() {
    let mut maker = interned(Maker::default(), NEEDED, 1, Some("too early"), |_| {});
    maker = interned(maker, CLEARED, 1, Some("one"), |packet| packet.varint(42, 1));
    maker = interned(maker, NEEDED, 1, None, |packet| packet.varint(42, 257));
    maker = interned(maker, NEEDED, 1, None, |_| {});
    maker = interned(maker, CLEARED, 1, Some("two"), |_| {});
    assert_eq!(names(&maker), [Some("one".to_owned()), Some("two".to_owned())]);
    let summary = maker.summary();
    assert_eq!(summary.skipped_packets, 3);
    let sequence = &summary.sequences[0];
    assert_eq!(sequence.skipped_packets, 3);
    assert_eq!(sequence.losses, 2);
    assert_eq!(sequence.loss_causes.get("smb_full"), Some(&1));
    assert_eq!(sequence.loss_causes.get("unspecified"), Some(&1));
    assert!(summary.losses().iter().any(|loss| loss.what == "smb_full" && !loss.expected));
}

#[test]
fn a_ring_skips_its_oldest_packets_as_it_should() {
    // Packets before the first state, further ones, if the last of them is lost, and the number of
    // overwritten chunks.
    let skipped = |early: usize, later: usize, is_lossy: bool, overwritten: u64| {
        let mut maker = Maker::default().packet(|packet| {
            let mut stats = packet.begin(35);
            stats.begin(1).varint(3, overwritten);
        });
        for _ in 0..early {
            maker = interned(maker, NEEDED, 1, None, |_| {});
        }
        maker = interned(maker, CLEARED, 1, Some("one"), |_| {});
        for position in 0..later {
            let is_lost = is_lossy && position + 1 == later;
            maker = interned(maker, NEEDED, 1, None, |packet| packet.varint(42, u64::from(is_lost)));
        }
        let summary = maker.summary();
        (summary.skipped_packets, summary.skipped_of_ring())
    };
    assert_eq!(skipped(3, 20, false, 5), (3, 3));
    assert_eq!(skipped(3, 20, true, 5), (4, 3), "the packet after the loss is lost");
    assert_eq!(skipped(3, 20, false, 0), (3, 0), "it is no ring that has overwritten anything");
    assert_eq!(skipped(6, 20, false, 5), (6, 0), "these are too many");
}

#[test]
fn the_mark_on_the_first_packet_is_no_loss_unless_it_has_a_cause() {
    let customary = Maker::default().packet(|packet| {
        packet.varint(42, 1);
        packet.bool(87, true);
    });
    let sequence = &customary.summary().sequences[0];
    assert!(sequence.losses == 0 && sequence.begins);
    let aborted = Maker::default().packet(|packet| packet.varint(42, 129));
    let sequence = &aborted.summary().sequences[0];
    assert_eq!(sequence.loss_causes.get("writer_abort"), Some(&1));
    assert!(!sequence.begins);
}

#[test]
fn defaults_and_sequence_clocks() {
    let maker = Maker::default()
        .named(5, "t", 0)
        .packet(|packet| {
            packet.varint(13, CLEARED);
            {
                let mut defaults = packet.begin(59);
                defaults.varint(58, 64);
                defaults.begin(11).varint(11, 5);
            }
            let mut snapshot = packet.begin(6);
            for (id, value, incremental, multiplier) in [(6, 1_000_000, false, 1), (64, 0, true, 10)] {
                let mut clock = snapshot.begin(1);
                clock.varint(1, id);
                clock.varint(2, value);
                clock.bool(3, incremental);
                clock.varint(4, multiplier);
            }
        })
        .packet(|packet| {
            packet.varint(8, 7);
            packet.varint(13, NEEDED);
            packet.begin(11).varint(9, 3);
        })
        .packet(|packet| {
            packet.varint(8, 3);
            packet.varint(13, NEEDED);
            packet.begin(11).varint(9, 3);
        })
        .packet(|packet| {
            packet.varint(8, 1_000_500);
            packet.varint(58, 6);
            packet.begin(11).varint(9, 3);
        });
    let events = maker.trace().events;
    assert_eq!(events.iter().map(|event| event.ts_ns).collect::<Vec<_>>(), [1_000_070, 1_000_100, 1_000_500]);
    assert!(events.iter().all(|event| event.track == 5));
    assert_eq!(maker.summary().sequence_clocks, 1);
}

#[test]
fn a_clock_may_be_defined_after_its_events() {
    let event = |maker: Maker, clock| {
        maker.packet(|packet| {
            packet.varint(8, 500);
            packet.varint(58, clock);
            packet.begin(11).varint(9, 3);
        })
    };
    let maker = event(event(Maker::default(), 200), 201).packet(|packet| {
        let mut snapshot = packet.begin(6);
        for (id, value) in [(6, 10_000), (200, 400)] {
            let mut clock = snapshot.begin(1);
            clock.varint(1, id);
            clock.varint(2, value);
        }
    });
    let events = maker.trace().events;
    assert_eq!(events.iter().map(|event| event.ts_ns).collect::<Vec<_>>(), [10_100]);
    assert_eq!(maker.summary().problems["timestamps_of_unknown_clocks"], 1);
}

#[test]
fn events_that_break_a_rule_are_dropped_and_counted() {
    let maker = Maker::default()
        .packet(|packet| packet.begin(11).varint(9, 3))
        .packet(|packet| {
            packet.varint(8, 1);
            _ = packet.begin(11);
        })
        .packet(|packet| {
            packet.varint(8, 1);
            let mut event = packet.begin(11);
            event.varint(9, 4);
        })
        .packet(|packet| {
            packet.varint(8, 1);
            packet.begin(11).varint(9, 5);
        })
        .track(0, |track| track.varint(5, 3))
        .packet(|packet| _ = packet.begin(60));
    let summary = maker.summary();
    assert_eq!(summary.slices.count, 0);
    for rule in ["events_without_timestamp", "events_without_type", "counters_without_track", "states_without_track"] {
        assert_eq!(summary.problems.get(rule), Some(&1), "{rule}: {:?}", summary.problems);
    }
    assert_eq!(summary.problems["track_descriptors_incomplete"], 2);
    let mut nameless = Vec::new();
    nameless.extend(b"\x0a\x06\x40\x01\x5a\x02\x48\x03");
    let summary = esatto_trace::Summary::read(&nameless[..]);
    assert_eq!(summary.problems["events_without_sequence"], 1);
}

/// Losses as the service marks and counts them in a ring buffer, after so many readings.
fn losses_of_a_ring(readings: usize) -> Vec<(String, bool)> {
    let mut maker = Maker::default().packet(|packet| packet.varint(42, 65));
    for _ in 0..readings {
        maker = maker.packet(|packet| packet.begin(69).bool(4, true));
    }
    maker = maker.packet(|packet| packet.begin(35).begin(1).varint(3, 9));
    maker.summary().losses().into_iter().map(|loss| (loss.what, loss.expected)).collect()
}

#[test]
fn overwriting_is_normal_until_a_buffer_is_read_twice() {
    let losses = |expected| ["chunks_overwritten", "overwrite"].map(|what| (what.to_owned(), expected));
    assert_eq!(losses_of_a_ring(1), losses(true));
    assert_eq!(losses_of_a_ring(2), losses(false));
}
