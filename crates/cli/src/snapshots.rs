//! Snapshots of a session with the trigger mode CLONE_SNAPSHOT, each in a file of its own
//! (`docs/spec/cli.md` §13).

use core::time::Duration;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use esatto_ipc::{Address, BlockingClient};
use esatto_ports::consumer_port::method;
use esatto_protozero::ProtoString;
use esatto_schema::observable_events::CloneTriggerHit;
use esatto_schema::{CloneSessionRequest, CloneSessionResponseReader, ReadBuffersRequest, ReadBuffersResponseReader};

use crate::failure::{Attempt as _, Failure};
use crate::machine_losses::MachineLosses;
use crate::service_connection::{connect, lost};
use crate::trace_content::{Content, ReceivedTriggers, Trigger};
use crate::trace_output::{MAX_PACKET_BYTES, Output};

/// Longest time until the service has made a clone: it flushes all programs first.
const CLONE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for a part of the clone's trace.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Triggers that wait for their snapshot. Any program may tell triggers at any rate.
const MAX_WAITING: usize = 16;
/// Triggers that are remembered until the service has told the other half: the trigger itself in a
/// clone, or the end of its delay.
const MAX_REMEMBERED: usize = 1024;

/// Saves snapshots, one after the other. Each has a connection of its own, because a connection has
/// one session.
#[derive(Debug)]
pub(crate) struct Snapshots {
    /// `None` after the last snapshot.
    hits: Option<SyncSender<CloneTriggerHit>>,
    results: Receiver<Result<Snapshot, Failure>>,
    worker: Option<JoinHandle<Files>>,
    address: Address,
    delays: Arc<Mutex<Delays>>,
    /// Name of the session, if its triggers have delays.
    delayed_session: Option<ProtoString>,
    /// Snapshots that were saved.
    pub(crate) saved: usize,
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
    /// Data of the machine that the session lacked until then.
    pub(crate) machine: MachineLosses,
    /// Data sources of machines that did not record everything, and the reasons.
    pub(crate) problems: BTreeSet<(String, String)>,
}

impl Snapshot {
    fn new(output: &Output, trigger: String, content: Content) -> Self {
        Self {
            path: output.name().to_owned(),
            bytes: output.final_bytes(false).unwrap_or(0),
            trigger,
            has_events: content.has_events,
            machine: content.machine,
            problems: content.problems,
        }
    }
}

impl Snapshots {
    /// Prepares for snapshots in the files `BASE.0`, `BASE.1` and so on.
    /// Each may take `max_bytes`. If triggers have delays, `delayed_session` is the session's name.
    /// `wants_problems` looks for data of machines that was not recorded.
    pub(crate) fn new(
        address: &Address,
        base: &Path,
        max_bytes: u64,
        delayed_session: Option<ProtoString>,
        wants_problems: bool,
    ) -> Result<Self, Failure> {
        let (hits, waiting) = mpsc::sync_channel(MAX_WAITING);
        let (sender, results) = mpsc::channel();
        let mut files = Files { base: base.to_owned(), next: 0, max_bytes, wants_problems };
        let delays = Arc::<Mutex<Delays>>::default();
        let body = {
            let (address, delays) = (address.clone(), Arc::clone(&delays));
            move || {
                for hit in waiting {
                    // The receiver goes only if nobody wants the result.
                    let _ = sender.send(save(&address, hit, &mut files, &delays));
                }
                files
            }
        };
        let worker = thread::Builder::new().name("snapshots".to_owned()).spawn(body);
        let worker = worker.attempt(|| "cannot start the thread for snapshots".to_owned())?;
        let address = address.clone();
        Ok(Self {
            hits: Some(hits),
            results,
            worker: Some(worker),
            address,
            delays,
            delayed_session,
            saved: 0,
            missed: 0,
        })
    }

    /// Requests a snapshot because of this trigger.
    pub(crate) fn request(&mut self, hit: CloneTriggerHit) {
        let name = hit.trigger_name.as_ref().map(|name| name.as_bytes().to_vec());
        let trigger = Trigger { boot_time_ns: hit.boot_time_ns.unwrap_or(0), name: name.unwrap_or_default() };
        let was_in_clone = lock(&self.delays).end(trigger);
        match &self.hits {
            Some(hits) => self.missed += u64::from(hits.try_send(hit).is_err()),
            // The last snapshot has it.
            None if was_in_clone => {}
            None => self.missed += 1,
        }
    }

