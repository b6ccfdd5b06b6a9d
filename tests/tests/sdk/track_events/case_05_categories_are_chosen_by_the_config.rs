use std::collections::BTreeSet;

use esatto::Category;
use esatto::schema::TrackEventConfig;
use esatto_tests::sdk::{Recorder, Trace};

use super::config;

esatto::categories! {
    static NET = "net";
    static NET_RAW = "net.raw", "Each packet", tags: ["debug"];
    static DISK = "disk", tags: ["io", "slow"];
    static BOTH = [NET, DISK];
    static SLOW_ONLY = [NET_RAW, DISK];
}

/// The registry of another crate, with a name that is not its alone.
mod other {
    esatto::categories! {
        pub static NET = "net";
        pub static GAME = "game";
        /// Not announced: registers itself when it is first used.
        pub static LATE = "late";
    }
}

esatto_tests::scenario!(record, check);

/// Configs of sessions, and the events that each gets.
fn sessions() -> Vec<(&'static str, TrackEventConfig, &'static [&'static str])> {
    let strings = |texts: &[&str]| texts.iter().map(|&t| t.into()).collect();
    let events =
        |enabled: &[&str], disabled: &[&str], enabled_tags: &[&str], disabled_tags: &[&str]| TrackEventConfig {
            enabled_categories: strings(enabled),
            disabled_categories: strings(disabled),
            enabled_tags: strings(enabled_tags),
            disabled_tags: strings(disabled_tags),
            ..Default::default()
        };
    vec![
        // An empty config: all except slow and debug.
        (
            "trace",
            events(&[], &[], &[], &[]),
            &["net", "other net", "both", "game", "late", "dynamic", "dynamic net", "dynamic group"],
        ),
        // An exact name beats the tags; all other categories are off.
        (
            "exact",
            events(&["disk", "plugin.a"], &["*"], &[], &[]),
            &["disk", "both", "slow only", "dynamic", "dynamic group"],
        ),
        // A prefix; and a name that is off before it.
        (
            "prefix",
            events(&["net*", "disabled-by-default-*"], &["*"], &[], &["none"]),
            &["net", "other net", "raw", "both", "slow only", "dynamic net", "hidden"],
        ),
        ("tags", events(&[], &["*"], &["io"], &[]), &["disk", "both", "slow only"]),
    ]
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(&[CATEGORIES, &[&other::NET, &other::GAME]].concat());
    let sessions: Vec<_> =
        sessions().into_iter().map(|(name, events, _)| (name, recorder.start(config(events)))).collect();
    esatto::instant!(NET, "net");
    esatto::instant!(other::NET, "other net");
    esatto::instant!(NET_RAW, "raw");
    esatto::instant!(DISK, "disk");
    {
        let _slice = esatto::slice!(BOTH, "both");
    }
    esatto::instant!(SLOW_ONLY, "slow only");
    esatto::instant!(other::GAME, "game");
    esatto::instant!(other::LATE, "late");
    let plugin = Category::dynamic(&format!("plugin.{}", "a"));
    {
        let _slice = esatto::slice!(category: plugin, "dynamic", number = 1);
    }
    esatto::instant!(category: Category::dynamic("net.of.a.plugin"), "dynamic net");
    esatto::instant!(category: Category::dynamic("disabled-by-default-plugin"), "hidden");
    esatto::instant!(category: Category::dynamic("plugin.a,plugin.b"), "dynamic group");
    for (name, session) in sessions {
        recorder.finish_as(name, session);
    }
}

fn check(trace: &Trace) {
    for (name, _, expected) in sessions() {
        let trace = if name == "trace" { trace } else { &trace.other(name) };
        let [slices] = trace.query(["select name, category, dur from slice"]);
        let found: BTreeSet<_> = slices.iter().map(|row| row.text("name")).collect();
        assert_eq!(found, expected.iter().copied().collect(), "{name}");
        for slice in &slices {
            let category = match slice.text("name") {
                "net" | "other net" => "net",
                "raw" => "net.raw",
                "both" => "net,disk",
                "slow only" => "net.raw,disk",
                "dynamic" => "plugin.a",
                "dynamic net" => "net.of.a.plugin",
                "hidden" => "disabled-by-default-plugin",
                "dynamic group" => "plugin.a,plugin.b",
                same => same,
            };
            assert_eq!(slice.text("category"), category, "all members of a group, in its order");
            assert!(slice.int("dur") >= 0, "{slice:?} has ended");
        }
    }
}
