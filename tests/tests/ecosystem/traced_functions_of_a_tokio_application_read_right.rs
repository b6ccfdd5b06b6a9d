//! `#[esatto::trace]` on async functions, by many tasks at once.

use std::time::Duration;

use esatto_tests::sdk::{Recorder, Trace};
use esatto_trace::{Summary, TrackType};
use tokio::time::sleep;

use super::{assert_lanes_read_right, everything, runtime};

const TASKS: u64 = 300;

esatto::categories! { static APP = "app"; }

esatto_tests::scenario!(record, check);

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(everything());
    runtime().block_on(async {
        let tasks: Vec<_> = (0..TASKS).map(|id| tokio::spawn(task(id))).collect();
        for (id, task) in tasks.into_iter().enumerate() {
            if id % 10 == 9 {
                task.abort();
            }
            let _ = task.await;
        }
    });
    recorder.finish(session);
}

#[esatto::trace(APP, args(id), ret)]
async fn task(id: u64) -> u64 {
    // Once, so that no task is cancelled before it begins.
    tokio::task::yield_now().await;
    let (left, right) = tokio::join!(step(id, 1), step(id, 2));
    tokio::select! {
        _ = step(id, 0) => {}
        _ = step(id, 1000) => {}
    }
    sync_step(left + right)
}

#[esatto::trace(APP, args(all))]
async fn step(task: u64, milliseconds: u64) -> u64 {
    sleep(Duration::from_millis(milliseconds)).await;
    task
}

#[esatto::trace(APP)]
fn sync_step(sum: u64) -> u64 {
    sum / 2
}

fn check(trace: &Trace) {
    assert_lanes_read_right(trace);
    let tasks = "select count(*) as number, count(distinct extract_arg(args, 'debug.id')) as ids,
            sum(extract_arg(args, 'debug.id') = extract_arg(args, 'debug.return')) as returned
        from lanes where name = 'task'";
    let steps =
        "select extract_arg(args, 'debug.milliseconds') as milliseconds, count(*) as number, max(dur) as longest
        from lanes where name = 'step' group by milliseconds order by milliseconds";
    // The poll of a step is inside a poll of its task.
    let elsewhere = "select polls.id from chain join lanes on chain.lane = lanes.id join polls on chain.poll = polls.id
        join slice on slice.id = polls.id left join chain as outer_chain on outer_chain.poll = slice.parent_id
        left join lanes as task on task.id = outer_chain.lane
        where lanes.name = 'step' and extract_arg(task.args, 'debug.id') is not extract_arg(lanes.args, 'debug.task')";
    let prelude = [super::SLICES, super::CHAINS].concat();
    let [tasks, steps, elsewhere] = trace.query([&[&prelude, tasks].concat(), steps, elsewhere]);
    let begun = tasks[0].int("number");
    assert!((270..=300).contains(&begun), "those that are cancelled may not have begun: {begun}");
    assert_eq!(tasks[0].int("ids"), begun);
    assert!(tasks[0].int("returned") >= 270, "{tasks:#?}");
    assert_eq!(steps.iter().map(|row| row.int("milliseconds")).collect::<Vec<_>>(), [0, 1, 2, 1000]);
    assert!(steps[3].int("longest") < 1_000_000_000, "is cancelled, and ends then");
    assert!(elsewhere.is_empty(), "polls of steps outside of their task: {elsewhere:#?}");
    assert_info_tells_lifetimes_from_polls(trace, begun);
}

/// Asserts that `esatto info` counts the lifetimes of tasks apart from their polls.
fn assert_info_tells_lifetimes_from_polls(trace: &Trace, lifetimes: i64) {
    let summary = Summary::read(&trace.bytes()[..]);
    let of = |track_type| {
        let mut rows = summary.slices.by_name.iter().filter(|entry| entry.name.as_deref() == Some("task"));
        let row = rows.find(|entry| entry.track_type == track_type).expect("a row");
        (i64::try_from(row.count).expect("few"), row.max_ns)
    };
    let ((count, longest), (polls, longest_poll)) = (of(TrackType::Custom), of(TrackType::Thread));
    assert_eq!(count, lifetimes);
    assert!(polls > count && longest_poll < longest, "{polls} polls of {longest_poll} ns, {longest} ns");
}
