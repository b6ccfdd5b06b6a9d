//! A recording without events is no success: a warning names the reason, and the exit status is 3.
//! `esatto list` shows what there is to record.

use esatto_filter::{Builder, MessageId, Version};
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Program, Signal, esatto_bin};
use serde_json::Value;

const SHORT: Workload = Workload { threads: 1, rounds: 10, pause_us: 100 };
/// Exit status of a recording without events.
const EMPTY: i32 = 3;

/// Records our application, which waits some seconds for its category. Returns status and output.
fn record_application(config: &str) -> (i32, String) {
    let harness = Harness::new();
    harness.write("my.cfg", config);
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", "trace", "-c", "my.cfg"]).arg(application.get_program());
    command.args(application.get_args().take(3)).arg("3").env("ESATTO_WAIT_MS", "0");
    let mut record = harness.start("esatto-record", &mut command);
    let status = record.wait().code().expect("an exit code");
    // The application fails because it is not recorded. That must not hide the warning.
    (status, record.log())
}

fn config(data_source: &str, events: &str) -> String {
    format!("buffers {{ size_kb: 256 }} data_sources {{ config {{ name: \"{data_source}\" {events} }} }}")
}

fn categories(enabled: &str) -> String {
    config(
        "track_event",
        &format!("track_event_config {{ disabled_categories: \"*\" enabled_categories: \"{enabled}\" }}"),
    )
}

#[track_caller]
fn assert_says(log: &str, parts: &[&str]) {
    for part in ["No event was recorded"].iter().chain(parts) {
        assert!(log.contains(part), "'{part}' is not in\n{log}");
    }
    assert!(!log.contains("Open it in"), "there is nothing to open:\n{log}");
}

#[test]
fn no_program_connected() {
    let harness = Harness::new();
    let mut record = harness.start("record", harness.command(esatto_bin()).args(["record", "-o", "trace", "true"]));
    assert_eq!(record.wait().code(), Some(EMPTY), "{}", record.log());
    assert_says(&record.log(), &["no program connected", "true"]);
    assert!(harness.path("trace").exists(), "what the service knows is still written");
}

/// The limit holds for the memory that the service shares with programs.
#[test]
fn a_limit_of_the_shell_is_the_reason() {
    let harness = Harness::new();
    let application = harness.application_command(Implementation::Ours, SHORT);
    let record = |limit: &str| {
        let mut command = harness.command("sh");
        command.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"]).arg(esatto_bin());
        command.args(["record", "--force", "-o", "trace", "--"]).arg(application.get_program());
        command.args(application.get_args().take(3)).arg("3").env("ESATTO_WAIT_MS", "0");
        let mut record = harness.start("record", &mut command);
        assert_ne!(record.wait().code(), Some(0), "{}", record.log());
        record.log()
    };
    let log = record("-f 20");
    assert_says(&log, &["cannot create shared memory", "(os error 27); raise the limit of the size of files"]);
    let log = record("-n 10");
    assert!(log.contains("(os error 24); raise the limit of open files: `ulimit -n 1024`"), "{log}");
}

#[test]
fn no_program_is_connected_to_the_running_service() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let args = ["record", "-o", "trace", "-t", "100ms"];
    let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
    assert_eq!(record.wait().code(), Some(EMPTY));
    assert_says(&record.log(), &["no program is connected", "esatto list"]);
}

#[test]
fn a_mistyped_data_source_without_any_program() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let config = config("linux.ftrac", "") + " duration_ms: 100";
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    assert_eq!(recording.program.wait().code(), Some(EMPTY));
    let log = recording.program.log();
    assert_says(&log, &["so none offers linux.ftrac (did you mean linux.ftrace?); "]);
    let line = log.lines().find(|line| line.contains("No event was recorded")).expect("a line");
    assert_eq!(line.matches("linux.ftrace").count(), 1, "{line}");
    assert!(line.ends_with("with a service of its own."), "{line}");
}

#[test]
fn a_data_source_that_no_program_offers() {
    let (_, log) = record_application(&config("track_evnt", ""));
    assert_says(&log, &["\"track_evnt\"; did you mean \"track_event\"?", "Known are: track_event"]);
    let (_, log) = record_application(&config("linux.something_new", ""));
    assert_says(&log, &["\"linux.something_new\"", "`esatto probes`"]);
}

#[test]
fn a_data_source_that_only_perfettos_programs_offer() {
    let (_, log) = record_application(&config("linux.perf", ""));
    assert_says(&log, &["\"linux.perf\"; it is not implemented in Esatto; Perfetto's traced_perf offers it, also to "]);
    assert!(!log.contains("esatto probes"), "{log}");
}

#[test]
fn probes_that_are_connected_are_not_missed() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _probes = harness.probes(Implementation::Ours);
    harness.wait_for_data_source("linux.process_stats");
    for (name, reason) in [("android.heapprofd", "heapprofd offers it"), ("linux.something_new", "Known are: ")] {
        let mut recording = harness.record(Implementation::Ours, name, &(config(name, "") + " duration_ms: 100"));
        assert_eq!(recording.program.wait().code(), Some(EMPTY));
        let log = recording.program.log();
        assert_says(&log, &[name, reason]);
        assert!(!log.contains("is not connected"), "{log}");
    }
}

