//! `esatto convert` writes other formats, which have what the trace processor finds in the trace.

use crate::{TRACES, run, trace};
use esatto_protozero::Fields;
use esatto_tests::{Harness, Peer, skip, tp};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

/// Slices, arrows and counters, of a trace or of Chrome JSON.
const CONTENT: &str = "select s.ts, s.dur, s.depth, s.category, s.name, th.tid, p.pid from slice s
        left join thread_track tt on tt.id = s.track_id left join thread th using (utid)
        left join process p using (upid) order by s.ts, s.name, s.dur, s.depth;
    select o.ts as out_ts, o.name as out_name, i.ts as in_ts, i.name as in_name from flow f
        join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in order by 1, 2, 3, 4;
    select ts, value from counter order by ts, value;
    select pid, name from process where pid < 1073741824 order by pid;";

/// Time of slices without that of the slices inside them, by name.
const SELF_TIMES: &str = "select s.name as name, sum(s.dur - coalesce(
        (select sum(c.dur) from slice c where c.parent_id = s.id), 0)) as own
    from slice s where s.dur > 0 group by s.name having own > 0 order by s.name";

#[test]
fn chrome_json_has_all_slices_counters_and_arrows() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        for name in TRACES {
            let json = harness.path(format!("{name}.json"));
            run(&[&"convert", &trace(name), &"--to", &"chrome-json", &"-o", &json]);
            let [theirs, ours] = [&trace(name), &json].map(|file| tp::query(file, CONTENT));
            assert!(theirs[0].len() + theirs[2].len() > 100, "{name}");
            assert_eq!(theirs, ours, "{name}");
        }
        Ok(())
    });
}

#[test]
fn arguments_are_nested_again() {
    let harness = Harness::new();
    let json = harness.path("t.json");
    run(&[&"convert", &trace("track-events"), &"--to", &"chrome-json", &"-o", &json]);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).expect("it is there")).expect("JSON");
    let events = json["traceEvents"].as_array().expect("a list");
    let frame = events.iter().find(|event| event["name"] == "frame" && event["ph"] == "X").expect("a slice");
    assert_eq!(frame["args"]["label"], "grün");
    assert_eq!(frame["args"]["even"], true);
}

#[test]
fn a_trace_comes_back_from_chrome_json() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        for name in TRACES {
            let (json, back) = (harness.path("t.json"), harness.path("t.pftrace"));
            run(&[&"convert", &trace(name), &"--to", &"chrome-json", &"-o", &json, &"--force"]);
            run(&[&"convert", &json, &"--from", &"chrome-json", &"-o", &back, &"--force"]);
            let [theirs, ours] = [&trace(name), &back].map(|file| tp::query(file, CONTENT));
            assert_eq!(theirs[..3], ours[..3], "{name}");
        }
        Ok(())
    });
}

/// Returns the self times by name that the trace processor finds.
fn self_times(name: &str) -> BTreeMap<String, i64> {
    tp::rows(&trace(name), SELF_TIMES).iter().map(|row| (row.text("name").to_owned(), row.int("own"))).collect()
}

#[test]
fn folded_stacks_have_the_time_of_each_slice() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        for name in ["track-events", "long-two-buffers"] {
            let folded = harness.path("t.folded");
            run(&[&"convert", &trace(name), &"--to", &"folded", &"-o", &folded, &"--force"]);
            let mut times: BTreeMap<String, i64> = BTreeMap::new();
            for line in std::fs::read_to_string(&folded).expect("it is there").lines() {
                let (stack, value) = line.rsplit_once(' ').expect("a value");
                let leaf = stack.rsplit(';').next().expect("a frame").to_owned();
                *times.entry(leaf).or_default() += value.parse::<i64>().expect("a number");
            }
            assert_eq!(times, self_times(name), "{name}");
        }
        Ok(())
    });
}

/// Locations, values and labels.
type Sample = (Vec<u64>, Vec<i64>, Vec<(u64, u64)>);

/// A profile of pprof, as far as the test needs it.
#[derive(Default)]
struct Profile {
    texts: Vec<String>,
    functions: BTreeMap<u64, u64>,
    locations: BTreeMap<u64, u64>,
    samples: Vec<Sample>,
    sample_types: Vec<(u64, u64)>,
}

