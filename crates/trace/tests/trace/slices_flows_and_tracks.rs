//! Small traces. The expected results are those of the official trace processor (v52) for the same
//! bytes.

use esatto_schema::track_event::Type;

use crate::common::Maker;

/// Returns the slices as `name ts duration depth`.
fn slices(maker: &Maker) -> Vec<String> {
    let show = |slice: &esatto_trace::Slice| {
        let duration = slice.duration_ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
        format!("{} {} {duration} {}", slice.name.as_deref().unwrap_or("?"), slice.ts_ns, slice.depth)
    };
    maker.trace().slices.iter().map(show).collect()
}

#[test]
fn processes_and_threads() {
    let maker = Maker::default().process(1, 10).thread(2, 10, 11, 1).begin(100, 2, "a").end(200, 2);
    let summary = maker.summary();
    assert_eq!((summary.processes.len(), summary.thread_count(), summary.track_count()), (1, 2, 2));
    assert_eq!(summary.bounds_ns, Some((100, 200)));
    let alone = Maker::default().thread(2, 10, 11, 0).instant(100, 2, "a").named(3, "x", 2).instant(110, 3, "b");
    let summary = alone.summary();
    assert_eq!((summary.processes.len(), summary.thread_count(), summary.track_count()), (1, 2, 2));
    assert_eq!(alone.trace().events[1].tid, Some(11), "a track below that of a thread");
}

#[test]
fn reused_pids_and_tids() {
    let threads = Maker::default().thread(2, 10, 11, 0).instant(100, 2, "a").thread(3, 10, 11, 0).instant(110, 3, "b");
    let summary = threads.summary();
    assert_eq!((summary.processes.len(), summary.thread_count(), summary.track_count()), (1, 3, 2));
    let processes = Maker::default()
        .process(1, 10)
        .process(4, 10)
        .named(5, "g", 1)
        .named(6, "g", 4)
        .instant(100, 5, "a")
        .instant(110, 6, "b");
    let summary = processes.summary();
    assert_eq!((summary.processes.len(), summary.thread_count(), summary.track_count()), (2, 2, 4));
}

#[test]
fn only_tracks_with_events_count_and_those_above_them() {
    let maker = Maker::default().process(1, 10).named(5, "n1", 1).named(6, "n2", 1).begin(100, 5, "a").end(200, 5);
    assert_eq!(maker.summary().track_count(), 2);
    let maker = Maker::default().named(5, "p", 0).named(6, "child", 5).instant(100, 6, "a");
    assert_eq!((maker.summary().track_count(), maker.summary().tracks_with_slices()), (2, 1));
    assert_eq!(maker.summary().bounds_ns, Some((100, 101)));
}

#[test]
fn tracks_of_one_name_merge_and_overlaps_take_more_lanes() {
    let maker = Maker::default()
        .named(5, "g", 0)
        .named(6, "g", 0)
        .named(7, "g", 0)
        .begin(100, 5, "a")
        .instant(110, 6, "i6")
        .instant(120, 7, "i7")
        .begin(130, 6, "b")
        .begin(140, 5, "aa")
        .end(150, 5)
        .end(160, 5)
        .instant(165, 7, "i")
        .begin(170, 7, "c")
        .end(180, 6)
        .end(190, 7);
    let expected = ["a 100 60 0", "i6 110 0 0", "i7 120 0 0", "b 130 50 0", "aa 140 10 1", "i 165 0 0", "c 170 20 0"];
    assert_eq!(slices(&maker), expected);
    assert_eq!(maker.summary().track_count(), 2);
    assert_eq!(maker.summary().tracks.len(), 1);
    let touching = Maker::default()
        .named(5, "g", 0)
        .named(6, "g", 0)
        .begin(100, 5, "a")
        .end(200, 5)
        .begin(200, 6, "b")
        .end(300, 6)
        .begin(300, 5, "z");
    assert_eq!(slices(&touching), ["a 100 100 0", "b 200 100 0", "z 300 - 0"]);
    assert_eq!(touching.summary().track_count(), 1);
    assert_eq!(touching.summary().slices.unfinished, 1);
    let text = touching.summary().to_string();
    assert!(text.lines().any(|line| line.ends_with(" unfinished")), "{text}");
}