#[test]
fn a_config_of_the_kernel_without_events() {
    let (_, log) = record_application(&config("linux.ftrace", ""));
    assert_says(&log, &["\"linux.ftrace\" asks for no event", "ftrace_events: \"sched/sched_switch\""]);
}

#[test]
fn a_category_that_no_program_has() {
    let (_, log) = record_application(&categories("renderings"));
    assert_says(&log, &["no category matches \"renderings\" (did you mean \"rendering\"?)", "debug, rendering"]);
}

#[test]
fn a_filter_that_names_no_program() {
    let text = "buffers { size_kb: 256 } data_sources { config { name: \"track_event\" } producer_name_filter: \"x\" }";
    let (_, log) = record_application(text);
    assert_says(&log, &["producer_name_filter", "esatto-producer"]);
}

#[test]
fn a_regular_expression_that_names_no_program() {
    let source = "config { name: \"track_event\" } producer_name_regex_filter:";
    let (_, log) = record_application(&format!("buffers {{ size_kb: 256 }} data_sources {{ {source} \"esato.*\" }}"));
    assert_says(
        &log,
        &["producer_name_regex_filter of the data source \"track_event\"", "matches no", "/esatto-producer."],
    );
    let both = format!(
        "buffers {{ size_kb: 256 }} data_sources {{ {source} \"x\" producer_name_filter: \"esato-producer\" }}"
    );
    let (_, log) = record_application(&both);
    assert_says(&log, &["match no connected program; did you mean \"/", "/esatto-producer\"?"]);
}

#[test]
fn a_filter_that_strips_all_events() {
    let mut builder = Builder::new(Version::V1);
    builder.nested(1, MessageId(1)).expect("the packets").end_message();
    // Timestamp and sequence.
    builder.pass(8).and_then(|builder| builder.pass(10)).expect("in order").end_message();
    let bytecode = builder.build().expect("two messages").bytecode;
    let escaped: String = bytecode.iter().map(|byte| format!("\\{byte:03o}")).collect();
    let events = categories("rendering");
    let (_, log) = record_application(&format!("{events} trace_filter {{ bytecode: \"{escaped}\" }}"));
    assert_says(&log, &["the trace_filter of the config left no event of the connected programs: ", "esatto-producer"]);
}

#[test]
fn a_field_without_effect() {
    let (_, log) = record_application(&format!("{} max_file_size_bytes: 100000", categories("rendering")));
    assert!(log.contains("max_file_size_bytes has no effect: the config lacks `write_into_file: true`."), "{log}");
}

#[test]
fn a_machine_that_is_not_connected() {
    let source = "config { name: \"track_event\" } machine_name_filter: \"hst\"";
    let (_, log) = record_application(&format!("buffers {{ size_kb: 256 }} data_sources {{ {source} }}"));
    assert_says(
        &log,
        &["machine_name_filter names no connected machine: \"hst\" (did you mean \"host\"?). Known are: host."],
    );
}

#[test]
fn categories_that_are_off_by_their_tags() {
    let tags = "track_event_config { disabled_tags: \"ui\" disabled_tags: \"slow\" }";
    let (_, log) = record_application(&config("track_event", tags));
    assert_says(&log, &["no category of the programs is enabled", "debug (slow), rendering (ui)"]);
}

#[test]
fn the_status_of_the_command_comes_first() {
    let harness = Harness::new();
    let args = ["record", "-o", "trace", "--", "sh", "-c", "exit 7"];
    let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
    assert_eq!(record.wait().code(), Some(7));
    assert_says(&record.log(), &["no program connected"]);
    // Other programs have options of the same names.
    let args = ["record", "-o", "trace", "sh", "-c", "exit 7"];
    let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
    assert_eq!(record.wait().code(), Some(7));
    assert!(!record.log().contains("as its own"), "{}", record.log());
}

#[test]
fn an_output_that_the_command_got_is_told_even_after_success() {
    let harness = Harness::new();
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", "trace", "sh", "-c", "\"$0\" \"$1\" \"$2\" \"$3\" \"$4\""]);
    command.arg(application.get_program()).args(application.get_args());
    let mut record = harness.start("record", command.args(["-o", "foo.pftrace"]));
    record.wait_ok();
    let line = "The command got -o foo.pftrace as its own. Options of record come before the command.";
    assert!(record.log().contains(line), "{}", record.log());
}

#[test]
fn a_recording_with_events_also_names_missing_data_sources() {
    let harness = Harness::new();
    let both = "buffers { size_kb: 4096 } data_sources { config { name: \"track_event\" } } \
                data_sources { config { name: \"no.such.source\" } }";
    harness.write("my.cfg", both);
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", "trace", "-c", "my.cfg"]).arg(application.get_program());
    let mut record = harness.start("record", command.args(application.get_args()));
    record.wait_ok();
    let log = record.log();
    assert!(log.contains("No program was seen that offers the data source \"no.such.source\""), "{log}");
    assert!(!log.contains("No event") && log.contains("Open it in"), "{log}");
}

