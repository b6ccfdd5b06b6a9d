use std::time::Duration;

use esatto::schema::trace_config::IncrementalStateConfig;
use esatto::{CounterTrack, TraceConfig, Track};
use esatto_tests::sdk::{Recorder, Trace};

use super::{keep_on, sequences, text};

esatto::categories! { static APP = "app"; }
static TRACK: Track = Track::with_name("lane", 0);
static SENT: CounterTrack = CounterTrack::new("sent").incremental();
esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let cleared = recorder.start(TraceConfig {
        incremental_state_config: Some(IncrementalStateConfig { clear_period_ms: Some(100), ..Default::default() }),
        ..esatto::track_events(1024)
    });
    let other = recorder.start(esatto::track_events(1024));
    let mut sent = 0;
    keep_on(Duration::from_millis(450), || {
        sent += 100;
        esatto::instant!(APP, track: &TRACK, "tick", text = esatto::interned("text"));
        esatto::counter!(APP, &SENT, sent);
    });
    recorder.finish(cleared);
    recorder.finish_as("other", other);
}

fn check(trace: &Trace) {
    for (trace, is_cleared) in [(trace, true), (&trace.other("other"), false)] {
        let [ticks, sent] = trace.query([
            "select slice.name as name, track.name as track, extract_arg(arg_set_id, 'debug.text') as text
                from slice join track on track_id = track.id",
            "select value from counter join counter_track on track_id = counter_track.id where name = 'sent' order by ts",
        ]);
        for tick in &ticks {
            assert_eq!((tick.text("name"), tick.text("track"), tick.text("text")), ("tick", "lane", "text"));
        }
        let values: Vec<_> = sent.iter().map(|row| row.real("value")).collect();
        assert!(values.windows(2).all(|pair| pair[1] == pair[0] + 100.0), "absolute again: {values:?}");

        let packets = trace.packets();
        let sequences = sequences(&packets);
        let [packets] = &sequences[..] else { panic!("{} sequences", sequences.len()) };
        let starts: Vec<_> = (0..packets.len()).filter(|&i| packets[i].sequence_flags() == Some(1)).collect();
        assert_eq!(starts.len() > 1, is_cleared, "{starts:?}");
        assert_eq!(packets.iter().filter(|p| p.first_packet_on_sequence() == Some(true)).count(), 1);
        for (n, &start) in starts.iter().enumerate() {
            let end = starts.get(n + 1).copied().unwrap_or(packets.len());
            let generation = &packets[start..end];
            if !generation.iter().any(|packet| packet.track_event().is_some()) {
                continue;
            }
            assert!(generation[1].track_descriptor().is_some_and(|d| d.thread().is_some()));
            assert!(generation[2].track_descriptor().is_some_and(|d| d.process().is_some()));
            let described = generation.iter().filter_map(|p| p.track_descriptor());
            assert_eq!(described.filter(|d| text(d.static_name()) == "lane").count(), 1);
            let defined = generation.iter().filter_map(|p| p.interned_data());
            let names: Vec<_> = defined.flat_map(|data| data.event_names()).map(|n| text(n.name())).collect();
            assert_eq!(names, ["tick"], "once per generation");
        }
    }
}