impl Profile {
    fn read(path: &Path) -> Self {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).expect("it is there");
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("gzip");
        let mut profile = Self::default();
        let find = |bytes, id| Fields::new(bytes).find(|field| field.id == id);
        let number = |bytes, id| find(bytes, id).map_or(0, |field| field.as_u64());
        for field in Fields::new(&bytes) {
            match field.id {
                1 => profile.sample_types.push((number(field.as_bytes(), 1), number(field.as_bytes(), 2))),
                2 => {
                    let all = |id| Fields::new(field.as_bytes()).filter(move |field| field.id == id);
                    let labels = all(3).map(|label| (number(label.as_bytes(), 1), number(label.as_bytes(), 2)));
                    let values = all(2).map(|value| value.as_i64()).collect();
                    profile.samples.push((all(1).map(|id| id.as_u64()).collect(), values, labels.collect()));
                }
                4 => {
                    let line = find(field.as_bytes(), 4).expect("a line");
                    profile.locations.insert(number(field.as_bytes(), 1), number(line.as_bytes(), 1));
                }
                5 => _ = profile.functions.insert(number(field.as_bytes(), 1), number(field.as_bytes(), 2)),
                6 => profile.texts.push(String::from_utf8(field.as_bytes().to_vec()).expect("a text")),
                _ => {}
            }
        }
        profile
    }

    fn text(&self, number: u64) -> &str {
        &self.texts[usize::try_from(number).expect("a small number")]
    }

    fn leaf(&self, locations: &[u64]) -> &str {
        self.text(self.functions[&self.locations[&locations[0]]])
    }
}

#[test]
fn pprof_has_the_same_times() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let path = harness.path("t.pb.gz");
        run(&[&"convert", &trace("track-events"), &"--to", &"pprof", &"-o", &path]);
        let profile = Profile::read(&path);
        assert_eq!(profile.text(0), "", "the first text is empty");
        let types: Vec<_> = profile.sample_types.iter().map(|(a, b)| (profile.text(*a), profile.text(*b))).collect();
        assert_eq!(types, [("wall", "nanoseconds"), ("slices", "count")]);
        let mut times: BTreeMap<String, i64> = BTreeMap::new();
        for (locations, values, labels) in &profile.samples {
            *times.entry(profile.leaf(locations).to_owned()).or_default() += values[0];
            assert!(
                labels.iter().any(|(key, text)| profile.text(*key).starts_with('t') && *text != 0),
                "a thread or a track"
            );
        }
        times.retain(|_, time| *time > 0);
        assert_eq!(times, self_times("track-events"));
        Ok(())
    });
}

#[test]
fn speedscope_opens_and_closes_each_slice() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let path = harness.path("t.speedscope.json");
        run(&[&"convert", &trace("track-events"), &"--to", &"speedscope", &"-o", &path]);
        let file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        let frames = file["shared"]["frames"].as_array().expect("frames");
        let mut times: BTreeMap<String, i64> = BTreeMap::new();
        for profile in file["profiles"].as_array().expect("profiles") {
            assert_eq!((&profile["type"], &profile["unit"]), (&"evented".into(), &"nanoseconds".into()));
            let (mut open, mut last): (Vec<(u64, i64)>, i64) = (Vec::new(), 0);
            for event in profile["events"].as_array().expect("events") {
                let (frame, at) = (event["frame"].as_u64().expect("a frame"), event["at"].as_i64().expect("a time"));
                assert!(at >= last, "times do not go back");
                // The time since the last event is that of the innermost slice.
                if let Some((frame, _)) = open.last() {
                    let name = frames[usize::try_from(*frame).expect("small")]["name"].as_str().expect("a name");
                    *times.entry(name.to_owned()).or_default() += at - last;
                }
                last = at;
                match event["type"].as_str() {
                    Some("O") => open.push((frame, at)),
                    _ => assert_eq!(open.pop().map(|(frame, _)| frame), Some(frame)),
                }
            }
            assert!(open.is_empty() && profile["endValue"] == last);
        }
        times.retain(|_, time| *time > 0);
        assert_eq!(times, self_times("track-events"));
        Ok(())
    });
}

#[test]
fn samples_and_heaps_are_stacks_too() {
    let harness = Harness::new();
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/trace_file/hand-made-profiles");
    for (of, expected) in [
        (
            "samples",
            "app 50;helper 51;main;work 1\napp 50;helper 51;own 2\napp 50;thread 50;main;work;leaf 2\n\
             app 50;thread 50;main;work;work 1\n",
        ),
        ("heap", "app 50;libc.malloc;main 10\napp 50;libc.malloc;main;allocate 200\n"),
    ] {
        let folded = harness.path("t.folded");
        run(&[&"convert", &profiles, &"--to", &"folded", &"--of", &of, &"-o", &folded, &"--force"]);
        let text = std::fs::read_to_string(&folded).expect("it is there");
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.join("\n") + "\n", expected, "{of}");
    }
    let path = harness.path("t.pb.gz");
    run(&[&"convert", &profiles, &"--to", &"pprof", &"--of", &"heap", &"-o", &path]);
    let profile = Profile::read(&path);
    let mut values: Vec<_> = profile.samples.iter().map(|(_, values, _)| values.clone()).collect();
    values.sort();
    assert_eq!(values, [[10, 1, 10, 1], [200, 5, 300, 9]], "in use and allocated, in bytes and objects");
}
