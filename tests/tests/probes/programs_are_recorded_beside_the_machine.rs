//! One session records the kernel's scheduling and the events of real programs: both are on the
//! same threads.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::workload::{Expected, Trace, Workload};
use esatto_tests::{Harness, Implementation, Peer, Skip, tp, wait_until};

/// For each thread: how often it ran, its slices while the events of all processors were recorded,
/// and those of them that ended while it ran, as they must.
///
/// Some kernels do not tell all switches from the idle task of a processor to another one. Their
/// own text of the events lacks the same ones. Then the idle task seems to follow itself. On such a
/// processor, a slice may have ended while the idle task seems to run.
const THREADS: &str = "
    with idle as (select utid from thread where tid = 0),
    untold as (select cpu, count(*) as switches from (
        select cpu, utid, lead(utid) over (partition by cpu order by ts) as next from sched_slice)
      where utid in idle and next in idle group by cpu),
    recorded as (select max(first) as first, min(last) as last from
      (select min(ts) as first, max(ts) as last from sched_slice group by cpu)),
    ends as (select k.utid, s.ts + s.dur as ts from slice s join thread_track k on s.track_id = k.id, recorded
      where s.dur > 0 and s.ts > recorded.first and s.ts + s.dur < recorded.last)
    select p.pid, p.name as process, t.tid, t.name,
      (select count(*) from sched_slice s where s.utid = t.utid) as runs,
      (select count(*) from ends e where e.utid = t.utid) as slices,
      (select count(*) from ends e where e.utid = t.utid and exists (select 1 from sched_slice r
          where r.utid = t.utid and e.ts between r.ts and r.ts + r.dur
          union all select 1 from sched_slice r
          where r.utid in idle and r.cpu in (select cpu from untold) and e.ts between r.ts and r.ts + r.dur
        )) as ended_while_it_ran,
      (select coalesce(sum(switches), 0) from untold) as untold
    from thread t join process p using (upid) order by slices desc;";

fn config(instance: &Instance, categories: &str) -> String {
    format!(
        r#"buffers {{ size_kb: 131072 fill_policy: DISCARD }}
        data_sources {{ config {{ name: "linux.ftrace" ftrace_config {{
          instance_name: "{}" ftrace_events: "sched/sched_switch" ftrace_events: "sched/sched_waking"
          ftrace_events: "task/task_newtask" ftrace_events: "task/task_rename"
        }} }} }}
        data_sources {{ config {{ name: "linux.process_stats" process_stats_config {{
          scan_all_processes_on_start: true record_thread_names: true
        }} }} }}
        data_sources {{ config {{ name: "track_event" track_event_config {{ {categories} }} }} }}"#,
        instance.name()
    )
}

/// Applications on both SDKs.
mod applications {
    use super::*;

    const WORKLOAD: Workload = Workload { threads: 2, rounds: 200, pause_us: 500 };

    esatto_tests::for_each_service!(scenario);

    fn scenario(service: Implementation) -> Result<(), Skip> {
        [Peer::TraceProcessor, Peer::Producer].into_iter().try_for_each(Peer::require)?;
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(service);
        let _probes = harness.probes(Implementation::Ours);
        let instance = Instance::new("applications");
        let categories = "enabled_categories: \"rendering\" enabled_categories: \"debug\"";
        // The applications wait for a session, so it begins with the machine alone.
        let mut recording = harness.record(service, "trace", &config(&instance, categories));
        instance.wait_until_on("task/task_rename");
        let mut programs = [Implementation::Ours, Implementation::Theirs].map(|it| harness.application(it, WORKLOAD));
        programs.iter_mut().for_each(esatto_tests::Program::wait_ok);
        harness.wait_for_producers(1);
        let trace = recording.stop();

        let events = Trace::load(&trace);
        events.assert_clean();
        let threads = tp::rows(&trace, THREADS);
        for program in &programs {
            events.assert_whole(&Expected { pid: program.pid(), workload: WORKLOAD, details: true });
            let workers: Vec<_> = threads
                .iter()
                .filter(|row| row.int("pid") == i64::from(program.pid()) && row.text("name").starts_with("worker-"))
                // A scan that meets the begin of a thread may have described it a moment too early:
                // then the trace processor has it twice.
                .filter(|row| row.int("runs") > 0)
                .collect();
            assert_eq!(workers.len(), 2, "{workers:?}");
            for worker in workers {
                // It sleeps once in a round.
                assert!(worker.int("runs") + worker.int("untold") > 200, "{worker:?}");
                let (all, ran) = (worker.int("slices"), worker.int("ended_while_it_ran"));
                // Of the untold switches, those to another task leave no idle time.
                let least = if worker.int("untold") == 0 { all } else { all * 19 / 20 };
                assert!(ran >= least, "{worker:?}");
            }
        }
        Ok(())
    }
}

mod a_browser {
    use super::*;

    const PAGE: &str = "data:text/html,<script>setInterval(()=>{document.title=Date.now()},5)</script>";

    esatto_tests::for_each_service!(scenario);

    fn scenario(service: Implementation) -> Result<(), Skip> {
        [Peer::TraceProcessor, Peer::Browser].into_iter().try_for_each(Peer::require)?;
        let _turn = tracefs()?;
        let harness = Harness::new();
        let _service = harness.service(service);
        let _probes = harness.probes(Implementation::Ours);
        let program = std::env::var_os("CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into());
        let mut command = harness.command(std::path::Path::new(&program));
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]);
        command.arg("--enable-features=EnablePerfettoSystemTracing");
        command.arg(format!("--user-data-dir={}", harness.path("profile").display()));
        let mut browser = harness.start("chromium", command.arg(PAGE));
        // Its processes are producers by themselves.
        wait_until("the browser is connected", || {
            assert!(browser.is_running(), "{}", browser.log());
            (harness.state().producers.len() > 3).then_some(())
        });
        let instance = Instance::new("browser");
        let mut recording = harness.record(service, "trace", &config(&instance, "enabled_categories: \"*\""));
        instance.wait_until_on("task/task_rename");
        std::thread::sleep(std::time::Duration::from_secs(2));
        let trace = recording.stop();
        browser.signal(esatto_tests::Signal::TERM);

        let [threads, losses] = <[_; 2]>::try_from(tp::query(
            &trace,
            &format!("{THREADS} select name, value from stats where value > 0 and severity = 'data_loss'"),
        ))
        .expect("two statements");
        assert!(losses.is_empty(), "{losses:?}");
        for name in ["CrBrowserMain", "CrRendererMain"] {
            let thread = threads.iter().find(|row| row.text("name") == name);
            let thread = thread.unwrap_or_else(|| panic!("there is no {name}"));
            assert!(thread.int("runs") > 10 && thread.int("slices") > 10, "{thread:?}");
            // Its clock is converted: a slice may seem to end when the thread has stopped.
            let (all, ran) = (thread.int("slices"), thread.int("ended_while_it_ran"));
            assert!(ran * 20 >= all * 19, "{thread:?}");
        }
        Ok(())
    }
}
