//! A job of Ballista: its plan is sent, it is followed until its end, and its rows are fetched.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ballista_core::client::BallistaClient;
use ballista_core::extension::SessionConfigHelperExt as _;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::get_job_status_result::FlightProxy;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::protobuf::operator_metric::Metric;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, CleanJobDataParams, ExecuteQueryParams, GetJobMetricsParams, GetJobStatusResult, KeyValuePair,
    PartitionLocation,
};
use ballista_core::version::insert_version_header;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::prelude::SessionConfig;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use tonic::transport::{Channel, Endpoint};

use crate::address::{Address, Readiness};
use crate::cluster::{Cluster, lock};
use crate::patience::{self, Progress};
use crate::scan::damage_of_metric;

/// Time to connect to a scheduler or an executor.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Time for a scheduler to take a plan, which it checks and splits into tasks.
const SUBMIT_TIME: Duration = Duration::from_secs(120);
/// Time for an executor to begin with its rows, and for short questions.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Between questions whether a scheduler still has executors.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Questions in a row that find no executors before a job is given up.
const CHECKS_WITHOUT_EXECUTORS: u32 = 6;
/// Bytes of a message.
const MAX_MESSAGE: usize = 64 << 20;
/// Runs of a job, if the executors that have its rows are lost.
const MAX_RUNS: u32 = 2;

/// Partitions that are fetched ahead.
const FETCHES: usize = 4;

/// Exit status of a program that was interrupted, as of shells.
const INTERRUPTED: i32 = 130;

type Scheduler = SchedulerGrpcClient<Channel>;

/// Returns the settings of a session that go with a plan.
pub(crate) fn settings(config: &SessionConfig) -> Vec<KeyValuePair> {
    config.to_key_value_pairs()
}

/// Runs a plan, and returns its rows.
pub(crate) async fn run(
    cluster: Arc<Cluster>,
    plan: Vec<u8>,
    settings: Vec<KeyValuePair>,
    has_traces: bool,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    if cluster.takes_interrupts.load(Ordering::Relaxed) {
        cancel_on_interrupt(&cluster);
    }
    let mut runs = 0;
    loop {
        runs += 1;
        let mut job = Job::submit(&cluster, plan.clone(), settings.clone()).await?;
        let (places, proxy) = job.follow(&cluster.address).await?;
        if has_traces && let Err(reason) = job.note_damage(&cluster).await {
            cluster.note(format!("the cluster does not say which traces are damaged: {reason}"));
        }
        let scheduler = (cluster.address.host.clone(), cluster.address.port);
        let timeout = cluster.timeout();
        let fetch = move |place| fetch(place, proxy.clone(), scheduler.clone(), timeout);
        let streams = futures::stream::iter(places).map(fetch);
        let mut streams = streams.buffered(FETCHES).boxed();
        // Before the first row is out, lost rows can be had again.
        let first = match streams.next().await {
            Some(Err(_)) if runs < MAX_RUNS => continue,
            first => first,
        };
        let rows = futures::stream::iter(first).chain(streams).try_flatten();
        let end = futures::stream::once(job.finish()).filter_map(async |()| None);
        return Ok(rows.chain(end).boxed());
    }
}

/// A job that has been sent. If it is dropped before its end, the cluster is told.
struct Job {
    cluster: Arc<Cluster>,
    scheduler: Scheduler,
    id: Option<String>,
    updates: Option<tonic::Streaming<GetJobStatusResult>>,
    has_ended: bool,
}

