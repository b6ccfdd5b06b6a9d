//! Processes of an unusual machine: hidden ones, and very many threads.

use crate::mount_namespace::probes_in_namespace;
use esatto_tests::{Harness, Implementation, Peer, Skip, skip, tp, wait_until};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

const CONFIG: &str = r#"
buffers { size_kb: 65536 }
data_sources { config { name: "linux.process_stats" process_stats_config {
  scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 100
} } }
"#;

/// Mounts a /proc that hides processes of other users. It is a new one, so that of the machine
/// stays as it is.
const HIDE: &str = "mount --make-rprivate /; mount -t proc -o hidepid=2 proc /proc; ";
/// Options of setpriv for user ids without a user.
const ALICE: &str = "--reuid=4242001 --regid=4242001 --clear-groups";
const BOB: &str = "--reuid=4242002 --regid=4242002 --clear-groups";

/// Records for some polls, and returns the process ids in the trace.
fn recorded_pids(harness: &Harness) -> Vec<i64> {
    let config = format!("{CONFIG} duration_ms: 500");
    let trace = harness.record(Implementation::Ours, "trace", &config).finish();
    tp::assert_clean(&trace);
    tp::rows(&trace, "select pid from process where pid > 0 and name is not null order by pid")
        .iter()
        .map(|row| row.int("pid"))
        .collect()
}

mod hidden_processes {
    use super::*;

    #[test]
    fn a_user_gets_only_his_and_is_told_why() {
        skip(|| {
            Peer::TraceProcessor.require()?;
            let harness = Harness::new();
            let _service = harness.service(Implementation::Ours);
            for path in [harness.folder(), &harness.producer_socket()] {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
            }
            let enter = format!("{HIDE} exec setpriv {ALICE} \"$0\" probes");
            let probes = probes_in_namespace(&harness, &enter)?;
            let told = "linux.process_stats cannot record processes of other users: /proc is mounted with hidepid";
            wait_until("it is told", || probes.log().contains(told).then_some(()));
            assert!(probes.log().contains("mount -o remount,hidepid=0 /proc"), "{}", probes.log());
            assert_eq!(recorded_pids(&harness), [i64::from(probes.pid())]);
            Ok(())
        });
    }

    #[test]
    fn root_gets_all() {
        skip(|| {
            Peer::TraceProcessor.require()?;
            let harness = Harness::new();
            let service = harness.service(Implementation::Ours);
            let of_another = Command::new("setpriv").args(BOB.split(' ')).args(["sleep", "60"]).spawn();
            let mut of_another = of_another.map_err(|why| Skip(format!("no setpriv: {why}")))?;
            let probes = probes_in_namespace(&harness, &format!("{HIDE} exec \"$0\" probes"))?;
            assert!(!probes.log().contains("hidepid"), "{}", probes.log());
            let pids = recorded_pids(&harness);
            for pid in [of_another.id(), service.pid(), probes.pid(), std::process::id()] {
                assert!(pids.contains(&i64::from(pid)), "{pid} among {pids:?}");
            }
            let _ = of_another.kill();
            let _ = of_another.wait();
            Ok(())
        });
    }
}

const ROLE: &str = "ESATTO_TEST_THREADS";
const THREADS: usize = 10_000;

#[test]
fn ten_thousand_threads_have_their_process_and_names() {
    if std::env::var_os(ROLE).is_some() {
        sleep_in_threads();
    }
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = crate::turn();
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut probes = harness.probes(Implementation::Ours);
        let test = std::thread::current().name().expect("libtest names it").to_owned();
        let mut command = harness.command(std::env::current_exe().expect("this program"));
        let mut program = harness.start("threads", command.args([&*test, "--exact", "--nocapture"]).env(ROLE, ""));
        wait_until("the threads run or cannot", || {
            (program.log().contains("threads: ") || !program.is_running()).then_some(())
        });
        if !program.log().contains("threads: all") {
            return Err(Skip(format!("too few threads: {}", program.log().trim())));
        }
        let config = format!(
            "{CONFIG} write_into_file: true file_write_period_ms: 100 flush_period_ms: 100 write_flush_mode: WRITE_FLUSH_DISABLED"
        );
        let mut recording = harness.record(Implementation::Ours, "trace", &config);
        let last = format!("sleeper-{}", THREADS - 1);
        wait_until("the last thread is in the file", || {
            let file = std::fs::read(recording.trace()).unwrap_or_default();
            file.windows(last.len()).any(|part| part == last.as_bytes()).then_some(())
        });
        // A second session, whose scan meets their end.
        let mut second = harness.record(Implementation::Ours, "second", CONFIG);
        harness.wait_for_sessions(2);
        program.kill();
        tp::assert_clean(&second.stop());
        let trace = recording.stop();
        assert!(probes.is_running(), "{}", probes.log());
        tp::assert_clean(&trace);
        let rows = tp::rows(
            &trace,
            &format!(
                "select count(distinct tid) as n from thread join process using (upid)
                where pid = {} and thread.name glob 'sleeper-*'",
                program.pid()
            ),
        );
        assert_eq!(rows[0].int("n"), THREADS as i64);
        Ok(())
    });
}

/// Sleeps in very many threads until it is killed.
fn sleep_in_threads() -> ! {
    let sleep = || {
        loop {
            std::thread::park();
        }
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|number| std::thread::Builder::new().name(format!("sleeper-{number}")).stack_size(16 * 1024).spawn(sleep))
        .collect();
    match threads.iter().find_map(|thread| thread.as_ref().err()) {
        None => println!("threads: all"),
        Some(why) => println!("threads: {why}"),
    }
    sleep()
}
