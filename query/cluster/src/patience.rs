//! The time for which a client waits for a job that makes no progress.

use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ballista_core::serde::protobuf::job_status::Status;
use datafusion::common::{Result, exec_datafusion_err};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use crate::reports;

/// Seconds, unless the user says otherwise. A task of a cluster reads a whole trace, and a stage of
/// Ballista's own scheduler, which tells no tasks, can be all traces.
pub(crate) const DEFAULT: u64 = 1800;

/// The progress of a job, as its client knows it.
#[derive(Debug)]
pub(crate) struct Progress {
    /// `None` waits without end.
    limit: Option<Duration>,
    /// When the status changed, or the job was sent.
    since: Instant,
    status: Option<Status>,
}

impl Progress {
    pub(crate) fn new(limit: Option<Duration>, now: Instant) -> Self {
        Self { limit, since: now, status: None }
    }

    /// Takes a status. One that is equal to the status before is no progress.
    pub(crate) fn update(&mut self, status: &Status, now: Instant) {
        if self.status.as_ref() != Some(status) {
            self.status = Some(status.clone());
            self.since = now;
        }
    }

    /// Returns the reason to give up, if it is time.
    pub(crate) fn overdue(&self, now: Instant) -> Option<String> {
        let limit = self.limit.filter(|limit| now.saturating_duration_since(self.since) >= *limit)?;
        let report = match &self.status {
            Some(Status::Running(job)) => reports::of_status(job),
            _ => None,
        };
        let what = match (report, &self.status) {
            (Some(report), _) => format!("{report}; look at the logs of the executors, and end one that hangs"),
            (None, Some(Status::Running(_))) => {
                "the scheduler is that of Ballista, which tells stages and no tasks; look at the logs of its executors"
                    .to_owned()
            }
            (None, _) => "the scheduler has not said that it runs; look at its log".to_owned(),
        };
        Some(format!(
            "the job made no progress in {} s: {what}, or give a longer time with --cluster-timeout",
            limit.as_secs()
        ))
    }
}

/// Returns rows of an executor. If it sends none for so long, they end with an error.
pub(crate) fn rows_within(
    rows: impl Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
    limit: Option<Duration>,
    executor: String,
) -> BoxStream<'static, Result<RecordBatch>> {
    let Some(limit) = limit else { return rows.boxed() };
    let next = move |state: Option<(_, String)>| async move {
        let (mut rows, executor) = state?;
        match tokio::time::timeout(limit, StreamExt::next(&mut rows)).await {
            Ok(batch) => batch.map(|batch| (batch, Some((rows, executor)))),
            Err(_) => {
                let error = exec_datafusion_err!(
                    "the executor at {executor} has sent no rows for {} s; look at its log, or give a longer time with \
                     --cluster-timeout",
                    limit.as_secs()
                );
                Some((Err(error), None))
            }
        }
    };
    futures::stream::unfold(Some((rows, executor)), next).boxed()
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf::RunningJob;

    use super::*;

    fn running(scheduler: &str) -> Status {
        Status::Running(RunningJob { scheduler: scheduler.to_owned(), ..RunningJob::default() })
    }

    #[test]
    fn a_job_that_gets_on_is_never_overdue() {
        let begin = Instant::now();
        let mut progress = Progress::new(Some(Duration::from_secs(60)), begin);
        for number in 1..100 {
            let now = begin + Duration::from_secs(59 * number);
            assert_eq!(progress.overdue(now), None);
            progress.update(&running(&format!("esatto-cluster: {number} tasks have finished")), now);
        }
    }

    #[test]
    fn a_job_that_stands_still_is_overdue() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut progress = Progress::new(Some(Duration::from_secs(60)), begin);
        assert!(progress.overdue(at(60)).is_some_and(|reason| reason.contains("has not said that it runs")));
        let status = running("esatto-cluster: 3 tasks have finished, others run on host:50051 (2)");
        progress.update(&status, at(10));
        progress.update(&status, at(50));
        assert_eq!(progress.overdue(at(69)), None);
        let reason = progress.overdue(at(70)).expect("it is time");
        assert!(
            reason.contains("no progress in 60 s: 3 tasks have finished, others run on host:50051 (2)"),
            "{reason}"
        );
        progress.update(&running("localhost:50050"), at(80));
        assert!(progress.overdue(at(140)).is_some_and(|reason| reason.contains("stages and no tasks")));
        let mut endless = Progress::new(None, begin);
        endless.update(&status, begin);
        assert_eq!(endless.overdue(at(1_000_000)), None);
    }

    #[test]
    fn rows_that_do_not_come_are_an_error() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let batch = RecordBatch::new_empty(std::sync::Arc::new(arrow::datatypes::Schema::empty()));
        let rows = futures::stream::iter([Ok(batch)]).chain(futures::stream::pending());
        let rows = rows_within(rows, Some(Duration::from_millis(1)), "host:1".to_owned());
        let rows: Vec<Result<RecordBatch>> = runtime.block_on(rows.collect());
        assert!(rows[0].is_ok() && rows.len() == 2, "{rows:?}");
        let error = rows[1].as_ref().expect_err("no rows come").to_string();
        assert!(error.contains("the executor at host:1 has sent no rows"), "{error}");
    }
}
