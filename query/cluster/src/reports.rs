//! Reports of the scheduler about the tasks of a job. Ballista tells a client when a stage has
//! ended, but not when a task has, so a client could not tell a long stage from one that hangs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::protobuf::{JobStatus, RunningJob};
use ballista_core::{JobId, JobStatusSubscriber};
use ballista_scheduler::cluster::{JobState, JobStateEventStream};
use ballista_scheduler::scheduler_server::SchedulerServer;
use ballista_scheduler::state::execution_graph::ExecutionGraphBox;
use ballista_scheduler::state::execution_stage::ExecutionStage;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::sync::mpsc::WeakSender;

/// Time between reports.
const INTERVAL: Duration = Duration::from_secs(2);

/// Begins the name of the scheduler in the status of a running job, if it is a report.
const PREFIX: &str = "esatto-cluster: ";

/// Executors that a report names.
const NAMED_EXECUTORS: usize = 4;

/// Returns the report in the status of a running job; `None` if it is not from this scheduler.
pub(crate) fn of_status(job: &RunningJob) -> Option<&str> {
    job.scheduler.strip_prefix(PREFIX)
}

/// The jobs of a scheduler, with the clients that follow them.
pub(crate) struct ReportedJobs {
    jobs: Arc<dyn JobState>,
    /// The stream of a client ends when its job is forgotten, so it is not kept here.
    clients: Mutex<HashMap<JobId, WeakSender<JobStatus>>>,
}

impl ReportedJobs {
    pub(crate) fn new(jobs: Arc<dyn JobState>) -> Arc<Self> {
        Arc::new(Self { jobs, clients: Mutex::default() })
    }

    /// Returns the clients whose jobs are not forgotten.
    fn clients(&self) -> Vec<(JobId, JobStatusSubscriber)> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, client| client.strong_count() > 0);
        clients.iter().filter_map(|(job, client)| Some((job.clone(), client.upgrade()?))).collect()
    }

    /// Tells clients about their jobs until the process ends.
    pub(crate) async fn report(self: Arc<Self>, scheduler: SchedulerServer<LogicalPlanNode, PhysicalPlanNode>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let clients = self.clients();
            if clients.is_empty() {
                continue;
            }
            let mut tasks = HashMap::new();
            for (job, info) in scheduler.state.task_manager.get_running_job_cache().iter() {
                let graph = info.execution_graph.read().await;
                tasks.insert(job.clone(), (Tasks::of(&graph), graph.status().clone()));
            }
            let of_all: usize = tasks.values().map(|(tasks, _)| tasks.finished).sum();
            for (job, client) in clients {
                let Some((tasks, status)) = tasks.get(&job) else { continue };
                let Some(Status::Running(running)) = &status.status else { continue };
                let mut executors = BTreeMap::new();
                for (id, count) in &tasks.running {
                    // One that is lost has no address any more.
                    let address = match scheduler.state.executor_manager.get_executor_metadata(id).await {
                        Ok(executor) => format!("{}:{}", executor.host, executor.port),
                        Err(_) => "an executor that is lost".to_owned(),
                    };
                    *executors.entry(address).or_insert(0) += count;
                }
                let scheduler = format!("{PREFIX}{}", text(tasks.finished, &executors, of_all));
                let status = Status::Running(RunningJob { scheduler, ..running.clone() });
                let status = JobStatus { status: Some(status), job_name: String::new(), job_id: job.into() };
                // A client that has not read the reports before needs no further one.
                let _sent_or_full = client.try_send(status);
            }
        }
    }
}

/// The tasks of a job.
struct Tasks {
    finished: usize,
    /// Tasks that run, by executor.
    running: BTreeMap<String, usize>,
}

impl Tasks {
    fn of(graph: &ExecutionGraphBox) -> Self {
        let finished = |stage: &ExecutionStage| match stage {
            ExecutionStage::Running(stage) => stage.successful_tasks(),
            ExecutionStage::Successful(stage) => stage.task_infos.len(),
            ExecutionStage::UnResolved(_) | ExecutionStage::Resolved(_) | ExecutionStage::Failed(_) => 0,
        };
        let mut running = BTreeMap::new();
        for task in graph.running_tasks() {
            *running.entry(task.executor_id).or_insert(0) += 1;
        }
        Self { finished: graph.stages().values().map(finished).sum(), running }
    }
}

