//! Snapshots of a session with the trigger mode CLONE_SNAPSHOT, each in a file of its own
//! (`docs/spec/cli.md` §13).

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use esatto_ipc::Address;
use esatto_protozero::Owned as _;
use esatto_schema::observable_events::CloneTriggerHit;
use esatto_schema::{CloneSessionRequest, CloneSessionResponseReader, ReadBuffersResponseReader};

use crate::failure::Failure;
use crate::service_connection::{connect, lost};
use crate::trace_content::Content;
use crate::trace_output::Output;

/// Longest time until the service has made a clone: it flushes all programs first.
const CLONE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for a part of the clone's trace.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Saves snapshots. Each has a connection and a thread of its own, because a connection has one
/// session.
#[derive(Debug)]
pub(crate) struct Snapshots {
    address: Address,
    /// Name of the files, without their numbers.
    base: PathBuf,
    begun: usize,
    running: Vec<JoinHandle<Result<Snapshot, Failure>>>,
}

/// A saved snapshot.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) trigger: String,
    pub(crate) has_events: bool,
}

impl Snapshots {
    pub(crate) fn new(address: &Address, base: &Path) -> Self {
        Self { address: address.clone(), base: base.to_owned(), begun: 0, running: Vec::new() }
    }

    /// Begins to save a snapshot because of this trigger.
    pub(crate) fn begin(&mut self, hit: CloneTriggerHit) -> Result<(), Failure> {
        let mut name = self.base.clone().into_os_string();
        name.push(format!(".{}", self.begun));
        self.begun += 1;
        let address = self.address.clone();
        let body = move || save(&address, hit, PathBuf::from(name));
        let thread = thread::Builder::new().name("snapshot".to_owned()).spawn(body);
        self.running.push(thread.map_err(|e| Failure::new("cannot save a snapshot", e))?);
        Ok(())
    }

    /// Returns the results since the last call. If `wait`, waits for all snapshots.
    pub(crate) fn results(&mut self, wait: bool) -> Vec<Result<Snapshot, Failure>> {
        let is_done = |thread: &JoinHandle<_>| wait || thread.is_finished();
        let (done, running) = core::mem::take(&mut self.running).into_iter().partition(is_done);
        self.running = running;
        let done: Vec<JoinHandle<_>> = done;
        let join = |thread: JoinHandle<_>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.into_iter().map(join).collect()
    }
}

fn save(address: &Address, hit: CloneTriggerHit, path: PathBuf) -> Result<Snapshot, Failure> {
    let trigger = hit
        .trigger_name
        .as_ref()
        .map_or_else(String::new, |name| String::from_utf8_lossy(name.as_bytes()).into_owned());
    let failed = |why: String| Failure::new(format!("cannot save the snapshot {}", path.display()), why);
    let mut client = connect(address)?;
    let request = CloneSessionRequest {
        session_id: hit.tracing_session_id.map(|id| u64::from_ne_bytes(id.to_ne_bytes())),
        clone_trigger_name: hit.trigger_name,
        clone_trigger_producer_name: hit.producer_name,
        clone_trigger_trusted_producer_uid: hit.producer_uid.map(|uid| i32::from_ne_bytes(uid.to_ne_bytes())),
        clone_trigger_boot_time_ns: hit.boot_time_ns,
        clone_trigger_delay_ms: hit.trigger_delay_ms,
        ..CloneSessionRequest::default()
    };
    let reply = client.call("CloneSession", &request.encode(), Some(CLONE_TIMEOUT)).map_err(lost)?;
    let response = CloneSessionResponseReader::new(&reply.body);
    if !reply.success || response.success() != Some(true) {
        let why = response.error().map(|why| String::from_utf8_lossy(why).into_owned());
        return Err(failed(why.unwrap_or_else(|| "the service gives no reason".to_owned())));
    }
    let mut output = Output::create(&path)?;
    let mut content = Content::default();
    let mut packet = Vec::new();
    let reading = client.call_stream("ReadBuffers", &[], Some(READ_TIMEOUT), |body| {
        for slice in ReadBuffersResponseReader::new(body).slices() {
            packet.extend_from_slice(slice.data().unwrap_or_default());
            if slice.last_slice_for_packet() == Some(true) {
                if !content.is_known() {
                    content.packet(&packet);
                }
                output.packet(&packet)?;
                packet.clear();
            }
        }
        Ok::<(), Error>(())
    });
    match reading {
        Ok(true) => {}
        Ok(false) => return Err(failed("the service refused to read it".to_owned())),
        Err(Error::File(failure)) => return Err(failure),
        Err(Error::Connection(error)) => return Err(lost(error)),
    }
    output.finish()?;
    let bytes = output.final_bytes(false).unwrap_or(0);
    Ok(Snapshot { path, bytes, trigger, has_events: content.has_events })
}

/// Reason why reading failed.
enum Error {
    File(Failure),
    Connection(esatto_ipc::Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::File(failure)
    }
}

impl From<esatto_ipc::Error> for Error {
    fn from(error: esatto_ipc::Error) -> Self {
        Self::Connection(error)
    }
}
