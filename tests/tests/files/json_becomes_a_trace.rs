//! The trace processor finds the same in a trace that `esatto convert` makes of Chrome JSON as in
//! the JSON itself.

use crate::{Random, esatto, run, said};
use esatto_tests::{Harness, Peer, skip, tp};
use serde_json::{Value, json};

/// Content with the names that both imports give it. The prefix of arguments differs.
const CONTENT: &str = "select s.ts, s.dur, s.depth, s.category, s.name, s.thread_ts, s.thread_dur, th.tid,
        th.name as thread, p.pid, p.name as process,
        (select group_concat(line, ' ') from (select substr(key, instr(key, '.') + 1) || '=' ||
            coalesce(int_value, string_value, real_value) || value_type as line from args a
            where a.arg_set_id = s.arg_set_id and (key like 'args.%' or key like 'debug.%') order by line)) as args
        from slice s left join thread_track tt on tt.id = s.track_id left join thread th using (utid)
        left join process p using (upid) order by s.ts, s.name, s.dur, s.depth, args;
    select o.ts as out_ts, o.name as out_name, i.ts as in_ts, i.name as in_name from flow f
        join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in order by 1, 2, 3, 4;
    select c.ts, c.value, t.name, p.pid from counter c join process_counter_track t on t.id = c.track_id
        join process p using (upid) order by c.ts, t.name, p.pid, c.value;
    select pid, name from process where pid != 0 order by pid;
    select tid, t.name, p.pid from thread t join process p using (upid) where tid != 0 order by tid;";

/// Events of several threads, whose slices nest.
struct Made {
    random: Random,
    events: Vec<Value>,
}

