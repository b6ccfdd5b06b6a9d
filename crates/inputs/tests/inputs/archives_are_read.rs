//! Traces of archives and of several files are read as one.

use crate::{Folder, Trace, gzip, slices, tar, zip};
use esatto_inputs::{Inputs, Options};

fn expected() -> Vec<(String, i64)> {
    [("a", 10), ("b", 15), ("a", 20), ("json", 25_000)].map(|(name, ts)| (name.to_owned(), ts)).to_vec()
}

const JSON: &[u8] = br#"[{"ph":"X","pid":1,"tid":1,"ts":25,"dur":1,"name":"json"}]"#;

#[test]
fn whatever_their_format() {
    let folder = Folder::new();
    let a = Trace::default().instant(10, "a").instant(20, "a").0;
    let b = gzip(&Trace::default().instant(15, "b").0);
    let files: &[(&str, &[u8])] = &[("x/c.json", JSON), ("./b.gz", &b), ("a.pftrace", &a)];
    let archives = [zip(files), tar(files), gzip(&tar(files)), gzip(&zip(files))];
    for (index, bytes) in archives.into_iter().enumerate() {
        let path = folder.write(&format!("archive{index}"), &bytes);
        let inputs = Inputs::open(&[path]).unwrap();
        let names: Vec<&str> = inputs.members().iter().map(esatto_inputs::Member::name).collect();
        assert_eq!(names, ["a.pftrace", "b.gz", "x/c.json"]);
        let (engine, summary) = inputs.read().unwrap();
        assert_eq!(slices(&engine), expected(), "{index}");
        assert!(summary.errors.is_empty() && inputs.notes().is_empty() && inputs.errors().is_empty());
        assert_eq!(summary.parts.len(), 3);
    }
    let paths = [("a", &a[..]), ("b", &b), ("c", JSON)].map(|(name, bytes)| folder.write(name, bytes));
    let (engine, _) = Inputs::open(&paths).unwrap().read().unwrap();
    assert_eq!(slices(&engine), expected());
}

#[test]
fn an_archive_of_one_trace_is_that_trace() {
    let folder = Folder::new();
    let trace = Trace::default().instant(10, "a").0;
    let path = folder.write("x.zip", &zip(&[("t.pftrace", &trace), ("README.md", b"# A text"), (".hidden", b"x")]));
    let inputs = Inputs::open(&[path]).unwrap();
    assert_eq!(inputs.notes(), ["README.md is left out: it is no trace"]);
    let (engine, summary) = inputs.read().unwrap();
    assert_eq!((slices(&engine).len(), summary.parts.len()), (1, 0));
}

#[test]
fn pieces_are_one_trace() {
    let folder = Folder::new();
    let trace = Trace::default().instant(10, "a").instant(20, "b").0;
    let (first, second) = trace.split_at(trace.len() / 2 + 1);
    let paths = [folder.write("1", first), folder.write("2", second)];
    let (engine, summary) = Inputs::open_with(&paths, Options::new(true)).unwrap().read().unwrap();
    assert_eq!((slices(&engine).len(), summary.errors.len()), (2, 0));
}

#[test]
fn tracks_of_traces_are_their_own() {
    let folder = Folder::new();
    // The same track: a slice that does not end must not take the one of the other trace.
    let trace = |begin, end: Option<u64>| {
        use esatto_schema::track_event::Type;
        let mut trace = Trace::default().packet(0, |packet| {
            packet.timestamp(begin);
            packet.track_event().r#type(Type::TYPE_SLICE_BEGIN).name("s").track_uuid(7);
        });
        if let Some(end) = end {
            trace = trace.packet(0, |packet| {
                packet.timestamp(end);
                packet.track_event().r#type(Type::TYPE_SLICE_END).track_uuid(7);
            });
        }
        trace.0
    };
    let paths = [folder.write("1", &trace(10, None)), folder.write("2", &trace(20, Some(30)))];
    let (engine, _) = Inputs::open(&paths).unwrap().read().unwrap();
    let slice = &engine.tables.slice;
    assert_eq!([0, 1].map(|row| (slice.ts.get(row), slice.dur.get(row), slice.depth[row])), [(10, -1, 0), (20, 10, 0)]);
}

#[test]
fn a_name_of_any_length_is_that_of_the_entry() {
    let folder = Folder::new();
    let trace = Trace::default().instant(10, "a").0;
    let name = format!("{}/t.pftrace", ["f"; 90].join("/"));
    for archive in [tar(&[(&name, &trace)]), zip(&[(&name, &trace)])] {
        let inputs = Inputs::open(&[folder.write("archive", &archive)]).unwrap();
        assert_eq!(inputs.members()[0].name(), name);
    }
}
