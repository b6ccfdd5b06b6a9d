use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use esatto::schema::SourceLocationWriter;
use esatto::{AnnotationWriter, DictWriter, Name, TraceArgs, Value};
use esatto_tests::sdk::{Recorder, Trace};

use super::{all, sequences};

esatto::categories! { static APP = "app"; }

mod recorded {
    esatto_tests::scenario!(|recorder| super::record(recorder, false), super::check);
}

mod filtered {
    esatto_tests::scenario!(|recorder| super::record(recorder, true), super::check_filtered);
}

struct Point {
    x: u32,
    y: f64,
}

impl TraceArgs for Point {
    fn write_args(&self, out: &mut DictWriter<'_>) {
        static X: Name = Name::new("x");
        out.add_static(&X, &self.x).add("y", self.y);
    }
}

impl Value for Point {
    fn write(&self, out: AnnotationWriter<'_>) {
        self.write_args(&mut out.dict());
    }
}

#[derive(Debug)]
#[expect(dead_code, reason = "is shown by `Debug`")]
enum Mode {
    Fast { level: u8 },
}

/// Records all types, and the key and value that the trace processor shows for each.
fn record(recorder: &Recorder, filter: bool) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(all(|events| events.filter_debug_annotations = Some(filter)));
    let here = 0x1000 as *const u8;
    let map = BTreeMap::from([("one", 1), ("two", 2)]);
    for _ in 0..2 {
        esatto::instant!(
            APP,
            "values",
            uint = u64::MAX >> 1,
            small = 7_u8,
            int = -8_i16,
            big = u128::MAX,
            double = 0.25,
            single = 0.5_f32,
            truth = true,
            text = "grün",
            letter = 'ß',
            owned = String::from("owned"),
            cow = Cow::Borrowed("cow"),
            boxed = Box::new(1_u32),
            shared = Arc::new(2_u32),
            counted = Rc::new("rc"),
            some = Some(3),
            none = None::<u32>,
            pointer = here,
            non_null = NonNull::<u64>::dangling(),
            null = (),
            path = Path::new("/tmp"),
            time = Duration::from_micros(3),
            "any name" = 1,
            list = [1, 2],
            nested_list = vec![vec![1], vec![2, 3]],
            tuple = (1, "two"),
            empty = Vec::<u32>::new(),
            map = &map,
            point = Point { x: 3, y: 0.5 },
            debug = esatto::debug(Mode::Fast { level: 3 }),
            display = esatto::display(1.5),
            format = format_args!("{}-{}", 1, 2),
            interned = esatto::interned("repeated"),
            json = esatto::json(r#"{"a": {"b": 5}}"#),
            squares = esatto::list((1..4).map(|n| n * n)),
            dict = esatto::dict(|dict| {
                dict.add("a", 1).dict("inner").add("b", [1, 2]).add("c", "c");
                dict.list("mixed").push(1).push("x").dict().add("d", true);
            }),
            location = esatto::proto::<SourceLocationWriter<'_>, _>(".perfetto.protos.SourceLocation", |location| {
                location.file_name("a.rs").line_number(7);
            }),
            |event| {
                event.annotate(&format!("made {}", "up"), 5);
                event.args(&Point { x: 9, y: 1.5 });
                event.location(esatto::here!());
            }
        );
    }
    recorder.finish(session);
}

const NUMBERS: &[(&str, i64)] = &[
    ("uint", (u64::MAX >> 1) as i64),
    ("small", 7),
    ("int", -8),
    ("truth", 1),
    ("boxed", 1),
    ("shared", 2),
    ("some", 3),
    ("pointer", 0x1000),
    ("non_null", 8),
    ("null", 0),
    ("time", 3000),
    ("any name", 1),
    ("list[0]", 1),
    ("list[1]", 2),
    ("nested_list[0][0]", 1),
    ("nested_list[1][1]", 3),
    ("tuple[0]", 1),
    ("map.one", 1),
    ("map.two", 2),
    ("point.x", 3),
    ("json.a.b", 5),
    ("squares[2]", 9),
    ("dict.a", 1),
    ("dict.inner.b[1]", 2),
    ("dict.mixed[0]", 1),
    ("dict.mixed[2].d", 1),
    ("location.line_number", 7),
    ("made up", 5),
    ("x", 9),
];

const TEXTS: &[(&str, &str)] = &[
    ("text", "grün"),
    ("letter", "ß"),
    ("owned", "owned"),
    ("cow", "cow"),
    ("counted", "rc"),
    ("path", "/tmp"),
    ("big", "340282366920938463463374607431768211455"),
    ("tuple[1]", "two"),
    ("debug", "Fast { level: 3 }"),
    ("display", "1.5"),
    ("format", "1-2"),
    ("interned", "repeated"),
    ("dict.inner.c", "c"),
    ("dict.mixed[1]", "x"),
    ("location.file_name", "a.rs"),
];

const REALS: &[(&str, f64)] = &[("double", 0.25), ("single", 0.5), ("point.y", 0.5), ("y", 1.5)];

fn check(trace: &Trace) {
    let [args] = trace.query(["select slice.id as slice, key, int_value, string_value, real_value
        from slice join args using (arg_set_id) where key like 'debug.%'"]);
    let slices = args.iter().map(|row| row.int("slice")).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(slices.len(), 2);
    for slice in slices {
        let found: BTreeMap<_, _> = args
            .iter()
            .filter(|row| row.int("slice") == slice)
            .map(|row| (row.text("key").strip_prefix("debug.").expect("a debug annotation"), row))
            .collect();
        for (key, value) in NUMBERS {
            assert_eq!(
                found.get(key).unwrap_or_else(|| panic!("{key} of {found:?}")).int("int_value"),
                *value,
                "{key}"
            );
        }
        for (key, value) in TEXTS {
            assert_eq!(found.get(key).unwrap_or_else(|| panic!("{key} of {found:?}")).text("string_value"), *value);
        }
        for (key, value) in REALS {
            assert_eq!(found.get(key).unwrap_or_else(|| panic!("{key} of {found:?}")).real("real_value"), *value);
        }
        // The lists have more elements than are looked at.
        let others = ["nested_list[1][0]", "squares[0]", "squares[1]", "dict.inner.b[0]"];
        assert_eq!(
            found.len(),
            NUMBERS.len() + TEXTS.len() + REALS.len() + others.len(),
            "and nothing of None or an empty list"
        );
    }

    let packets = trace.packets();
    let defined: Vec<_> =
        sequences(&packets).into_iter().flatten().filter_map(|packet| packet.interned_data()).collect();
    assert_eq!(defined.iter().map(|data| data.debug_annotation_string_values().count()).sum::<usize>(), 1);
    assert_eq!(defined.iter().map(|data| data.debug_annotation_value_type_names().count()).sum::<usize>(), 1);
    assert_eq!(defined.iter().map(|data| data.debug_annotation_names().count()).sum::<usize>(), 37, "each name once");
}

fn check_filtered(trace: &Trace) {
    let [args] = trace.query(["select key from slice join args using (arg_set_id) where key like 'debug.%'"]);
    assert!(args.is_empty(), "{args:?}");
    let packets = trace.packets();
    let events: Vec<_> = sequences(&packets).into_iter().flatten().filter_map(|packet| packet.track_event()).collect();
    assert_eq!(events.len(), 2);
    assert!(
        events.iter().all(|event| event.debug_annotations().count() == 0 && event.source_location_iid().is_some()),
        "typed fields stay"
    );
}
