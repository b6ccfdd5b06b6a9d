//! Batches of a statement: begun, looked at, and given to Arrow's C stream.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::ThreadId;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use esatto_query::{Answer, SqlError};
use futures::StreamExt as _;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::{error, sql_error};
use crate::python_lock::with_lock;
use crate::runtime::{runtime, within_tick};
use crate::session::{FORKED, Shared};

/// Batches that wait for their reader. The query pauses when there are as many.
const BATCHES_AHEAD: usize = 4;

/// The rows of a statement from some batch on.
pub(crate) struct Rows {
    pub(crate) schema: SchemaRef,
    shared: Arc<Shared>,
    sql: Arc<str>,
    /// Batches that come first.
    first: VecDeque<RecordBatch>,
    source: Source,
}

enum Source {
    /// Nobody has asked for a batch.
    Begun(Answer),
    /// A task computes batches.
    Running(Running),
    Ended,
}

struct Running {
    runtime: Arc<Runtime>,
    batches: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The reason why there is no batch.
enum Stop {
    Sql(SqlError),
    Text(String),
}

impl Rows {
    pub(crate) fn new(answer: Answer, shared: &Arc<Shared>, sql: &Arc<str>) -> Self {
        let (schema, source) = (answer.schema.clone(), Source::Begun(answer));
        Self { schema, shared: Arc::clone(shared), sql: Arc::clone(sql), first: VecDeque::new(), source }
    }

    /// Rows that are known.
    pub(crate) fn kept(schema: SchemaRef, batches: &[RecordBatch], shared: &Arc<Shared>, sql: &Arc<str>) -> Self {
        let first = batches.iter().cloned().collect();
        Self { schema, shared: Arc::clone(shared), sql: Arc::clone(sql), first, source: Source::Ended }
    }

    /// Puts batches before all others.
    pub(crate) fn unread(&mut self, batches: Vec<RecordBatch>) {
        batches.into_iter().rev().for_each(|batch| self.first.push_front(batch));
    }

    /// Returns the next batch. Waits without Python's lock; signals end the wait.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            match py.detach(|| self.next_within_tick()) {
                Some(Ok(Some(batch))) => return Ok(Some(batch)),
                Some(Ok(None)) => {
                    self.shared.warn(py)?;
                    return Ok(None);
                }
                Some(Err(Stop::Sql(error))) => return Err(sql_error(py, &error, &self.sql)),
                Some(Err(Stop::Text(message))) => return Err(error(py, &message)),
                None => py.check_signals().inspect_err(|_| self.source = Source::Ended)?,
            }
        }
    }

    /// As [`Self::next`], on a thread that Python does not know.
    fn next_without_python(&mut self) -> Result<Option<RecordBatch>, String> {
        loop {
            match self.next_within_tick() {
                Some(Ok(batch)) => return Ok(batch),
                Some(Err(Stop::Sql(error))) => return Err(error.with_line(&self.sql)),
                Some(Err(Stop::Text(message))) => return Err(message),
                None => {}
            }
        }
    }

    /// Returns the next batch if it comes soon.
    fn next_within_tick(&mut self) -> Option<Result<Option<RecordBatch>, Stop>> {
        if let Some(batch) = self.first.pop_front() {
            return Some(Ok(Some(batch)));
        }
        if !matches!(self.source, Source::Ended) && !self.shared.is_of_this_process() {
            return Some(Err(Stop::Text(FORKED.to_owned())));
        }
        if matches!(self.source, Source::Begun(_))
            && let Source::Begun(answer) = std::mem::replace(&mut self.source, Source::Ended)
        {
            match runtime() {
                Ok(runtime) => self.source = Source::Running(start(runtime, answer, &self.shared)),
                Err(message) => return Some(Err(Stop::Text(message))),
            }
        }
        let Source::Running(running) = &mut self.source else { return Some(Ok(None)) };
        let received = match within_tick(&running.runtime, running.batches.recv())? {
            Some(Ok(batch)) => return Some(Ok(Some(batch))),
            Some(Err(error)) => Err(Stop::Sql(error)),
            // The task has ended. A panic would end it before the rows.
            None => match running.runtime.block_on(&mut running.task) {
                Ok(()) => Ok(None),
                Err(failed) => Err(Stop::Text(format!("a thread failed: {failed}"))),
            },
        };
        self.source = Source::Ended;
        Some(received)
    }
}

fn start(runtime: Arc<Runtime>, answer: Answer, shared: &Arc<Shared>) -> Running {
    let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
    let (mut rows, shared) = (answer.rows, Arc::clone(shared));
    let task = runtime.spawn(async move {
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(|error| shared.session.sql_error(&error));
            let is_last = batch.is_err();
            if sender.send(batch).await.is_err() || is_last {
                break;
            }
        }
    });
    Running { runtime, batches, task }
}

/// Rows for Arrow's C stream. Any thread may read them.
pub(crate) struct StreamReader {
    rows: Rows,
    /// The thread that asked for the stream. It may take Python's lock: no other thread waits for
    /// it with the lock held.
    thread: ThreadId,
}

impl StreamReader {
    pub(crate) fn new(rows: Rows) -> Self {
        Self { rows, thread: std::thread::current().id() }
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, String> {
        if std::thread::current().id() != self.thread {
            return self.rows.next_without_python();
        }
        let batch = with_lock(|py| {
            self.rows.next(py).map_err(|error| {
                // Readers know only the text of an error. Python raises Ctrl-C itself after they
                // have returned.
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
                    return match again {
                        Ok(_) => "interrupted".to_owned(),
                        Err(error) => error.to_string(),
                    };
                }
                error.value(py).to_string()
            })
        });
        // Without an interpreter, which has ended.
        batch.unwrap_or_else(|| self.rows.next_without_python())
    }
}

impl Iterator for StreamReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // The caller is no Rust.
        let batch =
            catch_unwind(AssertUnwindSafe(|| self.read())).unwrap_or_else(|_| Err("a thread failed".to_owned()));
        // The text becomes one of C.
        let error = |message: String| ArrowError::ExternalError(message.replace('\0', "\u{fffd}").into());
        batch.map_err(error).transpose()
    }
}

impl RecordBatchReader for StreamReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.rows.schema)
    }
}