#[test]
fn parents_merge_first() {
    let maker = Maker::default()
        .named(5, "p", 0)
        .named(55, "p", 0)
        .named(6, "child", 5)
        .named(66, "child", 55)
        .begin(100, 6, "a")
        .begin(110, 66, "b")
        .end(120, 6)
        .end(130, 66)
        .instant(140, 55, "z");
    assert_eq!(slices(&maker), ["a 100 20 0", "b 110 20 0", "z 140 0 0"]);
    assert_eq!((maker.summary().track_count(), maker.summary().tracks_with_slices()), (3, 3));
}

#[test]
fn descriptors_choose_whether_tracks_merge() {
    let behave = |uuid, name: &'static str, behavior, key: Option<&'static str>| {
        move |maker: Maker| {
            maker.track(uuid, |track| {
                track.string(2, name);
                track.varint(15, behavior);
                if let Some(key) = key {
                    track.string(16, key);
                }
            })
        }
    };
    let never = behave(6, "g", 2, None)(behave(5, "g", 2, None)(Maker::default()));
    assert_eq!(never.instant(100, 5, "a").instant(120, 6, "b").summary().track_count(), 2);
    let by_key = behave(6, "h", 3, Some("k"))(behave(5, "g", 3, Some("k"))(Maker::default()));
    assert_eq!(by_key.instant(100, 5, "a").instant(120, 6, "b").summary().track_count(), 1);
}

#[test]
fn ends_match_by_name() {
    let end =
        |maker: Maker, ts, name: &'static str| maker.event(ts, Type::TYPE_SLICE_END, 5, |event| _ = event.name(name));
    let maker = Maker::default().named(5, "g", 0).begin(100, 5, "a").begin(110, 5, "b");
    let maker = end(end(maker, 120, "a"), 130, "q").instant(140, 5, "i").end(150, 5);
    assert_eq!(slices(&maker), ["a 100 20 0", "b 110 10 1", "i 140 0 0"]);
    let summary = maker.summary();
    assert_eq!(summary.problems["slice_ends_over_open_slices"], 1);
    assert_eq!(summary.problems["slice_ends_without_begin"], 2);
    let text = summary.to_string();
    assert!(text.contains(", 2 ends without begin)") && !text.contains("slice_ends_without_begin"), "{text}");
    assert_eq!(summary.bounds_ns, Some((100, 140)));
}

#[test]
fn tracks_without_descriptor_and_descriptors_without_parent() {
    let maker = Maker::default().begin(100, 77, "a").end(110, 77).begin(100, 0, "d").end(110, 0);
    let summary = maker.summary();
    assert_eq!(summary.track_count(), 2);
    assert_eq!(summary.tracks[0].name.as_deref(), Some("a"));
    assert_eq!(summary.tracks[1].name.as_deref(), Some("Default Track"));
    for maker in [Maker::default().named(5, "g", 99), Maker::default().thread(5, 10, 11, 99)] {
        let maker = maker.begin(100, 5, "a").end(110, 5).instant(120, 77, "x");
        assert_eq!(slices(&maker), ["x 120 0 0"]);
        assert_eq!(maker.summary().problems["events_on_tracks_without_ancestor"], 2);
    }
    let cycle = Maker::default().named(5, "a", 6).named(6, "b", 5).instant(100, 5, "x");
    assert!(slices(&cycle).is_empty());
}

#[test]
fn flows_follow_the_order_of_time() {
    let with = |maker: Maker, ts, kind, flows: &[u64], terminating: &[u64]| {
        maker.event(ts, kind, 5, |event| {
            event.name("n");
            for &id in flows {
                event.flow_ids(id);
            }
            for &id in terminating {
                event.terminating_flow_ids(id);
            }
        })
    };
    let mut maker = Maker::default().named(5, "n1", 0);
    maker = with(maker, 100, Type::TYPE_SLICE_BEGIN, &[7], &[]);
    maker = with(maker, 150, Type::TYPE_SLICE_END, &[7], &[]);
    maker = with(maker, 160, Type::TYPE_INSTANT, &[7], &[]);
    maker = with(maker, 170, Type::TYPE_INSTANT, &[], &[7, 9]);
    maker = with(maker, 180, Type::TYPE_INSTANT, &[7], &[]);
    let flows: Vec<_> = maker.trace().flows.iter().map(|flow| (flow.from, flow.to)).collect();
    assert_eq!(flows, [(0, 0), (0, 1), (1, 2)]);
}

