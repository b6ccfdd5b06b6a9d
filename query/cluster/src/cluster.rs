//! The cluster as an engine of esatto-query.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ballista_core::config::BallistaConfig;
use ballista_core::extension::SessionConfigHelperExt as _;
use ballista_core::optimizer::with_ballista_optimizer_rules;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::prelude::SessionConfig;
use esatto_query::TracePool;
use esatto_query::remote::Remote;

use crate::address::{Address, Readiness};
use crate::codec::TraceCodec;
use crate::patience;
use crate::planner::{ClusterPlanner, LocalPlanner};

/// A cluster, seen by a client.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) address: Address,
    pub(crate) codec: TraceCodec,
    /// The folder of this process, in which relative paths of traces begin.
    pub(crate) folder: PathBuf,
    notes: Mutex<Vec<String>>,
    defects: Mutex<BTreeMap<PathBuf, String>>,
    /// The configuration of plans that run here.
    local_config: OnceLock<SessionConfig>,
    /// An interrupt ends the process.
    pub(crate) takes_interrupts: AtomicBool,
    /// Jobs that have not ended.
    pub(crate) jobs: Mutex<BTreeSet<String>>,
    /// Seconds after which a job without progress is given up; 0 if never.
    timeout: AtomicU64,
}

/// Connects to a cluster.
///
/// # Errors
///
/// The address is wrong, no scheduler is there, or it has no executors.
pub fn connect(address: &str) -> Result<Arc<dyn Remote>, String> {
    let address: Address = address.parse()?;
    if address.ask()? == Readiness::NoExecutors {
        return Err(format!(
            "the scheduler at {address} has no executors; start some with \
             'esatto-cluster executor --scheduler {address} --traces FOLDER'"
        ));
    }
    let folder = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
    // Nothing is opened in the pool: plans are encoded only.
    let codec = TraceCodec::new(TracePool::new(0, None)?, folder.clone());
    let (notes, defects, jobs) = (Mutex::default(), Mutex::default(), Mutex::default());
    let local_config = OnceLock::new();
    Ok(Arc::new(ClusterRemote(Arc::new(Cluster {
        address,
        codec,
        folder,
        notes,
        defects,
        local_config,
        takes_interrupts: AtomicBool::new(true),
        jobs,
        timeout: AtomicU64::new(patience::DEFAULT),
    }))))
}

impl Cluster {
    pub(crate) fn note(&self, note: String) {
        let mut notes = lock(&self.notes);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Returns the state of a session for plans that run here.
    pub(crate) fn local_state(&self, state: &SessionState) -> SessionState {
        let config = self.local_config.get().unwrap_or_else(|| state.config());
        SessionStateBuilder::new_from_existing(state.clone())
            .with_config(keep_catalog(config.clone()))
            .with_query_planner(Arc::new(LocalPlanner))
            .build()
    }

    /// Returns the time after which a job without progress is given up; `None` if it never is.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        Some(self.timeout.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }

    pub(crate) fn add_defect(&self, path: PathBuf, defect: String) {
        lock(&self.defects).insert(path, defect);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct ClusterRemote(Arc<Cluster>);

impl Remote for ClusterRemote {
    fn set_up(&self, mut builder: SessionStateBuilder) -> SessionStateBuilder {
        let config = builder.config().take().unwrap_or_default();
        let _is_the_first = self.0.local_config.set(config.clone());
        let rules = with_ballista_optimizer_rules(&Optimizer::default().rules);
        builder
            .with_config(configure(config))
            .with_optimizer_rules(rules)
            .with_query_planner(Arc::new(ClusterPlanner::new(Arc::clone(&self.0))))
    }

    fn leave_interrupts(&self) {
        self.0.takes_interrupts.store(false, Ordering::Relaxed);
    }

    fn set_timeout(&self, seconds: u64) {
        self.0.timeout.store(seconds, Ordering::Relaxed);
    }

    fn take_notes(&self) -> Vec<String> {
        core::mem::take(&mut *lock(&self.0.notes))
    }

    fn defects(&self) -> Vec<(PathBuf, String)> {
        lock(&self.0.defects).clone().into_iter().collect()
    }
}

/// Keeps the catalogue of a session in a state that is made of another one.
pub(crate) fn keep_catalog(config: SessionConfig) -> SessionConfig {
    config.with_create_default_catalog_and_schema(false)
}

/// Sets what Ballista needs in plans: nothing in them may be shared by several tasks.
fn configure(config: SessionConfig) -> SessionConfig {
    let config = config.with_option_extension(BallistaConfig::default()).ballista_restricted_configuration();
    // The planner has a better way for these subqueries than joins.
    config.set_bool("datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery", true)
}