impl Job {
    async fn submit(cluster: &Arc<Cluster>, plan: Vec<u8>, settings: Vec<KeyValuePair>) -> Result<Self> {
        let address = &cluster.address;
        let mut scheduler = connect(address).await?;
        let query = ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(plan)),
            settings,
            session_id: session_id(),
            operation_id: String::new(),
        };
        let mut request = tonic::Request::new(query);
        insert_version_header(request.metadata_mut());
        let answer = tokio::time::timeout(SUBMIT_TIME, scheduler.execute_query_push(request)).await;
        let answer = answer
            .map_err(|_| {
                exec_datafusion_err!("the scheduler at {address} did not take the query in {} s", SUBMIT_TIME.as_secs())
            })?
            .map_err(|status| explain_refusal(address, status.message()))?;
        let cluster = Arc::clone(cluster);
        Ok(Self { cluster, scheduler, id: None, updates: Some(answer.into_inner()), has_ended: false })
    }

    /// Follows the job until it has ended. Returns the places of its rows.
    async fn follow(&mut self, address: &Address) -> Result<(Vec<PartitionLocation>, Option<FlightProxy>)> {
        let mut updates = self.updates.take().expect("a job is followed once");
        let mut checks_without = 0;
        let mut progress = Progress::new(self.cluster.timeout(), Instant::now());
        let mut next_check = Instant::now() + CHECK_INTERVAL;
        loop {
            let update = match tokio::time::timeout_at(next_check.into(), updates.next()).await {
                Ok(Some(Ok(update))) => update,
                Ok(Some(Err(status))) => return exec_err!("the scheduler at {address} is lost: {}", status.message()),
                Ok(None) => return exec_err!("the scheduler at {address} ended before the query"),
                Err(_) => {
                    if let Some(reason) = progress.overdue(Instant::now()) {
                        return exec_err!("the cluster at {address}: {reason}");
                    }
                    let asked = address.clone();
                    let asked = tokio::task::spawn_blocking(move || asked.ask()).await;
                    let readiness = asked.map_err(|error| DataFusionError::External(Box::new(error)))?;
                    checks_without = match readiness {
                        Ok(Readiness::Ready) => 0,
                        Ok(Readiness::NoExecutors) | Err(_) => checks_without + 1,
                    };
                    if checks_without >= CHECKS_WITHOUT_EXECUTORS {
                        let time = CHECK_INTERVAL.as_secs() * u64::from(CHECKS_WITHOUT_EXECUTORS);
                        return exec_err!(
                            "the cluster at {address} has had no executors for {time} s; start some with \
                             'esatto-cluster executor --scheduler {address} --traces FOLDER', and ask again"
                        );
                    }
                    next_check = Instant::now() + CHECK_INTERVAL;
                    continue;
                }
            };
            let GetJobStatusResult { status: Some(status), flight_proxy } = update else { continue };
            if self.id.as_ref() != Some(&status.job_id) {
                lock(&self.cluster.jobs).insert(status.job_id.clone());
                self.id = Some(status.job_id);
            }
            if let Some(status) = &status.status {
                progress.update(status, Instant::now());
            }
            match status.status {
                Some(Status::Failed(failure)) => {
                    self.has_ended = true;
                    return Err(explain_failure(&failure.error));
                }
                Some(Status::Successful(done)) => {
                    self.has_ended = true;
                    return Ok((done.partition_location, flight_proxy));
                }
                Some(Status::Queued(_) | Status::Running(_)) | None => {}
            }
        }
    }

    /// Asks which traces were found damaged.
    async fn note_damage(&mut self, cluster: &Cluster) -> Result<(), String> {
        let Some(job_id) = self.id.clone() else { return Ok(()) };
        let question = self.scheduler.get_job_metrics(GetJobMetricsParams { job_id });
        let answer = tokio::time::timeout(ANSWER_TIME, question).await.map_err(|_| "no answer".to_owned())?;
        let answer = answer.map_err(|status| status.message().to_owned())?.into_inner();
        let operators = answer.stages.into_iter().flat_map(|stage| stage.operators);
        for metric in operators.flat_map(|operator| operator.metrics) {
            if let Some(Metric::Count(count)) = metric.metric
                && let Some((path, damage)) = damage_of_metric(&count.name)
            {
                cluster.add_defect(path, damage);
            }
        }
        Ok(())
    }

    /// Tells the executors that the rows have been fetched.
    async fn finish(mut self) {
        if let Some(job_id) = self.id.clone() {
            // Without it they are removed later.
            let cleaned = self.scheduler.clean_job_data(CleanJobDataParams { job_id, remove_stage_ids: Vec::new() });
            let _done_or_late = tokio::time::timeout(CONNECT_TIME, cleaned).await;
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(job_id) = self.id.take() else { return };
        lock(&self.cluster.jobs).remove(&job_id);
        if self.has_ended {
            return;
        }
        let mut scheduler = self.scheduler.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { scheduler.cancel_job(CancelJobParams { job_id }).await });
        }
    }
}

