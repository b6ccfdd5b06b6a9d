use std::collections::{BTreeMap, BTreeSet};

use esatto_protozero::Fields;
use esatto_schema::{InternedDataReader, TracePacketReader, TrackDescriptorReader, TrackEventReader};
use esatto_tests::Skip;
use esatto_trace::EventType;

use crate::run::{Run, column};

const NAMES: &str = "SELECT name, category FROM slice ORDER BY ts, id";

/// A trace processor before v57 counts an error for each state, and continues.
const STATES: [&str; 2] = ["track_event_tokenizer_errors", "track_event_parser_errors"];

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8(bytes.unwrap_or_default().to_vec()).expect("text")
}

/// The packets of a trace.
struct Packets(Vec<Vec<u8>>);

impl Packets {
    fn of(run: &Run, trace: &str) -> Self {
        Self(run.packets(trace))
    }

    fn all(&self) -> impl Iterator<Item = TracePacketReader<'_>> {
        self.0.iter().map(|packet| TracePacketReader::new(packet))
    }

    fn events(&self) -> Vec<TrackEventReader<'_>> {
        self.all().filter_map(|packet| packet.track_event()).collect()
    }

    fn interned(&self) -> Vec<InternedDataReader<'_>> {
        self.all().filter_map(|packet| packet.interned_data()).collect()
    }

    /// Returns the only descriptor with this name.
    fn track(&self, name: &str) -> TrackDescriptorReader<'_> {
        let named = |d: &TrackDescriptorReader<'_>| text(d.name()) == name || text(d.static_name()) == name;
        let mut found = self.all().filter_map(|packet| packet.track_descriptor()).filter(named);
        let track = found.next().unwrap_or_else(|| panic!("{name} is described"));
        assert!(found.next().is_none(), "{name} is described once");
        track
    }
}

/// Reads as the trace processor does: after a loss, events need a state that begins later.
pub(super) fn tracks_after_losses(run: &Run) -> Result<(), Skip> {
    const CLEARED: u32 = 1;
    const NEEDS_STATE: u32 = 2;
    /// A sequence whose state readers know, and the tracks that it has described in this state.
    type Described = Option<BTreeSet<u64>>;

    let packets = Packets::of(run, "trace");
    let mut sequences: BTreeMap<u32, Described> = BTreeMap::new();
    let (mut losses, mut events, mut descriptions) = (0, 0, BTreeMap::<String, u32>::new());
    for packet in packets.all() {
        let described = sequences.entry(packet.trusted_packet_sequence_id().unwrap_or_default()).or_default();
        if packet.previous_packet_dropped().unwrap_or_default() != 0 {
            losses += u32::from(described.is_some());
            *described = None;
        }
        let flags = packet.sequence_flags().unwrap_or_default();
        if flags & CLEARED != 0 {
            *described = Some(BTreeSet::new());
        }
        if let Some(track) = packet.track_descriptor() {
            let name = text(track.name());
            let kind = (track.thread().is_some(), track.process().is_some(), track.counter().is_some());
            match (kind, name.as_str()) {
                ((true, ..) | (_, true, _), _) | ((false, false, true), "my counter") | ((.., false), "my track") => {}
                _ => panic!("a description is not whole: {kind:?} {name:?}"),
            }
            *descriptions.entry(name).or_default() += 1;
            if let (Some(described), Some(uuid)) = (described.as_mut(), track.uuid()) {
                described.insert(uuid);
            }
        }
        if let (Some(event), true) = (packet.track_event(), flags & NEEDS_STATE != 0) {
            let described = described.as_ref().expect("an event has the state that it needs");
            let uuid = event.track_uuid().expect("the event names its track");
            assert!(described.contains(&uuid), "event {events} after loss {losses}: its track was not described");
            events += 1;
        }
    }
    println!("{losses} losses, {events} events, {descriptions:?}");
    assert!(losses > 0 && events > 100, "{losses} losses, {events} events");
    assert!(descriptions["my counter"] > 1 && descriptions["my track"] > 1, "{descriptions:?}");
    Ok(())
}

pub(super) fn only_what_came_later(run: &Run) -> Result<(), Skip> {
    let [slices] = run.query("trace", [NAMES])?;
    assert_eq!(column(&slices, "name"), ["recorded"]);
    Ok(())
}