    /// Returns the results since the last call.
    pub(crate) fn results(&mut self) -> Vec<Result<Snapshot, Failure>> {
        let results: Vec<_> = self.results.try_iter().collect();
        self.saved += results.iter().filter(|result| result.is_ok()).count();
        results
    }

    /// Waits for all requested snapshots, and returns the results since the last call. If the
    /// session `is_alive`, saves a last snapshot for triggers whose delay is not over.
    pub(crate) fn finish(&mut self, is_alive: bool) -> Vec<Result<Snapshot, Failure>> {
        self.hits = None;
        let files = match self.worker.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(files)) => Some(files),
            None => None,
        };
        let mut results = self.results();
        let session = self.delayed_session.take().filter(|_| is_alive);
        if let Some((session, mut files)) = session.zip(files) {
            let last = save_delayed(&self.address, session, &mut files, &self.delays).transpose();
            self.saved += usize::from(matches!(last, Some(Ok(_))));
            results.extend(last);
        }
        results
    }
}

/// Triggers that came, and those whose delay is over. The service tells the first in a clone, and
/// the second as an event, in any order.
#[derive(Debug, Default)]
struct Delays {
    running: BTreeSet<Trigger>,
    over: BTreeSet<Trigger>,
}

impl Delays {
    /// Notes the end of a delay. Returns whether a clone has the trigger.
    fn end(&mut self, trigger: Trigger) -> bool {
        let was_running = self.running.remove(&trigger);
        if !was_running {
            remember(&mut self.over, trigger);
        }
        was_running
    }

    /// Notes a trigger that is in a clone.
    fn begin(&mut self, trigger: Trigger) {
        if !self.over.remove(&trigger) {
            remember(&mut self.running, trigger);
        }
    }
}

fn remember(triggers: &mut BTreeSet<Trigger>, trigger: Trigger) {
    triggers.insert(trigger);
    if triggers.len() > MAX_REMEMBERED {
        // The oldest one.
        triggers.pop_first();
    }
}

fn lock(delays: &Mutex<Delays>) -> std::sync::MutexGuard<'_, Delays> {
    delays.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files of snapshots.
#[derive(Debug)]
struct Files {
    base: PathBuf,
    next: u64,
    /// Bytes of each file.
    max_bytes: u64,
    /// Look for data of machines that was not recorded.
    wants_problems: bool,
}

