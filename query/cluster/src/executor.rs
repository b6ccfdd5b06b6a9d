//! The executor: that of Ballista, which also reads traces.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::object_store::{runtime_env_with_s3_support, session_config_with_s3_support};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use esatto_query::TracePool;

use crate::MAX_MESSAGE;
use crate::address::Address;
use crate::codec::TraceCodec;
use crate::scheduler::check_advertised;

/// Seconds between signs of life.
pub(crate) const HEARTBEAT: u64 = 5;

/// Options of an executor.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) scheduler: Address,
    pub(crate) traces: Vec<PathBuf>,
    pub(crate) bind: IpAddr,
    pub(crate) ports: (u16, u16),
    pub(crate) advertise: Option<String>,
    pub(crate) threads: Option<u16>,
    pub(crate) memory_limit: usize,
    pub(crate) work_folder: Option<PathBuf>,
}

/// Runs an executor until it is told to end.
pub(crate) async fn run(options: Options) -> Result<(), String> {
    let Options { scheduler, bind, .. } = &options;
    check_advertised(*bind, options.advertise.as_deref())?;
    let asked = scheduler.clone();
    let asked = tokio::task::spawn_blocking(move || asked.ask()).await;
    asked.map_err(|error| format!("a thread failed: {error}"))??;
    let pool = TracePool::new(options.memory_limit / 2, Some(&options.traces))?;
    let codec = TraceCodec::new(pool, PathBuf::new());
    let mut builder = tempfile::Builder::new();
    builder.prefix("esatto-executor-");
    let folder = match &options.work_folder {
        Some(parent) => builder.tempdir_in(parent),
        None => builder.tempdir(),
    };
    let folder =
        folder.map_err(|error| format!("cannot make a folder for intermediate rows: {error}; give --work-dir"))?;
    let work_dir = folder.path().to_str().ok_or("the path of the folder for intermediate rows is not UTF-8")?;
    let (flight, grpc) = (free_port(*bind, options.ports.0)?, free_port(*bind, options.ports.1)?);
    let threads = options.threads.map(usize::from);
    let defaults = ExecutorProcessConfig::default();
    let config = ExecutorProcessConfig {
        bind_host: bind.to_string(),
        external_host: Some(options.advertise.clone().unwrap_or_else(|| bind.to_string())),
        port: flight,
        grpc_port: grpc,
        scheduler_host: scheduler.host.clone(),
        scheduler_port: scheduler.port,
        vcores: threads.unwrap_or(defaults.vcores),
        work_dir: Some(work_dir.to_owned()),
        executor_heartbeat_interval_seconds: HEARTBEAT,
        memory_pool_size: Some(options.memory_limit as u64 / 2),
        grpc_max_decoding_message_size: MAX_MESSAGE,
        grpc_max_encoding_message_size: MAX_MESSAGE,
        override_physical_codec: Some(Arc::new(codec)),
        override_config_producer: Some(Arc::new(session_config_with_s3_support)),
        override_runtime_producer: Some(Arc::new(runtime_env_with_s3_support)),
        ..defaults
    };
    println!("executor: for the scheduler at {scheduler}, rows on {}", SocketAddr::new(*bind, flight));
    let ended = start_executor_process(Arc::new(config)).await;
    ended.map_err(|error| format!("the executor of the scheduler at {scheduler} failed: {error}"))
}

/// Returns the port, or one that is free if it is 0.
fn free_port(host: IpAddr, port: u16) -> Result<u16, String> {
    let address = SocketAddr::new(host, port);
    let listener = TcpListener::bind(address)
        .map_err(|error| format!("cannot listen on {address}: {error}; choose others with --bind and --port"))?;
    Ok(listener.local_addr().map_err(|error| format!("the address of the socket: {error}"))?.port())
}
