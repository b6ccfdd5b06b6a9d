//! The scheduler: that of Ballista, which also knows scans of traces.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::object_store::{session_config_with_s3_support, session_state_with_s3_support};
use ballista_scheduler::cluster::{BallistaCluster, JobState};
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use esatto_query::TracePool;

use crate::codec::TraceCodec;
use crate::reports::ReportedJobs;
use crate::{MAX_MESSAGE, executor};

/// Seconds without a sign of life after which an executor is lost.
const EXECUTOR_TIMEOUT: u64 = 6 * executor::HEARTBEAT;
/// Seconds after which rows of finished jobs are removed.
const ROWS_KEPT: u64 = 300;

/// Seconds after which finished jobs are forgotten.
const JOBS_KEPT: u64 = 120;

/// Options of a scheduler.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) bind: SocketAddr,
    pub(crate) advertise: Option<String>,
}

/// Refuses an address that others cannot connect to.
pub(crate) fn check_advertised(bind: IpAddr, advertise: Option<&str>) -> Result<(), String> {
    if bind.is_unspecified() && advertise.is_none() {
        return Err(format!("--bind {bind} means all addresses, none of which others know; name one with --advertise"));
    }
    Ok(())
}

/// Runs a scheduler until the process ends.
pub(crate) async fn run(options: Options) -> Result<(), String> {
    check_advertised(options.bind.ip(), options.advertise.as_deref())?;
    let listener = tokio::net::TcpListener::bind(options.bind)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}; choose another address with --bind", options.bind))?;
    let address = listener.local_addr().map_err(|error| format!("the address of the socket: {error}"))?;
    // Plans pass through, nothing is opened.
    let codec = TraceCodec::new(TracePool::new(0, Some(&[]))?, PathBuf::new());
    let config = SchedulerConfig {
        external_host: options.advertise.unwrap_or_else(|| address.ip().to_string()),
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        executor_timeout_seconds: EXECUTOR_TIMEOUT,
        expire_dead_executor_interval_seconds: executor::HEARTBEAT,
        no_executors_grace_period_seconds: EXECUTOR_TIMEOUT,
        finished_job_state_clean_up_interval_seconds: JOBS_KEPT,
        finished_job_data_clean_up_interval_seconds: ROWS_KEPT,
        grpc_server_max_decoding_message_size: MAX_MESSAGE,
        grpc_server_max_encoding_message_size: MAX_MESSAGE,
        grpc_client_max_message_size: MAX_MESSAGE,
        override_physical_codec: Some(Arc::new(codec)),
        override_config_producer: Some(Arc::new(session_config_with_s3_support)),
        override_session_builder: Some(Arc::new(session_state_with_s3_support)),
        ..SchedulerConfig::default()
    };
    let failed = |error: ballista_core::error::BallistaError| format!("the scheduler failed: {error}");
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    let jobs = ReportedJobs::new(cluster.job_state());
    let cluster = BallistaCluster::new(cluster.cluster_state(), Arc::clone(&jobs) as Arc<dyn JobState>);
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config));
    let scheduler = scheduler.await.map_err(failed)?;
    tokio::spawn(jobs.report(scheduler.clone()));
    println!("scheduler: listening on {address}");
    start_grpc_service_with_listener(listener, scheduler).await.map_err(failed)
}
