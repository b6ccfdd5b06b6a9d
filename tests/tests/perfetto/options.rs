//! §1 and §3: the options.

use crate::rows::{Row, SHORT, compare, run_ours, same};

const FILES: &[(&str, &str)] = &[("c.cfg", SHORT)];

same! {
    without_arguments: [] => 1;
    unknown_option: ["--bogus"] => 1;
    missing_value: ["--alert-id"] => 1;
    config: ["-c", "c.cfg", "--txt", "-o", "t"] => 0;
    config_with_equals_sign: ["--config=c.cfg", "--txt", "--out=t"] => 0;
    config_after_the_letter: ["-cc.cfg", "--txt", "-ot"] => 0;
    unambiguous_prefixes: ["-c", "c.cfg", "--txt", "--ou", "t", "--no-clob"] => 0;
    ambiguous_prefix: ["--clo", "1", "-o", "t"] => 1;
    test_config: ["-c", ":test", "-o", "t"] => 0;
    missing_config: ["-c", "nothing.cfg", "--txt", "-o", "t"] => 1;
    upload: ["--upload", "-c", "c.cfg", "--txt"] => 1;
    dropbox: ["--dropbox", "perfetto", "-c", "c.cfg", "--txt"] => 1;
    no_guardrails: ["--no-guardrails", "-c", "c.cfg", "--txt", "-o", "t"] => 0;
    reset_guardrails: ["--reset-guardrails"] => 0;
    options_may_follow_words: ["sched/sched_switch", "-t", "200ms", "-o", "t"] => 0;
    two_dashes_end_the_options: ["-t", "200ms", "-o", "t", "--", "sched"] => 0;
    version_is_one_line: ["--version"] => 0;
}

#[test]
fn version_goes_to_stdout() {
    compare(Row { args: &["--version"], ..Row::default() }, |ours, theirs| {
        for ran in [ours, theirs] {
            let text = String::from_utf8_lossy(&ran.stdout);
            assert!(text.lines().count() == 1 && text.contains(" v"), "{text}");
        }
    });
}

/// Perfetto's command takes the wish for help as a mistake; ours only with the oddities.
#[test]
fn help() {
    for option in [&["--help"], &["-h"]] {
        compare(Row { args: option, ..Row::default() }, |ours, theirs| {
            assert_eq!((ours.code, theirs.code), (Some(0), Some(1)));
            let (help, known) = (String::from_utf8_lossy(&ours.stdout), &theirs.stderr);
            // Each option of theirs is in ours.
            let words = known.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
            for option in words.filter(|word| word.starts_with("--") && word.len() > 2) {
                let renamed = option.replace("--add-note", "--add-attribute");
                assert!(help.contains(&renamed), "{option} is not in\n{help}");
            }
        });
    }
}

#[test]
fn config_from_stdin() {
    let row = Row { args: &["-c", "-", "--txt", "-o", "t"], stdin: SHORT, ..Row::default() };
    compare(row, |ours, theirs| {
        assert_eq!(ours.code, Some(0), "{}", ours.stderr);
        assert_eq!(ours.config("t"), theirs.config("t"));
    });
}

#[test]
fn statsd_ids_replace_those_of_the_config() {
    const CONFIG: &str = "duration_ms: 200 buffers { size_kb: 64 } statsd_metadata { triggering_alert_id: 1 \
                          triggering_config_id: 2 }";
    const ARGS: &[&str] =
        &["-c", "c.cfg", "--txt", "-o", "t", "--alert-id", "5", "--config-uid", "7", "--subscription-id", "-8"];
    compare(Row { args: ARGS, files: &[("c.cfg", CONFIG)], ..Row::default() }, |ours, theirs| {
        assert_eq!(ours.config("t"), theirs.config("t"));
        assert!(ours.config("t").contains("triggering_alert_id: 5"), "{}", ours.config("t"));
    });
}

/// The name of the option before v58. It had a field of its own then.
#[test]
fn add_note() {
    let args = &["-c", "c.cfg", "--txt", "-o", "t", "--add-note", "a=b=c", "--add-note", "d"];
    compare(Row { args, files: FILES, ..Row::default() }, |ours, _| {
        let config = ours.config("t");
        assert!(config.contains("\"b=c\"") && config.contains("\"d\""), "{config}");
    });
}

/// The name of the option since v58.
#[test]
fn add_attribute() {
    let args = &["-c", "c.cfg", "--txt", "-o", "t", "--add-attribute", "a=b", "--add-attribute", "c"];
    let ran = run_ours(Row { args, files: FILES, ..Row::default() });
    let config = ran.config("t");
    for part in ["trace_attributes", "key: \"a\"", "string_value: \"b\"", "key: \"c\"", "string_value: \"\""] {
        assert!(config.contains(part), "{part} is not in\n{config}");
    }
    let ran = run_ours(Row { args: &["--add-attribute", "=x", "-t", "1s", "-o", "t"], ..Row::default() });
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--add-attribute"), "{}", ran.stderr);
}
