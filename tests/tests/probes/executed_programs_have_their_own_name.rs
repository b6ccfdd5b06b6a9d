//! A process that is found between its fork and its program gets the name of the program.

use esatto_tests::{Harness, Peer, esatto_bin, skip, tp};

const CONFIG: &str = "buffers { size_kb: 4096 } data_sources { config { name: \"linux.process_stats\"
    process_stats_config { scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 100 } } }";

/// The child of the shell looks like the shell until it executes another program.
const SCRIPT: &str = "(while ! test -e go; do :; done; exec tail -f /dev/null) &
echo $! >pid; sleep 1; touch go; sleep 2; kill $!";

#[test]
fn of_the_child_of_a_shell() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        harness.write("my.cfg", CONFIG);
        harness.write("go.sh", SCRIPT);
        let args = ["record", "-c", "my.cfg", "-o", "trace", "--", "sh", "go.sh"];
        harness.command(esatto_bin()).args(args).output().expect("it runs");
        let pid = std::fs::read_to_string(harness.path("pid")).expect("the script has written it");
        let query = format!(
            "select process.name, cmdline, thread.name as thread, count(*) over () as n from process
             join thread using (upid) where pid = {}",
            pid.trim()
        );
        let rows = tp::rows(&harness.path("trace"), &query);
        let texts = ["name", "cmdline", "thread"].map(|column| rows[0].text(column));
        assert_eq!((texts, rows[0].int("n")), (["tail", "tail -f /dev/null", "tail"], 1));
        Ok(())
    });
}
