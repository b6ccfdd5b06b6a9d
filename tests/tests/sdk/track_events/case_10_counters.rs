use esatto::{CounterTrack, Unit};
use esatto_tests::sdk::{Recorder, Trace};

use super::{sequences, text};

esatto::categories! { static APP = "app"; }
esatto_tests::scenario!(record, check);

static QUEUE: CounterTrack = CounterTrack::new("queue").unit(Unit::Count);
static LOAD: CounterTrack = CounterTrack::new("load").unit(Unit::Named("%"));
static HEAP: CounterTrack = CounterTrack::new("heap").unit(Unit::Bytes).multiplier(1024).share_y_axis("memory");
static SENT: CounterTrack = CounterTrack::new("sent").incremental().categories(&["net", "io"]);
static ENERGY: CounterTrack = CounterTrack::new("energy").incremental();
static DEPTH: CounterTrack = CounterTrack::new("depth").in_this_thread();
static MISSES: CounterTrack = CounterTrack::new("misses").incremental();

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(esatto::track_events(1024));
    let dynamic = CounterTrack::dynamic(format!("queue {}", 7));
    for round in 1..=3_i64 {
        esatto::counter!(APP, &QUEUE, round * 10);
        esatto::counter!(APP, &QUEUE, -round);
        esatto::counter!(APP, &LOAD, round as f64 / 2.0);
        esatto::counter!(APP, &HEAP, round);
        esatto::counter!(APP, &SENT, 1000 + round);
        esatto::counter!(APP, &ENERGY, 1.5 * round as f64);
        esatto::counter!(APP, &DEPTH, round as u8);
        esatto::counter!(APP, &dynamic, round);
        // Sampled with an event.
        let _slice = esatto::slice!(APP, "work", counter: &MISSES => 7 * round, counter: &LOAD => 99.5, round = round);
    }
    recorder.note("uuid", QUEUE.track().uuid());
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [values, tracks, slices] = trace.query([
        "select name, value from counter join counter_track on track_id = counter_track.id order by ts, counter.id",
        "select name, unit, type from counter_track",
        "select count(*) as n from slice where name = 'work' and extract_arg(arg_set_id, 'debug.round') is not null",
    ]);
    let of = |name: &str| -> Vec<f64> {
        values.iter().filter(|row| row.text("name") == name).map(|row| row.real("value")).collect()
    };
    assert_eq!(of("queue"), [10.0, -1.0, 20.0, -2.0, 30.0, -3.0]);
    assert_eq!(of("load"), [0.5, 99.5, 1.0, 99.5, 1.5, 99.5]);
    assert_eq!(of("heap"), [1024.0, 2048.0, 3072.0]);
    assert_eq!(of("sent"), [1001.0, 1002.0, 1003.0]);
    assert_eq!(of("energy"), [1.5, 3.0, 4.5]);
    assert_eq!(of("depth"), [1.0, 2.0, 3.0]);
    assert_eq!(of("queue 7"), [1.0, 2.0, 3.0]);
    assert_eq!(of("misses"), [7.0, 14.0, 21.0]);
    assert_eq!(slices[0].int("n"), 3);
    let unit =
        |name: &str| tracks.iter().find(|row| row.text("name") == name).expect("a track").text("unit").to_owned();
    assert_eq!([unit("queue"), unit("load"), unit("heap"), unit("sent")], ["count", "%", "bytes", ""]);

    let packets = trace.packets();
    let sequences = sequences(&packets);
    let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
    let described: Vec<_> =
        packets.iter().filter_map(|p| p.track_descriptor()).filter(|d| d.counter().is_some()).collect();
    let find = |name: &str| described.iter().find(|d| text(d.static_name()) == name).expect("is described");
    assert_eq!(find("queue").uuid(), trace.fact("uuid").parse().ok());
    let heap = find("heap").counter().unwrap();
    assert_eq!((heap.unit_multiplier(), text(heap.y_axis_share_key())), (Some(1024), "memory".into()));
    let sent = find("sent").counter().unwrap();
    assert_eq!(sent.is_incremental(), Some(true));
    assert_eq!(sent.categories().map(|c| text(Some(c))).collect::<Vec<_>>(), ["net", "io"]);
    let deltas: Vec<_> = packets
        .iter()
        .filter_map(|p| p.track_event())
        .filter(|e| e.track_uuid() == find("sent").uuid())
        .filter_map(|e| e.counter_value())
        .collect();
    assert_eq!(deltas, [1001, 1, 1], "differences on the wire");
}
