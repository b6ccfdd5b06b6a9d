//! States of tracks. The rules are those of the trace processor of v58; v52 knows no states.

use esatto_trace::tables::Table as _;
use esatto_trace::{Engine, Summary};

use crate::common::Maker;

const STATE: u64 = 5;
const STATE_TRACK: u32 = 18;
const TRACK_EVENT: u32 = 11;

/// Adds an event that sets a state.
fn state(maker: Maker, ts: u64, track: u64, name: Option<&str>, number: Option<u64>) -> Maker {
    maker.packet(|packet| {
        packet.varint(8, ts);
        let mut event = packet.begin(TRACK_EVENT);
        event.varint(9, STATE);
        event.varint(11, track);
        if let Some(name) = name {
            event.string(23, name);
        }
        if let Some(number) = number {
            let mut annotation = event.begin(4);
            annotation.string(10, &format!("n{number}"));
            annotation.varint(4, number);
        }
    })
}

/// Returns the states as `track/kind name ts duration number-of-arguments`.
fn states(maker: &Maker) -> Vec<String> {
    let tables = Engine::read(&maker.0[..]).tables;
    let text = |symbol: Option<_>| symbol.map_or("-", |symbol| tables.strings.get(symbol)).to_owned();
    let show = |row: usize| {
        let track = tables.state.track_id[row].index();
        format!(
            "{}/{} {} {} {} {}",
            text(tables.track.name[track]),
            text(Some(tables.track.r#type[track])),
            text(Some(tables.state.value[row])),
            tables.state.ts.get(row),
            tables.state.dur.get(row),
            tables.state.arg_set_id[row].map_or(0, |set| tables.args.set(set).len()),
        )
    };
    (0..tables.state.rows()).map(show).collect()
}

fn track(maker: Maker, uuid: u64, parent: u64) -> Maker {
    maker.track(uuid, |track| {
        track.string(2, "mode");
        track.varint(5, parent);
        drop(track.begin(STATE_TRACK));
    })
}

#[test]
fn a_state_lasts_until_the_next_one() {
    let mut maker = track(Maker::default().process(1, 10), 2, 1);
    for (ts, name) in [(100, Some("idle")), (150, Some("busy")), (170, None), (200, Some("idle"))] {
        maker = state(maker, ts, 2, name, None);
    }
    let kind = "mode/process_state_track_event";
    let expected = [("idle", 100, 50), ("busy", 150, 20), ("idle", 200, -1)];
    let expected = expected.map(|(name, ts, dur)| format!("{kind} {name} {ts} {dur} 0"));
    assert_eq!(states(&maker), expected);
    let summary = Summary::read(&maker.0[..]).to_string();
    assert!(summary.contains(" 0 annotations, 4 changes of state\n"), "{summary}");
}

#[test]
fn the_same_state_again_adds_its_arguments() {
    let mut maker = track(Maker::default(), 2, 0);
    maker = state(maker, 100, 2, Some("idle"), Some(1));
    maker = state(maker, 150, 2, Some("idle"), Some(2));
    maker = state(maker, 160, 2, Some("idle"), None);
    maker = state(maker, 170, 2, None, None);
    assert_eq!(states(&maker), ["mode/global_state_track_event idle 100 70 2"]);
}

#[test]
fn tracks_have_their_own_states() {
    let mut maker = Maker::default().process(1, 10).thread(3, 10, 11, 1);
    maker = track(track(maker, 2, 3), 4, 3);
    maker = state(maker, 100, 2, Some("a"), None);
    maker = state(maker, 110, 4, Some("a"), None);
    maker = state(maker, 120, 2, Some("b"), None);
    let kind = "mode/thread_state_track_event";
    assert_eq!(
        states(&maker),
        [format!("{kind} a 100 20 0"), format!("{kind} a 110 -1 0"), format!("{kind} b 120 -1 0")]
    );
}

#[test]
fn a_later_descriptor_does_not_make_a_track_one_of_states() {
    let maker = track(Maker::default().named(2, "mode", 0), 2, 0);
    assert!(states(&state(maker, 100, 2, Some("a"), None)).is_empty());
}

/// Adds an event of the service about another session.
fn session(maker: Maker, ts: u64, state: u64, name: &str, id: u64) -> Maker {
    maker.packet(|packet| {
        packet.varint(8, ts);
        let mut event = packet.begin(134);
        event.varint(1, state);
        if !name.is_empty() {
            event.string(2, name);
        }
        event.varint(3, id);
        event.varint(4, 1000);
    })
}

#[test]
fn other_sessions_have_states() {
    let mut maker = Maker::default();
    for (ts, state, name, id) in
        [(100, 2, "", 7), (110, 3, "", 7), (120, 5, "night", 8), (150, 4, "", 7), (160, 1, "", 7), (170, 99, "", 7)]
    {
        maker = session(maker, ts, state, name, id);
    }
    let seven = "Session 7/concurrent_tracing_sessions";
    assert_eq!(
        states(&maker),
        [
            format!("{seven} CONFIGURED 100 10 2"),
            format!("{seven} STARTED 110 40 2"),
            "night (clone)/concurrent_tracing_sessions CLONED_READ_ONLY 120 -1 2".to_owned(),
            format!("{seven} DISABLING_WAITING_STOP_ACKS 150 10 2"),
            format!("{seven} DISABLED 160 0 2"),
        ]
    );
}

#[test]
fn a_state_on_another_kind_of_track_is_left_out() {
    let maker = state(Maker::default().named(2, "slices", 0), 100, 2, Some("a"), None);
    assert!(states(&maker).is_empty());
}