#[test]
fn counters() {
    let counter = |maker: Maker, uuid, name: &'static str, fields: &'static [(u32, u64)]| {
        maker.track(uuid, |track| {
            track.string(2, name);
            let mut counter = track.begin(8);
            for &(id, value) in fields {
                counter.varint(id, value);
            }
        })
    };
    let value = |maker: Maker, ts, track, value| {
        maker.event(ts, Type::TYPE_COUNTER, track, |event| _ = event.counter_value(value))
    };
    let mut maker = counter(Maker::default(), 5, "c", &[]);
    maker = counter(maker, 6, "unused", &[]);
    maker = value(value(value(maker, 100, 5, 3), 120, 5, 9), 90, 8, 9);
    let summary = maker.summary();
    assert_eq!((summary.track_count(), summary.counter_values()), (1, 2));
    assert_eq!(summary.problems["counters_without_track"], 1);
    assert_eq!(summary.bounds_ns, Some((100, 120)));

    let mut maker = counter(Maker::default(), 5, "bytes", &[(4, 1024), (5, 1)]);
    maker = value(value(maker, 100, 5, 3), 110, 5, -1);
    let counter = &maker.summary().counters[0];
    assert_eq!((counter.first, counter.last, counter.max), (3072.0, 2048.0, 3072.0), "summed up and multiplied");
}

#[test]
fn counters_sampled_with_slices() {
    let maker = Maker::default().thread(1, 10, 11, 0).track(3, |track| {
        track.string(2, "cnt");
        track.varint(5, 1);
        _ = track.begin(8);
    });
    let ride = |maker: Maker, ts, kind, value| {
        maker.event(ts, kind, 1, |event| {
            event.extra_counter_track_uuids(3);
            event.extra_counter_values(value);
        })
    };
    let maker = ride(ride(maker, 100, Type::TYPE_SLICE_BEGIN, 77), 130, Type::TYPE_SLICE_END, 78);
    let summary = maker.summary();
    assert_eq!((summary.slices.count, summary.counter_values(), summary.track_count()), (1, 2, 2));
    let too_many = maker.event(140, Type::TYPE_INSTANT, 1, |event| {
        event.extra_counter_values(1).extra_counter_values(2);
    });
    assert_eq!(too_many.summary().problems["extra_counters_without_track"], 1);
}

#[test]
fn slices_of_the_older_form() {
    let legacy = |maker: Maker, ts, phase: u8, duration| {
        maker.packet(|packet| {
            packet.varint(8, ts);
            let mut event = packet.begin(11);
            event.varint(11, 1);
            event.string(23, "x");
            let mut legacy = event.begin(6);
            legacy.varint(2, u64::from(phase));
            legacy.varint(3, duration);
        })
    };
    let maker = legacy(legacy(Maker::default().thread(1, 10, 11, 0), 500, b'X', 7), 510, b'I', 0);
    assert_eq!(slices(&maker), ["x 500 7000 0", "x 510 0 1"]);
    assert_eq!(maker.summary().bounds_ns, Some((500, 7500)));
}

#[test]
fn events_are_brought_into_the_order_of_time() {
    let maker = Maker::default().named(5, "g", 0).end(200, 5).begin(100, 5, "late");
    assert_eq!(slices(&maker), ["late 100 100 0"]);
}

#[test]
fn processes_of_a_process_tree() {
    let maker = Maker::default().packet(|packet| {
        let mut tree = packet.begin(2);
        {
            let mut process = tree.begin(1);
            process.int(1, 5);
            process.int(2, 4);
            process.string(3, "a");
            process.string(3, "b");
        }
        let mut thread = tree.begin(2);
        thread.int(1, 6);
        thread.int(3, 5);
        thread.string(2, "t6");
    });
    let summary = maker.summary();
    assert_eq!((summary.processes.len(), summary.thread_count()), (2, 3), "the parent counts, too");
    let process = &summary.processes[1];
    assert_eq!((process.pid, process.name.as_deref(), process.parent_pid), (5, Some("a"), Some(4)));
    assert_eq!(process.cmdline, ["a", "b"]);
    assert_eq!(process.threads[1].name.as_deref(), Some("t6"));
}

#[test]
fn times_at_the_end_of_the_range() {
    let last = u64::try_from(i64::MAX).expect("is positive");
    let maker = Maker::default().named(5, "g", 0).instant(last, 5, "a");
    assert_eq!(maker.summary().bounds_ns, Some((i64::MAX, i64::MAX)));
    let beyond = Maker::default().named(5, "g", 0).instant(last + 1, 5, "a");
    assert_eq!(beyond.summary().problems["events_without_timestamp"], 1, "such a time is negative");
}