/// Returns the text of a report: it changes when the job gets on.
fn text(finished: usize, executors: &BTreeMap<String, usize>, of_all_jobs: usize) -> String {
    if executors.is_empty() {
        // Its turn comes when tasks of other jobs finish.
        return format!(
            "{finished} tasks have finished, and none runs; executors have finished {of_all_jobs} of all jobs"
        );
    }
    let named = executors.iter().take(NAMED_EXECUTORS).map(|(address, tasks)| format!("{address} ({tasks})"));
    let mut named: Vec<String> = named.collect();
    if executors.len() > NAMED_EXECUTORS {
        named.push(format!("{} more", executors.len() - NAMED_EXECUTORS));
    }
    format!("{finished} tasks have finished, others run on {}", named.join(", "))
}

#[async_trait]
impl JobState for ReportedJobs {
    fn accept_job(&self, job_id: &JobId, job_name: &str, queued_at: u64) -> Result<()> {
        self.jobs.accept_job(job_id, job_name, queued_at)
    }

    fn pending_job_number(&self) -> usize {
        self.jobs.pending_job_number()
    }

    async fn submit_job(
        &self,
        job_id: JobId,
        graph: &ExecutionGraphBox,
        subscriber: Option<JobStatusSubscriber>,
    ) -> Result<()> {
        if let Some(client) = &subscriber {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            clients.insert(job_id.clone(), client.downgrade());
        }
        self.jobs.submit_job(job_id, graph, subscriber).await
    }

    async fn get_jobs(&self) -> Result<HashSet<JobId>> {
        self.jobs.get_jobs().await
    }

    async fn get_all_jobs(&self) -> Result<HashSet<JobId>> {
        self.jobs.get_all_jobs().await
    }

    async fn get_job_status(&self, job_id: &JobId) -> Result<Option<JobStatus>> {
        self.jobs.get_job_status(job_id).await
    }

    async fn get_execution_graph(&self, job_id: &JobId) -> Result<Option<ExecutionGraphBox>> {
        self.jobs.get_execution_graph(job_id).await
    }

    async fn save_job(&self, job_id: &JobId, graph: &ExecutionGraphBox) -> Result<()> {
        self.jobs.save_job(job_id, graph).await
    }

    async fn fail_unscheduled_job(&self, job_id: &JobId, reason: String) -> Result<()> {
        self.jobs.fail_unscheduled_job(job_id, reason).await
    }

    async fn remove_job(&self, job_id: &JobId) -> Result<()> {
        self.jobs.remove_job(job_id).await
    }

    async fn try_acquire_job(&self, job_id: &JobId) -> Result<Option<ExecutionGraphBox>> {
        self.jobs.try_acquire_job(job_id).await
    }

    async fn job_state_events(&self) -> Result<JobStateEventStream> {
        self.jobs.job_state_events().await
    }

    async fn create_or_update_session(&self, session_id: &str, config: &SessionConfig) -> Result<Arc<SessionContext>> {
        self.jobs.create_or_update_session(session_id, config).await
    }

    async fn remove_session(&self, session_id: &str) -> Result<()> {
        self.jobs.remove_session(session_id).await
    }

    fn produce_config(&self) -> SessionConfig {
        self.jobs.produce_config()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_changes_when_the_job_gets_on() {
        let executors = |count: usize| (0..count).map(|number| (format!("host{number}:50051"), number + 1)).collect();
        assert_eq!(text(3, &executors(2), 9), "3 tasks have finished, others run on host0:50051 (1), host1:50051 (2)");
        assert_eq!(text(3, &executors(2), 9), text(3, &executors(2), 10));
        assert_ne!(text(3, &executors(2), 9), text(4, &executors(2), 9));
        assert!(text(0, &executors(6), 0).ends_with("host3:50051 (4), 2 more"));
        // Its tasks wait for those of other jobs.
        assert_ne!(text(0, &executors(0), 1), text(0, &executors(0), 2));
    }

    #[test]
    fn a_report_is_known_by_its_begin() {
        let job = |scheduler: &str| RunningJob { scheduler: scheduler.to_owned(), ..RunningJob::default() };
        assert_eq!(of_status(&job("esatto-cluster: 3 tasks")), Some("3 tasks"));
        assert_eq!(of_status(&job("localhost:50050")), None);
    }
}