/// Cancels all jobs when the user interrupts the program, and ends it.
fn cancel_on_interrupt(cluster: &Arc<Cluster>) {
    static ONCE: Once = Once::new();
    let cluster = Arc::clone(cluster);
    ONCE.call_once(|| {
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            let jobs = lock(&cluster.jobs).clone();
            let cancelled = async {
                let Ok(mut scheduler) = connect(&cluster.address).await else { return };
                for job_id in jobs {
                    // A scheduler that does not answer forgets the job with its executors.
                    let _cancelled_or_lost = scheduler.cancel_job(CancelJobParams { job_id }).await;
                }
            };
            let _done_or_late = tokio::time::timeout(CONNECT_TIME, cancelled).await;
            std::process::exit(INTERRUPTED);
        });
    });
}

/// Returns a name for a session that no other one has: the settings of a query are those of its
/// session.
fn session_id() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("esatto-{:016x}{:016x}", RandomState::new().hash_one(1), RandomState::new().hash_one(2))
}

async fn connect(address: &Address) -> Result<Scheduler> {
    let failed =
        |error: tonic::transport::Error| exec_datafusion_err!("cannot reach the scheduler at {address}: {error}");
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(failed)?;
    // A scheduler whose machine is gone does not close its connections.
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIME)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(CHECK_INTERVAL)
        .keep_alive_timeout(ANSWER_TIME)
        .keep_alive_while_idle(true);
    let channel = endpoint.connect().await.map_err(failed)?;
    Ok(SchedulerGrpcClient::new(channel).max_encoding_message_size(MAX_MESSAGE).max_decoding_message_size(MAX_MESSAGE))
}

/// Fetches the rows of a partition from the executor that has them.
async fn fetch(
    place: PartitionLocation,
    proxy: Option<FlightProxy>,
    scheduler: (String, u16),
    limit: Option<Duration>,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let (Some(executor), Some(partition)) = (&place.executor_meta, place.partition_id.clone()) else {
        return exec_err!("the scheduler does not say where the rows are");
    };
    let port = u16::try_from(executor.port).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let own = (executor.host.clone(), port);
    let (host, port) = match proxy {
        Some(FlightProxy::External(address)) => match address.rsplit_once(':') {
            Some((host, port)) => (host.to_owned(), port.parse().unwrap_or(0)),
            None => return exec_err!("the scheduler names the proxy '{address}', which is not HOST:PORT"),
        },
        Some(FlightProxy::Local(true)) => scheduler,
        _ => own.clone(),
    };
    let rows = async {
        let mut client = BallistaClient::try_new(&host, port, MAX_MESSAGE, false, None, 1, 0, 0, 0).await?;
        let partition = partition.into();
        client
            .fetch_partition_proxied(&executor.id, &partition, place.file_id, place.layout(), &own.0, own.1, true)
            .await
    };
    let reason = match tokio::time::timeout(ANSWER_TIME, rows).await {
        Ok(Ok(rows)) => return Ok(patience::rows_within(rows, limit, format!("{host}:{port}"))),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer in {} s", ANSWER_TIME.as_secs()),
    };
    exec_err!(
        "cannot fetch the rows from the executor at {host}:{port}: {reason}; if it runs, this machine must be able to \
         reach it under this address: give the executor --advertise"
    )
}