impl Files {
    /// Returns what is to be looked for in a snapshot.
    fn content(&self) -> Content {
        Content { wants_problems: self.wants_problems, ..Content::default() }
    }

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

fn save(
    address: &Address,
    hit: CloneTriggerHit,
    files: &mut Files,
    delays: &Mutex<Delays>,
) -> Result<Snapshot, Failure> {
    let trigger = hit
        .trigger_name
        .as_ref()
        .map_or_else(String::new, |name| String::from_utf8_lossy(name.as_bytes()).into_owned());
    let what = format!("cannot save a snapshot for the trigger {trigger:?}");
    let request = CloneSessionRequest {
        session_id: hit.tracing_session_id.map(|id| u64::from_ne_bytes(id.to_ne_bytes())),
        clone_trigger_name: hit.trigger_name,
        clone_trigger_producer_name: hit.producer_name,
        clone_trigger_trusted_producer_uid: hit.producer_uid.map(|uid| i32::from_ne_bytes(uid.to_ne_bytes())),
        clone_trigger_boot_time_ns: hit.boot_time_ns,
        clone_trigger_delay_ms: hit.trigger_delay_ms,
        ..CloneSessionRequest::default()
    };
    let mut client = clone_session(address, &request, &what)?;
    let mut output = files.create()?;
    let mut content = files.content();
    let mut triggers = ReceivedTriggers::default();
    read(&mut client, files.max_bytes, &what, |packet| {
        triggers.packet(packet);
        content.packet(packet);
        Ok(output.packet(packet)?)
    })?;
    triggers.came.into_iter().for_each(|trigger| lock(delays).begin(trigger));
    output.finish()?;
    Ok(Snapshot::new(&output, trigger, content))
}

/// Saves a snapshot if triggers have come whose delay is not over. Only a clone tells them, at its
/// begin.
fn save_delayed(
    address: &Address,
    session: ProtoString,
    files: &mut Files,
    delays: &Mutex<Delays>,
) -> Result<Option<Snapshot>, Failure> {
    let what = "cannot look for a trigger whose delay is not over";
    let request = CloneSessionRequest { unique_session_name: Some(session), ..CloneSessionRequest::default() };
    let mut client = clone_session(address, &request, what)?;
    let mut content = files.content();
    let mut triggers = ReceivedTriggers::default();
    let mut held = Vec::new();
    let mut output = None;
    read(&mut client, files.max_bytes, what, |packet| {
        content.packet(packet);
        if let Some(output) = &mut output {
            return Ok(Output::packet(output, packet)?);
        }
        triggers.packet(packet);
        held.push(packet.to_vec());
        if triggers.is_complete {
            triggers.came.drain(..).for_each(|trigger| lock(delays).begin(trigger));
            if lock(delays).running.is_empty() {
                return Err(Error::Unneeded);
            }
            output = Some(write_held(files, &mut held)?);
        }
        Ok(())
    })?;
    triggers.came.into_iter().for_each(|trigger| lock(delays).begin(trigger));
    let names: BTreeSet<String> =
        lock(delays).running.iter().map(|trigger| String::from_utf8_lossy(&trigger.name).into_owned()).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let mut output = output.map_or_else(|| write_held(files, &mut held), Ok)?;
    output.finish()?;
    let trigger = names.into_iter().collect::<Vec<_>>().join(", ");
    Ok(Some(Snapshot::new(&output, trigger, content)))
}

fn write_held(files: &mut Files, held: &mut Vec<Vec<u8>>) -> Result<Output, Failure> {
    let mut output = files.create()?;
    held.drain(..).try_for_each(|packet| output.packet(&packet))?;
    Ok(output)
}

/// Saves a clone in the file. Returns whether it has events of programs.
pub(crate) fn save_clone(
    address: &Address,
    request: &CloneSessionRequest,
    output: &mut Output,
    what: &str,
) -> Result<Content, Failure> {
    let mut client = clone_session(address, request, what)?;
    let mut content = Content { wants_silent: true, ..Content::default() };
    read(&mut client, u64::MAX, what, |packet| {
        content.packet(packet);
        Ok(output.packet(packet)?)
    })?;
    output.finish()?;
    Ok(content)
}

/// Makes a clone, and returns the connection that has it.
fn clone_session(address: &Address, request: &CloneSessionRequest, what: &str) -> Result<BlockingClient, Failure> {
    let mut client = connect(address)?;
    let call = client.send_message::<method::CloneSession>(request, None).map_err(lost)?;
    let reply = client.wait_reply(call, Some(CLONE_TIMEOUT)).map_err(lost)?;
    let response = CloneSessionResponseReader::new(&reply.body);
    if !reply.success || response.success() != Some(true) {
        let why = response.error().map(|why| String::from_utf8_lossy(why).into_owned());
        return Err(Failure::new(what, why.unwrap_or_else(|| "the service gives no reason".to_owned())));
    }
    Ok(client)
}

/// Passes the packets of a clone to `visit`, until it needs no more.
fn read(
    client: &mut BlockingClient,
    max_bytes: u64,
    what: &str,
    mut visit: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Failure> {
    let mut packet = Vec::new();
    let mut bytes = 0;
    let reading =
        client.call_stream::<method::ReadBuffers, _>(&ReadBuffersRequest::default(), Some(READ_TIMEOUT), |body| {
            for slice in ReadBuffersResponseReader::new(body).slices() {
                packet.extend_from_slice(slice.data().unwrap_or_default());
                if packet.len() > MAX_PACKET_BYTES {
                    return Err(Failure::new(what, "the service sent a packet of more than 256 MiB").into());
                }
                if bytes > max_bytes {
                    return Err(Failure::new(what, "the service sends more than its buffers can hold").into());
                }
                if slice.last_slice_for_packet() == Some(true) {
                    bytes += packet.len() as u64;
                    visit(&packet)?;
                    packet.clear();
                }
            }
            Ok::<(), Error>(())
        });
    match reading {
        Ok(true) | Err(Error::Unneeded) => Ok(()),
        Ok(false) => Err(Failure::new(what, "the service refused to read it")),
        Err(Error::File(failure)) => Err(failure),
        Err(Error::Connection(error)) => Err(lost(error)),
    }
}

/// Reason why reading ended early.
enum Error {
    /// The rest of the clone is not needed.
    Unneeded,
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
