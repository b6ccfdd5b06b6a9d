//! The program `esatto-cluster`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::address::{Address, DEFAULT_PORT};
use crate::{connect, executor, scheduler};

/// Stack of a thread: plans of nested statements are deep.
const STACK: usize = 64 << 20;

/// Messages that a server prints, unless RUST_LOG says otherwise. Ballista takes rows that nobody
/// wants any more, and folders that are gone already, for errors.
const LOG_FILTER: &str = "warn,ballista_core::execution_plans::shuffle_reader=off,\
    ballista_core::execution_plans::shuffle_writer=off,ballista_scheduler::state::executor_manager=error";

/// Ask thousands of traces with SQL, on several machines
#[derive(Debug, Parser)]
#[command(name = "esatto-cluster", version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the scheduler, which splits queries into tasks
    Scheduler(SchedulerArgs),
    /// Run an executor, which reads traces and lakes
    Executor(ExecutorArgs),
    /// Ask traces. Takes the arguments of esatto-query
    #[command(disable_help_flag = true)]
    Query {
        /// The arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Debug, clap::Args)]
struct SchedulerArgs {
    /// Address to listen on. Whoever reaches it can read all that the executors can read
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)))]
    bind: SocketAddr,
    /// Name or address under which executors reach this machine [default: that of --bind]
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ExecutorArgs {
    /// Address of the scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    scheduler: Address,
    /// Folder whose traces may be read, under the same path as on the client. Can be repeated.
    /// Without it no trace may be read, but lakes can
    #[arg(long, value_name = "FOLDER")]
    traces: Vec<PathBuf>,
    /// Address to listen on, for rows and for tasks
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Port for rows; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    port: u16,
    /// Port for tasks; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 50052)]
    task_port: u16,
    /// Name or address under which clients and other executors reach this machine [default: that
    /// of --bind]
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    /// Tasks that run at the same time [default: the number of processors]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory for traces and tasks, such as 512M or 8G [default: half of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = esatto_query::program::parse_size)]
    memory_limit: Option<usize>,
    /// Folder for intermediate rows [default: that for temporary files]
    #[arg(long, value_name = "FOLDER")]
    work_dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  esatto-cluster scheduler
  esatto-cluster executor --scheduler localhost:50050 --traces /traces
  esatto query --cluster localhost:50050 '/traces/*.pftrace' 'select count(*) from slice'

Nothing asks for a password: let only trusted machines reach the ports.
Docs: docs/how-to/cluster.md";

/// Runs the program with the arguments of the process.
pub fn run_program() -> ExitCode {
    let result = match Args::parse().command {
        Command::Query { arguments } => {
            let name = OsString::from("esatto-query");
            return esatto_query::program::run_program(std::iter::once(name).chain(arguments), Some(connect));
        }
        Command::Scheduler(args) => {
            start(scheduler::run(scheduler::Options { bind: args.bind, advertise: args.advertise }))
        }
        Command::Executor(args) => start(executor::run(executor::Options {
            scheduler: args.scheduler,
            traces: args.traces,
            bind: args.bind,
            ports: (args.port, args.task_port),
            advertise: args.advertise,
            threads: args.threads,
            memory_limit: args.memory_limit.unwrap_or_else(esatto_query::program::half_of_memory),
            work_folder: args.work_dir,
        })),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("esatto-cluster: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a server.
fn start(server: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(LOG_FILTER));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    runtime.map_err(|error| format!("cannot start threads: {error}"))?.block_on(server)
}