/// Makes an error of the answer of a scheduler that refuses a plan.
fn explain_refusal(address: &Address, message: &str) -> DataFusionError {
    if message.contains(FOREIGN_PLAN) {
        return exec_datafusion_err!(
            "the scheduler at {address} cannot read traces, because it is that of Ballista itself; \
             start 'esatto-cluster scheduler' in its place, or ask a lake"
        );
    }
    if let Some((_, function)) = message.split_once(FOREIGN_FUNCTION) {
        return exec_datafusion_err!(
            "the cluster at {address} does not have the function '{}', because it is that of Ballista itself; \
             ask without the function, or start 'esatto-cluster scheduler' and 'esatto-cluster executor'",
            function.trim()
        );
    }
    exec_datafusion_err!("the scheduler at {address} refuses the query: {message}")
}

/// Message of Ballista about a plan that only this program knows.
const FOREIGN_PLAN: &str = "Could not deserialize BallistaPhysicalPlanNode";

/// Message of Ballista about an executor that cannot decode a task.
const REJECTED_TASK: &str = "task could not be prepared or was rejected by executor";

/// Message of Ballista about a function that only this program knows.
const FOREIGN_FUNCTION: &str = "PhysicalExtensionCodec is not provided for scalar function";

/// Makes an error of the reason why a job failed.
fn explain_failure(message: &str) -> DataFusionError {
    if message.contains(FOREIGN_PLAN) {
        return exec_datafusion_err!(
            "an executor of the cluster cannot read traces, because it is that of Ballista itself; \
             start 'esatto-cluster executor' in its place, or ask a lake"
        );
    }
    if message.contains(REJECTED_TASK) {
        return exec_datafusion_err!(
            "an executor of the cluster rejects the query: it is that of Ballista itself, which cannot read traces, or \
             not esatto-cluster {}; start 'esatto-cluster executor' of this version in its place, or ask a lake",
            crate::wire::VERSION
        );
    }
    // The kernel of nested errors of Ballista and DataFusion.
    let mut kernel = message;
    for before in ["Execution error: ", "Execution(\"", "Arrow error: ", "External error: "] {
        if let Some((_, rest)) = kernel.rsplit_once(before) {
            kernel = rest;
        }
    }
    let mut kernel = kernel.trim_end_matches(['"', ')', ' ', '\n']).to_owned();
    // The end of its own, which was cut off with those of the errors around it.
    let open = kernel.matches('(').count().saturating_sub(kernel.matches(')').count());
    kernel.extend(core::iter::repeat_n(')', open));
    if !kernel.starts_with("trace ") {
        return exec_datafusion_err!("{kernel}");
    }
    match kernel.contains("Permission denied") {
        true => exec_datafusion_err!("{kernel}; the user of the executors must be able to read the traces"),
        false => exec_datafusion_err!("{kernel}; executors need the traces under the same path, inside of --traces"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_of_an_error_is_shown() {
        let message = "Job failed due to stage 1 failed: Task failed due to runtime execution error: \
            DataFusionError(Execution(\"trace /a/b.pftrace on host: cannot read it: No such file\"))";
        let error = explain_failure(message).strip_backtrace();
        assert_eq!(
            error,
            "Execution error: trace /a/b.pftrace on host: cannot read it: No such file; \
            executors need the traces under the same path, inside of --traces"
        );
        let message = "DataFusionError(Execution(\"trace /a/b.pftrace on host: cannot read it: Permission denied \
            (os error 13)\"))";
        let error = explain_failure(message).strip_backtrace();
        assert_eq!(
            error,
            "Execution error: trace /a/b.pftrace on host: cannot read it: Permission denied (os error 13); \
            the user of the executors must be able to read the traces"
        );
        let error = explain_failure("DataFusionError(Internal(\"Could not deserialize BallistaPhysicalPlanNode: x\"))");
        assert!(error.to_string().contains("esatto-cluster executor"), "{error}");
    }

    #[test]
    fn sessions_have_different_names() {
        assert_ne!(session_id(), session_id());
    }
}