pub(super) fn each_session_has_what_it_wants(run: &Run) -> Result<(), Skip> {
    let [slices] = run.query("of_a", [NAMES])?;
    assert_eq!((column(&slices, "name"), column(&slices, "category")), (vec!["of a".into()], vec!["a".into()]));
    let [slices] = run.query("empty", [NAMES])?;
    assert!(slices.is_empty());
    Ok(())
}

pub(super) fn instants(run: &Run) -> Result<(), Skip> {
    let [slices, thread] = run.query(
        "trace",
        [
            "SELECT name, category, dur FROM slice ORDER BY ts, id",
            "SELECT DISTINCT thread.is_main_thread AS main FROM slice JOIN thread_track t ON t.id = track_id JOIN thread USING (utid)",
        ],
    )?;
    // One instant has no name, and one has an empty name.
    assert_eq!(column(&slices, "name"), ["first", "second", "", "flushed", ""]);
    assert!(slices.iter().all(|row| row.text("category") == "net" && row.int("dur") == 0));
    assert_eq!(thread.iter().map(|row| row.int("main")).collect::<Vec<_>>(), [1]);
    let packets = Packets::of(run, "trace");
    let events = packets.events();
    assert_eq!(events.len(), 5);
    for event in &events {
        assert_eq!((event.r#type().map(|kind| kind.0), event.category_iids().count()), (Some(3), 1));
        assert!(event.categories().count() == 0 && event.track_uuid().is_none());
    }
    let has_iid = |event: &TrackEventReader<'_>| event.name_iid().is_some() && event.name().is_none();
    assert!(events.iter().enumerate().all(|(i, event)| has_iid(event) != (i == 2)));
    let categories: Vec<_> =
        packets.interned().iter().flat_map(|data| data.event_categories()).map(|c| text(c.name())).collect();
    assert_eq!(categories, ["net"]);
    Ok(())
}

pub(super) fn dynamic_categories(run: &Run) -> Result<(), Skip> {
    let [one] = run.query("one", [NAMES])?;
    assert_eq!(column(&one, "name"), ["in one", "of one", "of one"]);
    assert!(one.iter().all(|row| row.text("category") == "dyn.one"));
    let [both] = run.query("both", [NAMES])?;
    let mut expected = vec!["of one", "of two", "of one", "of two"];
    expected.extend(["of many"; 20]);
    expected.push("of one, later");
    assert_eq!(column(&both, "name"), expected);
    assert_eq!(both.iter().filter(|row| row.text("category") == "dyn.two").count(), 2);
    // Categories are texts. Each session has the names once.
    for (trace, names) in
        [("one", &["in one", "of one"][..]), ("both", &["of one", "of two", "of many", "of one, later"])]
    {
        let packets = Packets::of(run, trace);
        assert!(
            packets.events().iter().all(|event| event.categories().count() == 1 && event.category_iids().count() == 0)
        );
        let announced: Vec<_> =
            packets.interned().iter().flat_map(|data| data.event_names()).map(|n| text(n.name())).collect();
        assert_eq!(announced, names);
    }
    Ok(())
}

pub(super) fn names_are_announced_once(run: &Run) -> Result<(), Skip> {
    let [slices] = run.query("trace", [NAMES])?;
    let expected =
        ["inline", "inline", "static", "static", "static", "from an array", "FROM an array", "from an array"];
    assert_eq!(column(&slices, "name"), expected);
    let packets = Packets::of(run, "trace");
    let inline: Vec<_> =
        packets.events().iter().filter_map(|event| event.name()).map(|name| text(Some(name))).collect();
    assert_eq!(inline, ["inline", "inline"]);
    let announced: Vec<_> =
        packets.interned().iter().flat_map(|data| data.event_names()).map(|n| text(n.name())).collect();
    assert_eq!(announced, ["static", "from an array", "FROM an array"]);
    Ok(())
}

pub(super) fn annotations(run: &Run) -> Result<(), Skip> {
    let keys = ["b", "u", "i", "d", "s", "odd", "p"];
    let columns = keys.map(|key| format!("extract_arg(arg_set_id, 'debug.{key}') AS {key}")).join(", ");
    let [rows] = run.query("trace", [&format!("SELECT name, {columns} FROM slice ORDER BY ts, id")])?;
    assert_eq!(column(&rows, "name"), ["interned", "interned", "inline", "slice"]);
    for row in &rows[..3] {
        assert_eq!((row.int("b"), row.int("u"), row.int("i")), (1, i64::MAX, i64::MIN));
        assert_eq!((row.real("d"), row.text("s"), row.text("odd"), row.int("p")), (1.5, "text", "\u{fffd}!", 16));
    }
    // Annotations of the begin and of the end.
    assert_eq!((rows[3].text("s"), rows[3].int("b")), ("text", 0));
    let packets = Packets::of(run, "trace");
    let mut announced: Vec<_> =
        packets.interned().iter().flat_map(|data| data.debug_annotation_names()).map(|n| text(n.name())).collect();
    announced.sort();
    // A string that is not UTF-8 is written in full, without a number.
    assert_eq!(announced, ["b", "d", "i", "p", "s", "u"], "once each");
    for event in packets.events() {
        for annotation in event.debug_annotations() {
            assert!(annotation.name_iid().is_some() != annotation.name().is_some());
        }
    }
    Ok(())
}

pub(super) fn tracks(run: &Run) -> Result<(), Skip> {
    let [places, counters] = run.query_tolerating(
        "trace",
        &STATES,
        [
            "SELECT s.name, t.name AS track, p.name AS parent, t.parent_id IS NULL AS root FROM slice s \
             JOIN track t ON t.id = s.track_id LEFT JOIN track p ON p.id = t.parent_id ORDER BY s.ts, s.id",
            "SELECT t.name, c.value FROM counter c JOIN track t ON t.id = c.track_id ORDER BY c.ts, c.id",
        ],
    )?;
    let place =
        |row: &esatto_tests::tp::Row| ["name", "track", "parent"].map(|column| row.text(column).to_owned()).join(" / ");
    let places: Vec<_> = places.iter().map(place).filter(|place| !place.contains("state")).collect();
    let each = ["on named / my track / ", "on child / my child / my track", "on root / my root / "];
    let rest = ["on the last / my track / ", "on registered / my registered track / "];
    assert_eq!(places, [&each[..], &each[..], &rest[..]].concat());
    let values: Vec<_> = counters.iter().map(|row| (row.text("name").to_owned(), row.real("value"))).collect();
    let counter = |name: &str, value: f64| (name.to_owned(), value);
    assert_eq!(
        values,
        [counter("my counter", -79.0), counter("my counter", 0.5), counter("proto counter", i64::MAX as f64)]
    );

    let packets = Packets::of(run, "trace");
    let process = packets.track("my track").parent_uuid().expect("it is in the process");
    let fnv = |name: &str| {
        name.bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    };
    let named = packets.track("my track");
    assert_eq!((named.uuid(), named.static_name()), (Some(process ^ fnv("my track") ^ 3), None));
    let child = packets.track("my child");
    assert_eq!((child.parent_uuid(), child.name()), (named.uuid(), None), "its name is static");
    let root = packets.track("my root");
    assert_eq!((root.uuid(), root.parent_uuid()), (Some(fnv("my root") ^ 7), None));
    let counter = packets.track("my counter");
    assert!(counter.counter().is_some() && counter.name().is_none() && counter.parent_uuid() == Some(process));
    let state = packets.track("my state");
    assert!(state.state().is_some() && state.name().is_none() && state.parent_uuid() == Some(process));
    assert!(packets.track("proto state").state().is_some() && packets.track("proto counter").counter().is_some());
    for event in packets.events() {
        assert!(event.track_uuid().is_some());
    }

    // Our reader checks states, because the trace processor does not know them.
    let trace = esatto_trace::Trace::read(&run.bytes("trace")[..]);
    assert!(trace.errors.is_empty() && trace.problems.is_empty(), "{:?} {:?}", trace.errors, trace.problems);
    let states = trace.events.iter().filter(|event| event.event_type == EventType::State);
    let states: Vec<_> = states.map(|event| (event.track_name.as_deref(), event.name.as_deref())).collect();
    let of_mine = Some("my state");
    assert_eq!(
        states,
        [(of_mine, Some("connecting")), (of_mine, Some("up")), (of_mine, None), (Some("proto state"), Some("busy"))]
    );
    Ok(())
}

pub(super) fn slices(run: &Run) -> Result<(), Skip> {
    let [slices, flows, timed] = run.query(
        "trace",
        [
            "SELECT s.name, s.dur, s.depth, p.name AS parent, extract_arg(s.arg_set_id, 'debug.depth') AS level, \
             extract_arg(s.arg_set_id, 'debug.outcome') AS outcome FROM slice s LEFT JOIN slice p ON p.id = s.parent_id \
             WHERE s.name <> '0.6 ms' ORDER BY s.ts, s.id",
            "SELECT o.name AS 'from', i.name AS 'to' FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in \
             ORDER BY o.ts",
            "SELECT dur FROM slice WHERE name = '0.6 ms'",
        ],
    )?;
    assert!(slices.iter().all(|row| row.int("dur") >= 0), "all have ended: {slices:?}");
    let nested: Vec<_> = slices.iter().map(|row| format!("{} in {}", row.text("name"), row.text("parent"))).collect();
    assert_eq!(
        nested,
        [
            "leaves_early in ",
            "leaves_early in ",
            "inner in leaves_early",
            "leaves_early in ",
            "inner in leaves_early",
            "with_arguments in ",
            "with_arguments in with_arguments",
            "with_arguments in with_arguments",
            "in a loop in ",
            "inside in in a loop",
            "in a loop in ",
            "in a loop in ",
            "inside in in a loop",
            "flow begins in ",
            "flow goes on in ",
            "flow ends in ",
        ]
    );
    let with = slices.iter().filter(|row| row.text("name") == "with_arguments");
    let with: Vec<_> = with.map(|row| (row.int("level"), row.text("outcome"), row.int("depth"))).collect();
    assert_eq!(with, [(1, "well", 0), (2, "well", 1), (3, "well", 2)]);
    let joined: Vec<_> = flows.iter().map(|row| (row.text("from"), row.text("to"))).collect();
    assert_eq!(joined, [("flow begins", "flow goes on"), ("flow goes on", "flow ends")]);
    assert_eq!(timed.iter().map(|row| row.int("dur")).collect::<Vec<_>>(), [600_000]);
    Ok(())
}

pub(super) fn fields(run: &Run) -> Result<(), Skip> {
    let [rows] = run.query_tolerating(
        "trace",
        &["unknown_extension_fields"],
        ["SELECT s.name, a.key, a.display_value AS value FROM slice s JOIN args a USING (arg_set_id) ORDER BY s.ts, s.id"],
    )?;
    let values = |end: &str| {
        let found = rows.iter().filter(|row| row.text("name") == "with fields" && row.text("key").ends_with(end));
        found.map(|row| row.text("value").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(values("file_name"), ["file.c"; 2]);
    assert_eq!(values("line_number"), ["17"; 2]);
    assert_eq!(values("debug.interned name"), ["5"; 2]);

    let packets = Packets::of(run, "trace");
    let announced: Vec<_> =
        packets.interned().iter().flat_map(|data| data.debug_annotation_names()).map(|n| text(n.name())).collect();
    assert_eq!(announced, ["interned name"], "once");
    // Unknown fields have the bytes that were written.
    let event = run.packets("trace");
    let event = event.iter().filter_map(|packet| Fields::new(packet).first(11)).next_back().expect("an event");
    let event = event.as_bytes();
    let field = |id: u32| Fields::new(event).first(id).expect("a field");
    assert_eq!(field(99101).as_bytes(), b"\0\x01\x02");
    assert_eq!(field(99102).as_u64(), u64::MAX - 1);
    assert_eq!(field(99103).as_u32(), 0xffff_fffe);
    assert_eq!(field(99104).as_f64(), -1.5);
    assert_eq!(field(99105).as_f32(), 3.25);
    assert_eq!(field(99106).as_u64(), u64::MAX);
    assert!(Fields::new(event).first(99107).is_none(), "there is no table 0");
    assert!(field(99108).as_bytes().is_empty());
    Ok(())
}

pub(super) fn nested_tracks(run: &Run) -> Result<(), Skip> {
    let [places] = run.query(
        "trace",
        ["SELECT s.name, t.name AS t1, p.name AS t2, q.name AS t3 FROM slice s JOIN track t ON t.id = s.track_id \
          LEFT JOIN track p ON p.id = t.parent_id LEFT JOIN track q ON q.id = p.parent_id ORDER BY s.ts, s.id"],
    )?;
    let place = |name: &str| {
        let found: Vec<_> = places.iter().filter(|row| row.text("name") == name).collect();
        assert!(!found.is_empty(), "{name} is there");
        let place = |row: &&esatto_tests::tp::Row| ["t1", "t2", "t3"].map(|column| row.text(column).to_owned());
        assert!(found.iter().all(|row| place(row) == place(&found[0])));
        place(&found[0])
    };
    assert_eq!(place("in the process"), ["inner", "middle", "outer"]);
    assert_eq!(place("in the thread")[0], "below a thread");
    assert_eq!(place("in nothing"), ["root", "", ""]);
    assert_eq!(place("second")[..2], ["second", "ordered"]);
    assert_eq!(place("first")[..2], ["first", "ordered"]);
    assert_eq!(place("with fields")[..2], ["with fields", "registered"]);
    assert_eq!(place("by text")[0], "by text");

    let packets = Packets::of(run, "trace");
    let outer = packets.track("outer");
    let process = outer.parent_uuid().expect("it is in the process");
    assert!(
        packets.all().filter_map(|p| p.track_descriptor()).any(|d| d.uuid() == Some(process) && d.process().is_some())
    );
    let (middle, inner) = (packets.track("middle"), packets.track("inner"));
    assert_eq!((middle.parent_uuid(), inner.parent_uuid()), (outer.uuid(), middle.uuid()));
    assert!(inner.name().is_none() && outer.static_name().is_none());
    let thread = packets.track("below a thread").parent_uuid();
    assert!(packets.all().filter_map(|p| p.track_descriptor()).any(|d| d.uuid() == thread && d.thread().is_some()));
    assert_eq!(packets.track("root").parent_uuid(), None);
    let ordered = packets.track("ordered");
    assert_eq!(ordered.child_ordering().map(|order| order.0), Some(3));
    assert_eq!(packets.track("second").sibling_order_rank(), Some(5));
    assert_eq!(packets.track("first").sibling_order_rank(), Some(-5));
    let merge = |name: &str| {
        let track = packets.track(name);
        let key = track.sibling_merge_key().map(|key| text(Some(key)));
        (track.sibling_merge_behavior().map(|behavior| behavior.0), key, track.sibling_merge_key_int())
    };
    assert_eq!(merge("by text"), (Some(3), Some("a key".into()), None));
    assert_eq!(merge("by number"), (Some(3), None, Some(99)));
    assert_eq!(merge("never"), (Some(2), None, None));
    assert_eq!(merge("outer"), (None, None, None));
    let proto = packets.track("with fields");
    assert_eq!((proto.uuid(), proto.parent_uuid()), (Some(7_654_321 ^ 88), Some(7_654_321)));
    Ok(())
}

pub(super) fn correlation_ids(run: &Run) -> Result<(), Skip> {
    let [rows] = run.query(
        "trace",
        ["SELECT s.name, a.display_value AS value FROM slice s JOIN args a USING (arg_set_id) \
          WHERE a.key LIKE '%correlation_id' ORDER BY s.ts, s.id"],
    )?;
    let values: Vec<_> = rows.iter().map(|row| (row.text("name"), row.text("value"))).collect();
    let pair = [("number", "tp:#11"), ("text", "request 17")];
    assert_eq!(values[..4], [pair, pair].concat());
    let packets = Packets::of(run, "trace");
    let events = packets.events();
    let ends = events.iter().filter(|event| event.r#type().is_some_and(|kind| kind.0 == 2));
    assert!(ends.clone().count() == 4 && ends.into_iter().all(|event| event.correlation_id().is_none()));
    let numbers: Vec<_> = events.iter().filter_map(|event| event.correlation_id()).collect();
    assert_eq!(numbers, [11, 11, u64::MAX]);
    Ok(())
}

pub(super) fn by_hand(run: &Run) -> Result<(), Skip> {
    let [slices] = run.query("trace", [NAMES])?;
    assert_eq!(column(&slices, "name"), ["high", "low", "low", "high", "last"]);
    assert!(slices.iter().all(|row| row.text("category") == "net"));
    let packets = Packets::of(run, "trace");
    let announced: Vec<_> =
        packets.interned().iter().flat_map(|data| data.event_names()).map(|n| text(n.name())).collect();
    assert_eq!(announced, ["high", "low", "last"], "once");
    Ok(())
}