impl Made {
    fn new(seed: u64) -> Self {
        let mut made = Self { random: Random(seed), events: Vec::new() };
        // The trace processor binds an end without a start to the first slice of the trace.
        made.event(1, 10, "X", 10, json!({ "name": "start", "dur": 0.09 }));
        for id in [10, 11, 20] {
            made.event(1, 10, "s", 50, json!({ "name": "f", "cat": "c", "id": id }));
        }
        for pid in 1..=2_u64 {
            let name = json!({ "ph": "M", "name": "process_name", "pid": pid, "args": { "name": format!("P{pid}") } });
            made.events.push(name);
            for tid in [pid * 10, pid * 10 + 1] {
                if made.random.below(2) == 0 {
                    let args = json!({ "name": format!("T{tid}") });
                    made.events.push(json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": args }));
                }
                let start = 100 + made.random.below(50_000);
                made.slices(pid, tid, start, 2_000_000, 0);
            }
            made.async_slices(pid);
            made.counters(pid);
        }
        made
    }

    fn args(&mut self) -> Value {
        match self.random.below(6) {
            0 => json!({ "n": 1, "text": "a \"quoted\" ü", "list": [1, { "k": [true] }], "none": null, "empty": {} }),
            1 => json!({ "half": 0.5, "negative": -7, "big": 9_007_199_254_740_993_i64 }),
            2 => json!({ "deep": { "er": { "est": "x" } } }),
            _ => Value::Null,
        }
    }

    fn event(&mut self, pid: u64, tid: u64, phase: &str, ns: u64, more: Value) {
        let mut event = json!({ "ph": phase, "pid": pid, "tid": tid, "ts": micros(ns) });
        let Value::Object(more) = more else { return };
        event.as_object_mut().expect("an object").extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        self.events.push(event);
    }

    /// Adds slices between two times, and slices inside of them.
    fn slices(&mut self, pid: u64, tid: u64, begin: u64, end: u64, depth: u64) {
        let mut now = begin;
        while depth < 5 && now + 2000 < end {
            let dur = 1000 + self.random.below((end - now) / 2 + 1);
            let dur = dur.min(end - now);
            let name = ["draw", "load", "wait", "[x]"][self.random.below(4) as usize];
            let category = [json!("net"), json!("net,disk"), Value::Null][self.random.below(3) as usize].clone();
            let args = self.args();
            let common = json!({ "name": name, "cat": category, "args": args });
            let mut more = common.clone();
            match self.random.below(4) {
                0 => {
                    self.event(pid, tid, "B", now, more);
                    self.slices(pid, tid, now + 100, now + dur - 100, depth + 1);
                    let args =
                        json!({ "args": if self.random.below(2) == 0 { json!({ "late": 1 }) } else { Value::Null } });
                    self.event(pid, tid, "E", now + dur, args);
                }
                _ => {
                    more["dur"] = micros(dur);
                    if self.random.below(2) == 0 {
                        more["tts"] = json!(now / 1000);
                        // The trace processor takes no time for an unknown one in a trace.
                        more["tdur"] = json!(1 + dur / 2000);
                    }
                    // Chrome writes inner slices first.
                    let is_last = self.random.below(2) == 0;
                    if !is_last {
                        self.event(pid, tid, "X", now, more.clone());
                    }
                    self.slices(pid, tid, now + 100, now + dur - 100, depth + 1);
                    if is_last {
                        self.event(pid, tid, "X", now, more);
                    }
                }
            }
            let middle = now + 50;
            match self.random.below(8) {
                0 => {
                    let scope = ["t", "p", "g"][self.random.below(3) as usize];
                    self.event(pid, tid, "i", middle, json!({ "name": "mark", "s": scope }));
                }
                1 => self.event(pid, tid, "s", middle, json!({ "name": "f", "cat": "c", "id": tid })),
                2 => self.event(pid, tid, "f", middle, json!({ "name": "f", "cat": "c", "id": 20, "bp": "e" })),
                3 => self.event(pid, tid, "f", middle, json!({ "name": "f", "cat": "c", "id": "0xa" })),
                4 => self.event(pid, tid, "t", middle, json!({ "name": "f", "cat": "c", "id": 11, "bp": "e" })),
                _ => {}
            }
            now += dur + 1 + self.random.below(10_000);
        }
    }

    fn async_slices(&mut self, pid: u64) {
        for number in 0..20_u64 {
            let begin = self.random.below(1_000_000);
            let id = match number % 3 {
                0 => json!({ "id": format!("{:#x}", pid * 100 + number) }),
                1 => json!({ "id2": { "local": format!("{:#x}", number) } }),
                _ => json!({ "id": pid * 1000 + number }),
            };
            let mut add = |phase: &str, name: &str, ns: u64| {
                let mut more = json!({ "name": name, "cat": "async" });
                more.as_object_mut().expect("an object").extend(id.as_object().expect("an object").clone());
                self.event(pid, pid * 10, phase, ns, more);
            };
            add("b", "request", begin);
            add("b", "part", begin + 1000);
            add("n", "step", begin + 2000);
            add("e", "part", begin + 3000);
            add("e", "request", begin + 90_000);
        }
    }

    fn counters(&mut self, pid: u64) {
        for number in 0..20 {
            let ns = self.random.below(1_000_000);
            let mut more = json!({ "name": "memory", "args": { "used": number, "free": 0.5 } });
            if number % 4 == 0 {
                more["id"] = json!("heap");
            }
            self.event(pid, pid * 10 + number % 2, "C", ns, more);
        }
    }
}

/// Times are whole, or have three digits after the point, or are texts.
fn micros(ns: u64) -> Value {
    if ns % 1000 == 0 { json!(ns / 1000) } else { json!(ns as f64 / 1000.0) }
}

#[test]
fn as_the_trace_processor_reads_it_itself() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        for seed in 1..=6 {
            let events = Made::new(seed).events;
            assert!(events.len() > 200, "{seed}: {}", events.len());
            let text = if seed % 2 == 0 {
                json!(events).to_string()
            } else {
                json!({ "displayTimeUnit": "ms", "traceEvents": events, "metadata": { "x": [1] } }).to_string()
            };
            let json = harness.write("t.json", text);
            let converted = harness.path("t.pftrace");
            let told = run(&[&"convert", &json, &"--from", &"chrome-json", &"-o", &converted, &"--force"]);
            assert!(!told.contains("left out") || told.contains("arrows"), "{seed}: {told}");
            let [theirs, ours] = [&json, &converted].map(|file| tp::query(file, CONTENT));
            for (theirs, ours) in theirs.iter().zip(&ours) {
                assert!(theirs.len() >= 2, "{seed}");
                for (theirs, ours) in theirs.iter().zip(ours) {
                    assert_eq!(theirs, ours, "{seed}");
                }
                assert_eq!(theirs.len(), ours.len(), "{seed}");
            }
            tp::assert_clean(&converted);
        }
        Ok(())
    });
}

