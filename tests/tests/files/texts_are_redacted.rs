//! `esatto redact` applies the filter of a config as a service does, and knows filters of its own.

use crate::{esatto, run, said, trace};
use esatto_filter::{
    AllowList, EcmaScript, Filter, Options, Policy, Program, Rule, StringField, StringFilter, Version,
};
use esatto_tests::{Harness, Peer, skip, tp};
use std::fmt::Write as _;
use std::path::Path;

const NAMES: &str = "select name, count(*) as n from slice group by name order by name";

#[test]
fn by_the_filter_of_a_config() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/schema/proto");
        // Events lose their arguments, and their names go through a rule.
        let options = Options::new()
            .exclude("perfetto.protos.TrackEvent.debug_annotations")
            .filter_string_with("perfetto.protos.EventName.name", StringField::default());
        let files = ["protos/perfetto/trace/trace.proto"];
        let list = AllowList::from_files(&files, &[proto], "perfetto.protos.Trace", &options).expect("the schema");
        let bytecode = list.bytecode(Version::V2).expect("bytecode").bytecode;
        let mut config = String::from("trace_filter {\n  bytecode_v2: \"");
        bytecode.iter().for_each(|byte| write!(config, "\\{byte:03o}").expect("a string"));
        config +=
            "\"\n  string_filter_chain { rules { policy: SFP_MATCH_REDACT_GROUPS regex_pattern: \"(fr)[^]*\" } }\n}";
        let config = harness.write("filter.cfg", config);
        let redacted = harness.path("t.pftrace");
        run(&[&"redact", &trace("track-events"), &"--filter", &config, &"-o", &redacted]);

        // The interpreter alone, whose result is that of Perfetto's and of our service.
        let mut strings = StringFilter::new();
        strings.add(Rule::new(&EcmaScript, Policy::MatchRedactGroups, b"(fr)[^]*").expect("a rule")).expect("a rule");
        let filter = Filter::new(Program::load(&bytecode).expect("bytecode")).with_strings(strings);
        let mut filter = filter.with_root(&[1]).expect("a packet");
        let packets = |path: &Path| -> Vec<Vec<u8>> {
            let file = std::fs::read(path).expect("it is there");
            esatto_trace::packets(&file).map(|packet| packet.expect("a packet").bytes).collect()
        };
        let expected = packets(&trace("track-events")).into_iter();
        let expected = expected.map(|packet| filter.filter_to_vec(&packet).expect("a packet"));
        let expected: Vec<_> = expected.filter(|packet| !packet.is_empty()).collect();
        assert!(packets(&redacted) == expected, "the bytes of each packet are the same");

        let [theirs, ours] = [&trace("track-events"), &redacted].map(|file| tp::rows(file, NAMES));
        let names = |rows: &[tp::Row]| rows.iter().map(|row| row.text("name").to_owned()).collect::<Vec<_>>().join(" ");
        assert!(names(&theirs).contains("frame"), "{}", names(&theirs));
        assert!(!names(&ours).contains("frame") && ours.len() == theirs.len(), "{}", names(&ours));
        let args = tp::rows(&redacted, "select count(*) as n from args where key like 'debug.%'");
        assert_eq!(args[0].int("n"), 0);
        tp::assert_clean(&redacted);
        Ok(())
    });
}

#[test]
fn by_patterns_and_without_arguments() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let redacted = harness.path("t.pftrace");
        let texts = "select distinct string_value as text from args where key = 'debug.label' order by 1";
        assert_eq!(tp::rows(&trace("track-events"), texts)[0].text("text"), "grün");
        run(&[&"redact", &trace("track-events"), &"--strings", &"gr|^dra", &"-o", &redacted]);
        assert!(tp::rows(&redacted, texts).iter().all(|row| row.text("text") != "grün"));
        let [theirs, ours] = [&trace("track-events"), &redacted].map(|file| tp::rows(file, NAMES));
        assert!(ours.iter().all(|row| row.text("name") != "draw") && ours.len() == theirs.len(), "{ours:?}");
        assert!(ours.iter().any(|row| row.text("name") == "frame"), "other names stay: {ours:?}");
        tp::assert_clean(&redacted);

        run(&[&"redact", &trace("track-events"), &"--drop-args", &"-o", &redacted, &"--force"]);
        let args = tp::rows(&redacted, "select count(*) as n from args where key like 'debug.%'");
        assert_eq!(args[0].int("n"), 0);
        let [theirs, ours] = [&trace("track-events"), &redacted].map(|file| tp::rows(file, NAMES));
        assert_eq!(theirs, ours, "names stay");
        tp::assert_clean(&redacted);
        Ok(())
    });
}

#[test]
fn wrong_filters_are_explained() {
    let harness = Harness::new();
    let out = harness.path("t.pftrace");
    let empty = harness.write("empty.cfg", "duration_ms: 5\n");
    let broken = harness.write("broken.cfg", "trace_filter { bytecode_v2: \"x\" }\n");
    let pattern: [&dyn AsRef<std::ffi::OsStr>; 2] = [&"--strings", &"a)(b"];
    let refused = |more: &[&dyn AsRef<std::ffi::OsStr>]| {
        let trace = trace("deflate");
        let mut args: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"redact", &trace, &"-o", &out];
        args.extend(more);
        let output = esatto(&args);
        assert!(!output.status.success() && !out.exists());
        said(&output)
    };
    assert!(refused(&pattern).contains("cannot use a pattern of --strings"));
    assert!(refused(&[&"--filter", &empty]).contains("the config has no trace_filter"));
    assert!(refused(&[&"--filter", &broken]).contains("cannot use"));
    assert!(refused(&[]).contains("required"));
}
