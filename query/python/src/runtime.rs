//! The threads that run queries, and the wait for them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use tokio::runtime::Runtime;

use crate::error::error;

/// Time between two looks for signals, such as that of Ctrl-C.
const TICK: Duration = Duration::from_millis(50);

/// The runtime of this process, and the process.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// Returns the runtime of this process. Threads do not survive a fork, so a child process has its
/// own.
pub(crate) fn runtime() -> Result<Arc<Runtime>, String> {
    let own = std::process::id();
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, runtime)) = &*slot
        && *process == own
    {
        return Ok(Arc::clone(runtime));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("esatto")
        .thread_stack_size(esatto_query::program::STACK)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let runtime = Arc::new(runtime);
    // The end of a runtime waits for its threads, which the parent process has.
    std::mem::forget(slot.replace((own, Arc::clone(&runtime))));
    Ok(runtime)
}

/// Runs a future on the threads of queries, and waits without Python's lock. A signal whose handler
/// raises an exception, such as Ctrl-C, ends the wait and the future.
pub(crate) fn wait<T: Send + 'static>(py: Python<'_>, future: impl Future<Output = T> + Send + 'static) -> PyResult<T> {
    let runtime = py.detach(runtime).map_err(|message| error(py, &message))?;
    let mut task = runtime.spawn(future);
    loop {
        match py.detach(|| within_tick(&runtime, &mut task)) {
            Some(Ok(value)) => return Ok(value),
            Some(Err(failed)) => return Err(error(py, &format!("a thread failed: {failed}"))),
            None => py.check_signals().inspect_err(|_| task.abort())?,
        }
    }
}

/// As [`wait`], for a function that blocks. After a signal it runs to its end, unheard.
pub(crate) fn wait_blocking<T: Send + 'static>(
    py: Python<'_>,
    function: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let done = wait(py, async { tokio::task::spawn_blocking(function).await })?;
    done.map_err(|failed| error(py, &format!("a thread failed: {failed}")))
}

/// Waits for a future for a short time.
pub(crate) fn within_tick<T>(runtime: &Runtime, future: impl Future<Output = T>) -> Option<T> {
    runtime.block_on(async { tokio::time::timeout(TICK, future).await.ok() })
}
