//! Snapshots of a session with the trigger mode CLONE_SNAPSHOT, each in a file of its own
//! (`docs/spec/cli.md` §13).

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

use esatto_ipc::Address;
use esatto_protozero::Owned as _;
use esatto_schema::observable_events::CloneTriggerHit;
use esatto_schema::{CloneSessionRequest, CloneSessionResponseReader, ReadBuffersResponseReader};

use crate::failure::{Attempt as _, Failure};
use crate::service_connection::{connect, lost};
use crate::trace_content::Content;
use crate::trace_output::{MAX_PACKET_BYTES, Output};

/// Longest time until the service has made a clone: it flushes all programs first.
const CLONE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for a part of the clone's trace.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Triggers that wait for their snapshot. Any program may tell triggers at any rate.
const MAX_WAITING: usize = 16;

/// Saves snapshots, one after the other. Each has a connection of its own, because a connection has
/// one session.
#[derive(Debug)]
pub(crate) struct Snapshots {
    /// `None` after the last snapshot.
    hits: Option<SyncSender<CloneTriggerHit>>,
    results: Receiver<Result<Snapshot, Failure>>,
    worker: Option<JoinHandle<()>>,
    /// Triggers without a snapshot, because too many came, or the recording was about to end.
    pub(crate) missed: u64,
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
    /// Prepares for snapshots in the files `BASE.0`, `BASE.1` and so on.
    /// Each may take `max_bytes`.
    pub(crate) fn new(address: &Address, base: &Path, max_bytes: u64) -> Result<Self, Failure> {
        let (hits, waiting) = mpsc::sync_channel(MAX_WAITING);
        let (sender, results) = mpsc::channel();
        let mut files = Files { base: base.to_owned(), next: 0, max_bytes };
        let address = address.clone();
        let body = move || {
            for hit in waiting {
                // The receiver goes only if nobody wants the result.
                let _ = sender.send(save(&address, hit, &mut files));
            }
        };
        let worker = thread::Builder::new().name("snapshots".to_owned()).spawn(body);
        let worker = worker.attempt(|| "cannot start the thread for snapshots".to_owned())?;
        Ok(Self { hits: Some(hits), results, worker: Some(worker), missed: 0 })
    }

    /// Requests a snapshot because of this trigger.
    pub(crate) fn request(&mut self, hit: CloneTriggerHit) {
        if self.hits.as_ref().is_none_or(|hits| hits.try_send(hit).is_err()) {
            self.missed += 1;
        }
    }

    /// Returns the results since the last call.
    pub(crate) fn results(&mut self) -> Vec<Result<Snapshot, Failure>> {
        self.results.try_iter().collect()
    }

    /// Waits for all requested snapshots, and returns the results since the last call.
    pub(crate) fn finish(&mut self) -> Vec<Result<Snapshot, Failure>> {
        self.hits = None;
        if let Some(Err(panic)) = self.worker.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        self.results()
    }
}

/// Files of snapshots.
#[derive(Debug)]
struct Files {
    base: PathBuf,
    next: u64,
    /// Bytes of each file.
    max_bytes: u64,
}

impl Files {
    /// Creates the next file whose name is free.
    fn create(&mut self) -> Result<Output, Failure> {
        loop {
            let mut name = self.base.clone().into_os_string();
            name.push(format!(".{}", self.next));
            self.next += 1;
            if let Some(output) = Output::create_new(Path::new(&name))? {
                return Ok(output);
            }
        }
    }
}

fn save(address: &Address, hit: CloneTriggerHit, files: &mut Files) -> Result<Snapshot, Failure> {
    let trigger = hit
        .trigger_name
        .as_ref()
        .map_or_else(String::new, |name| String::from_utf8_lossy(name.as_bytes()).into_owned());
    let failed = |why: String| Failure::new(format!("cannot save a snapshot for the trigger {trigger:?}"), why);
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
    let mut output = files.create()?;
    let mut content = Content::default();
    let mut packet = Vec::new();
    let reading = client.call_stream("ReadBuffers", &[], Some(READ_TIMEOUT), |body| {
        for slice in ReadBuffersResponseReader::new(body).slices() {
            packet.extend_from_slice(slice.data().unwrap_or_default());
            if packet.len() > MAX_PACKET_BYTES {
                return Err(failed("the service sent a packet of more than 256 MiB".to_owned()).into());
            }
            if output.bytes() > files.max_bytes {
                return Err(failed("the service sends more than its buffers can hold".to_owned()).into());
            }
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
    Ok(Snapshot { path: output.name().to_owned(), bytes, trigger, has_events: content.has_events })
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