#[test]
fn a_recording_with_events_also_names_unknown_categories() {
    let harness = Harness::new();
    let events = "track_event_config { enabled_categories: \"rendering\" enabled_categories: \"debugg\" }";
    harness.write("my.cfg", config("track_event", events));
    // Long enough that `record` sees it, and too short for a line while it runs.
    let application =
        harness.application_command(Implementation::Ours, Workload { threads: 1, rounds: 8, pause_us: 100_000 });
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-o", "trace", "-c", "my.cfg"]).arg(application.get_program());
    let mut record = harness.start("record", command.args(application.get_args()));
    record.wait_ok();
    let log = record.log();
    let line = "no category matches \"debugg\" (did you mean \"debug\"?). Known are: debug, rendering.";
    assert!(log.matches(line).count() == 1 && log.contains("Open it in"), "{log}");
}

#[test]
fn the_service_writes_the_file() {
    let harness = Harness::new();
    harness.write("my.cfg", format!("write_into_file: true {}", config("track_evnt", "")));
    let args = ["record", "-o", "trace", "-c", "my.cfg", "true"];
    let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
    assert_eq!(record.wait().code(), Some(EMPTY), "{}", record.log());
    let bytes = std::fs::metadata(harness.path("trace")).expect("a file").len();
    assert_says(&record.log(), &["no program connected", &format!("Wrote {bytes} bytes into trace")]);
}

#[test]
fn the_service_writes_a_file_that_the_config_names() {
    let harness = Harness::new();
    let path = harness.path("trace");
    let into_file = format!("write_into_file: true output_path: \"{}\"", path.display());
    harness.write("my.cfg", format!("{into_file} {}", config("track_evnt", "")));
    let args = ["record", "-c", "my.cfg", "true"];
    let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
    assert_eq!(record.wait().code(), Some(EMPTY), "{}", record.log());
    assert_says(&record.log(), &["no program connected"]);
}

#[test]
fn a_mistake_in_the_config_is_told_while_there_is_time() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = waiting_application(&harness);
    harness.write("my.cfg", config("track_evnt", ""));
    let args = ["record", "-o", "trace", "-c", "my.cfg", "-t", "1h"];
    let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
    record.wait_for_log("So far, no program offers the data source \"track_evnt\"; did you mean \"track_event\"?");
    record.signal(Signal::TERM);
    assert_eq!(record.wait().code(), Some(EMPTY));
    for filter in ["machine_name_filter: \"hst\"", "producer_name_regex_filter: \"esato.*\""] {
        let source = format!("data_sources {{ config {{ name: \"track_event\" }} {filter} }}");
        harness.write("my.cfg", format!("buffers {{ size_kb: 256 }} {source}"));
        let mut record = harness.start("record", harness.command(esatto_bin()).args(args));
        record.wait_for_log(&format!("So far, {}", filter.split(':').next().expect("a field")));
        record.signal(Signal::TERM);
        assert_eq!(record.wait().code(), Some(EMPTY));
    }
}

fn list(harness: &Harness, args: &[&str]) -> String {
    let output = harness.command(esatto_bin()).arg("list").args(args).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A program that is connected, and waits to be recorded.
fn waiting_application(harness: &Harness) -> Program {
    let application = harness.application(Implementation::Ours, SHORT);
    harness.wait_for_data_source("track_event");
    application
}

#[test]
fn list_shows_programs_data_sources_and_categories() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    assert_eq!(list(&harness, &[]), "No program is connected.\n");
    let application = waiting_application(&harness);
    let text = list(&harness, &[]);
    let pid = application.pid().to_string();
    for part in ["Programs\n", &pid, "esatto-producer", "track_event", "rendering", "Frames and what they consist of"] {
        assert!(text.contains(part), "'{part}' is not in\n{text}");
    }
    let json: Value = serde_json::from_str(&list(&harness, &["--json"])).expect("JSON");
    let program = &json["programs"][0];
    assert_eq!(program["pid"], application.pid());
    let categories = &program["data_sources"][0]["categories"];
    assert!(categories.as_array().expect("a list").iter().any(|category| category["name"] == "rendering"), "{json:#}");
}

#[test]
fn programs_of_the_running_service_are_named() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let _application = waiting_application(&harness);
    let mut recording = harness.record(Implementation::Ours, "trace", &categories("renderings"));
    harness.wait_for_sessions(1);
    recording.program.signal(Signal::INT);
    assert_eq!(recording.program.wait().code(), Some(EMPTY));
    assert_says(&recording.program.log(), &["did you mean \"rendering\"?"]);
}

#[test]
fn a_program_that_waited_in_vain_says_so() {
    let harness = Harness::new();
    let command = harness.application_command(Implementation::Ours, SHORT);
    let mut lonely = harness.command(command.get_program());
    lonely.args(command.get_args().take(3)).arg("1").env("ESATTO_WAIT_MS", "50");
    let mut lonely = harness.start("lonely", &mut lonely);
    lonely.wait();
    let want = "no session recorded this program within the 50 ms of ESATTO_WAIT_MS";
    assert!(lonely.log().contains(want), "{}", lonely.log());
}