#[test]
fn what_the_trace_processor_leaves_out_is_kept() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let events = json!([
            { "ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": 10, "name": "first" },
            { "ph": "X", "pid": 1, "tid": 1, "ts": 15, "dur": 10, "name": "overlaps" },
            { "ph": "S", "pid": 1, "tid": 1, "ts": 10, "id": 1, "cat": "c", "name": "old" },
            { "ph": "F", "pid": 1, "tid": 1, "ts": 14, "id": 1, "cat": "c", "name": "old" },
            { "ph": "N", "pid": 1, "tid": 1, "ts": 10, "id": 7, "cat": "c", "name": "Object" },
            { "ph": "O", "pid": 1, "tid": 1, "ts": 11, "id": 7, "cat": "c", "name": "Object", "args": { "snapshot": 3 } },
            { "ph": "D", "pid": 1, "tid": 1, "ts": 13, "id": 7, "cat": "c", "name": "Object" },
            { "ph": "X", "pid": "Browser", "tid": "Main", "ts": "30.5", "dur": 1, "name": "named" },
            { "ph": "v", "pid": 1, "tid": 1, "ts": 40, "name": "dump" },
            { "ph": "X", "pid": 1, "tid": 1, "name": "never" },
        ]);
        let json = harness.write("t.json", events.to_string());
        let converted = harness.path("t.pftrace");
        let told = run(&[&"convert", &json, &"-o", &converted]);
        for line in ["1 slices overlap others", "1 events without a time", "1 events of the phase 'v'"] {
            assert!(told.contains(line), "{told}");
        }
        let rows = tp::rows(&converted, "select ts, dur, name, depth from slice order by ts, name");
        let slices: Vec<_> = rows.iter().map(|row| (row.text("name"), row.int("ts"), row.int("dur"))).collect();
        let expected = [
            ("Object", 10_000, 3000),
            ("first", 10_000, 10_000),
            ("old", 10_000, 4000),
            ("Object", 11_000, 0),
            ("overlaps", 15_000, 10_000),
            ("named", 30_500, 1000),
        ];
        assert_eq!(slices, expected);
        let names = tp::rows(
            &converted,
            "select p.name as p, t.name as t from thread t join process p using (upid)
            where t.name = 'Main'",
        );
        assert_eq!(names[0].text("p"), "Browser");
        tp::assert_clean(&converted);
        Ok(())
    });
}

#[test]
fn a_torn_file_is_converted_as_far_as_it_goes() {
    let harness = Harness::new();
    let whole =
        r#"[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"a"},{"ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"name":"b"}"#;
    for (cut, expected, is_told) in [(0, 2, false), (10, 1, true)] {
        let json = harness.write("t.json", &whole[..whole.len() - cut]);
        let folded = harness.path("t.folded");
        let told = run(&[&"convert", &json, &"--to", &"folded", &"-o", &folded, &"--force"]);
        assert_eq!(told.contains("torn"), is_told, "{told}");
        assert_eq!(std::fs::read_to_string(&folded).expect("a file").lines().count(), expected);
    }
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let harness = Harness::new();
    for (content, why) in [
        ("{\"a\": 1}", "no list \"traceEvents\""),
        ("[hello", "no element of the list is an event"),
        ("[]", "no element of the list is an event"),
        ("{\"traceEvents\": [}", "byte 17 is 0x7d"),
        ("<html>", "not a Perfetto trace"),
    ] {
        let file = harness.write("t.json", content);
        let output = esatto(&[&"convert", &file, &"--to", &"folded"]);
        assert!(!output.status.success() && !harness.path("t.folded").exists(), "{content}");
        assert!(said(&output).contains(why), "{content}: {}", said(&output));
    }
    let output = esatto(&[&"convert", &crate::trace("deflate"), &"--from", &"chrome-json", &"-o", &harness.path("x")]);
    assert!(said(&output).contains("it is no JSON; leave out --from"), "{}", said(&output));
    let output = esatto(&[&"convert", &crate::trace("deflate")]);
    assert!(said(&output).contains("name a format with --to"), "{}", said(&output));
}
