//! The control thread: the connection to the service.
//!
//! It passes the commands of the service to the workers and their answers back, and never waits for
//! a worker. While the connection is lost, no instance exists; it connects again by
//! [`Reconnection`].

mod flushes;
mod live_instances;
mod reconnection;
mod socket_watch;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use esatto::BufferExhausted;
use esatto::producer::{Endpoint, Event};
use esatto_ipc::sys::{PollFd, poll};
use esatto_schema::{DataSourceConfigReader, DataSourceDescriptor};

use self::flushes::Flushes;
use self::live_instances::{LiveInstance, LiveInstances, MAX_INSTANCES, Phase};
use self::reconnection::Reconnection;
use crate::data_source::{Instance, InstanceId, TracingSession};
use crate::mailbox::{Command, Mailbox};
use crate::problem;
use crate::replies::{Replies, Reply};
use crate::worker::{SourceGroup, Worker};

/// Name under which the service knows the producer. Configs may name it, so it is Perfetto's.
pub(crate) const PRODUCER_NAME: &str = "perfetto.traced_probes";
/// Shared memory, as upstream asks for it (`docs/spec/probes.md` §1).
const SHARED_MEMORY_KB: u32 = 2048;
const PAGE_KB: u32 = 32;
/// Time for which full chunks may wait, so that one message tells the service of those of a whole
/// read. A flush and a scarcity of chunks do not wait.
const BATCH_DELAY: Duration = Duration::from_millis(2);
/// Time in which all instances must be torn down at the end of the program.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// Time in which the service must take what they wrote last.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);

/// Called when something happens that the program tells others.
pub(crate) trait Observer {
    /// The service knows all data sources.
    fn registered(&mut self) {}
    /// The connection is over, or could not be made.
    fn disconnected(&mut self, _why: &str) {}
    /// The program ends, and tears down all instances.
    fn stopping(&mut self) {}
    /// Called about every [`alive_every`](Self::alive_every).
    fn alive(&mut self) {}
    /// Returns how often [`alive`](Self::alive) is called, at least.
    fn alive_every(&self) -> Option<Duration> {
        None
    }
}

/// The control thread with its workers.
pub(crate) struct Control<O> {
    workers: Vec<WorkerSlot>,
    /// Worker and index of each data source.
    places: BTreeMap<String, (usize, usize)>,
    descriptors: Vec<DataSourceDescriptor>,
    replies: Arc<Replies>,
    endpoint: Option<Endpoint>,
    /// Set when the service knows all data sources.
    registered: Arc<AtomicBool>,
    reconnection: Reconnection,
    instances: LiveInstances,
    flushes: Flushes,
    observer: O,
}

struct WorkerSlot {
    mailbox: Arc<Mailbox>,
    /// Taken when the thread starts, with the first instance.
    group: Option<SourceGroup>,
    thread: Option<JoinHandle<()>>,
}

impl<O: Observer> Control<O> {
    /// `socket` is the address of the service, by default the one of the environment.
    pub(crate) fn new(groups: Vec<SourceGroup>, socket: Option<String>, observer: O) -> io::Result<Self> {
        let (mut places, mut descriptors, mut workers) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (worker, group) in groups.into_iter().enumerate() {
            for (index, source) in group.sources.iter().enumerate() {
                let mut descriptor = source.descriptor();
                descriptor.will_notify_on_start = Some(true);
                descriptor.will_notify_on_stop = Some(true);
                places.insert(crate::worker::name_of(source.as_ref()), (worker, index));
                descriptors.push(descriptor);
            }
            workers.push(WorkerSlot { mailbox: Arc::new(Mailbox::new()?), group: Some(group), thread: None });
        }
        Ok(Self {
            workers,
            places,
            descriptors,
            replies: Arc::new(Replies::new()?),
            endpoint: None,
            registered: Arc::default(),
            reconnection: Reconnection::new(socket, Instant::now()),
            instances: LiveInstances::default(),
            flushes: Flushes::default(),
            observer,
        })
    }

    /// Serves until `stop` is readable. Then tears down all instances; a second byte in `stop` ends
    /// that early.
    ///
    /// # Errors
    ///
    /// If a worker dies or cannot be started.
    pub(crate) fn run(mut self, stop: &OwnedFd) -> io::Result<()> {
        let mut alive_at = self.observer.alive_every().map(|_| Instant::now());
        loop {
            let now = Instant::now();
            self.turn(now)?;
            if let (Some(at), Some(every)) = (alive_at, self.observer.alive_every()) {
                if at <= now {
                    self.observer.alive();
                    alive_at = Some(now + every);
                }
            }
            let deadlines = [alive_at, self.deadline()];
            if self.wait(stop, deadlines.into_iter().flatten().min())? {
                break;
            }
        }
        self.end(stop)
    }

    /// Handles what has come, and what is due at `now`.
    fn turn(&mut self, now: Instant) -> io::Result<()> {
        if self.endpoint.is_none() && self.reconnection.next() <= now {
            self.connect(now);
        }
        self.pump(now)?;
        for reply in self.replies.take() {
            self.handle_reply(reply)?;
        }
        self.expire(now);
        // The calls that this turn has queued.
        self.pump(now)
    }

    fn connect(&mut self, now: Instant) {
        let mut builder = Endpoint::builder(PRODUCER_NAME)
            .shared_memory(SHARED_MEMORY_KB, PAGE_KB)
            .batch_commits(BATCH_DELAY)
            .direct_patching();
        if let Some(address) = self.reconnection.named() {
            builder = builder.socket(address);
        }
        match builder.connect() {
            Ok(mut endpoint) => {
                self.descriptors.iter().for_each(|descriptor| endpoint.register(descriptor));
                self.endpoint = Some(endpoint);
            }
            Err(why) => {
                self.reconnection.failed(now);
                self.observer.disconnected(&why.to_string());
            }
        }
    }

    /// Sends and receives.
    fn pump(&mut self, now: Instant) -> io::Result<()> {
        let Some(endpoint) = &mut self.endpoint else { return Ok(()) };
        match endpoint.pump() {
            Ok(events) => {
                for event in events {
                    self.handle_event(event, now)?;
                }
                if self.registered.swap(false, Ordering::Relaxed) {
                    self.observer.registered();
                }
            }
            Err(why) => {
                self.endpoint = None;
                self.instances.clear();
                self.flushes.clear();
                self.registered = Arc::default();
                for worker in self.workers.iter().filter(|worker| worker.thread.is_some()) {
                    worker.mailbox.send(Command::StopAll);
                }
                self.reconnection.failed(now);
                self.observer.disconnected(&why.to_string());
            }
        }
        Ok(())
    }

    fn handle_event(&mut self, event: Event, now: Instant) -> io::Result<()> {
        match event {
            Event::Connected => {
                self.reconnection.succeeded();
                let registered = self.registered.clone();
                if let Some(endpoint) = &mut self.endpoint {
                    // Runs when the service has handled the registrations before.
                    endpoint.sync(move || registered.store(true, Ordering::Relaxed));
                }
            }
            Event::Setup { id, config } => self.set_up(id, config)?,
            Event::Start { id, config } => {
                if self.instances.find(id).is_none() {
                    self.set_up(id, config)?;
                }
                self.start(id, now);
            }
            Event::Stop { id } => {
                if let Some((id, _)) = self.instances.find(id) {
                    self.stop(id, now);
                }
            }
            Event::Flush { ids, request, .. } => {
                let by_worker = self.by_worker(&ids);
                let number = self.flushes.begin(request, by_worker.len(), now);
                for (worker, ids) in by_worker {
                    self.workers[worker].mailbox.send(Command::Flush(ids, number));
                }
            }
            Event::ClearIncrementalState { ids } => {
                for (worker, ids) in self.by_worker(&ids) {
                    self.workers[worker].mailbox.send(Command::ClearIncrementalState(ids));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn set_up(&mut self, service_id: u64, config: Vec<u8>) -> io::Result<()> {
        let reader = DataSourceConfigReader::new(&config);
        let name = String::from_utf8_lossy(reader.name().unwrap_or_default()).into_owned();
        let session = TracingSession(reader.tracing_session_id().unwrap_or(0));
        let Some(&(worker, source)) = self.places.get(&name) else { return Ok(()) };
        if self.instances.find(service_id).is_some() {
            return Ok(());
        }
        if self.instances.len() >= MAX_INSTANCES {
            log::warn!("{name} cannot record: there are {MAX_INSTANCES} instances already; end some sessions");
            return Ok(());
        }
        self.start_worker(worker)?;
        let id = self.instances.insert(LiveInstance::new(service_id, &name, worker, &config));
        self.workers[worker].mailbox.send(Command::SetUp(source, Instance { id, session, config }));
        Ok(())
    }

    fn start(&mut self, service_id: u64, now: Instant) {
        let (Some((id, instance)), Some(endpoint)) = (self.instances.find(service_id), &self.endpoint) else { return };
        if instance.phase == Phase::SetUp {
            instance.starting(now);
            // Only the worker waits while the memory is full.
            let writer = endpoint.create_writer(instance.target_buffer, BufferExhausted::Stall);
            self.workers[instance.worker].mailbox.send(Command::Start(id, Box::new(writer)));
        }
    }

    fn stop(&mut self, id: InstanceId, now: Instant) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        if matches!(instance.phase, Phase::Stopping(_)) {
            return;
        }
        let has_not_started = instance.phase == Phase::Starting;
        instance.stopping(now);
        self.workers[instance.worker].mailbox.send(Command::Stop(id));
        if has_not_started {
            self.report(id, "the session ended before the data source was ready; record for longer");
        }
    }

    fn handle_reply(&mut self, reply: Reply) -> io::Result<()> {
        match reply {
            Reply::Started(id) => {
                let starting = self.instances.get_mut(id).filter(|instance| instance.phase == Phase::Starting);
                if let (Some(instance), Some(endpoint)) = (starting, &mut self.endpoint) {
                    instance.phase = Phase::Started;
                    endpoint.notify_started(instance.service_id);
                }
            }
            Reply::Stopped(id) => self.stopped(id),
            Reply::Flushed(number) => self.flushes.answered(number),
            Reply::Ended => return Err(io::Error::other("a thread of the data sources has ended")),
        }
        Ok(())
    }

    /// Tells the service that an instance has ended.
    fn stopped(&mut self, id: InstanceId) {
        if let (Some(instance), Some(endpoint)) = (self.instances.remove(id), &mut self.endpoint) {
            endpoint.notify_stopped(instance.service_id);
        }
    }

    /// Does what is due although workers have not answered.
    fn expire(&mut self, now: Instant) {
        while let Some((request, is_late)) = self.flushes.take_done(now) {
            if is_late {
                log::warn!("a data source did not flush in time: the end of its data may be missing");
            }
            if let Some(endpoint) = &mut self.endpoint {
                endpoint.acknowledge_flush(request);
            }
        }
        for id in self.instances.late_to_stop(now) {
            if let Some(why) = self.instances.get_mut(id).map(|instance| instance.reason_to_be_late()) {
                self.report(id, &why);
            }
            self.stopped(id);
        }
        for id in self.instances.forgotten(now) {
            self.report(id, "the service did not stop the data source long after the end of its session");
            self.stop(id, now);
        }
    }

    /// Logs a problem of an instance, and writes it into the trace.
    fn report(&mut self, id: InstanceId, problem: &str) {
        let (Some(instance), Some(endpoint)) = (self.instances.get_mut(id), &self.endpoint) else { return };
        log::warn!("{}: {problem}", instance.data_source);
        let mut writer = endpoint.create_writer(instance.target_buffer, BufferExhausted::Drop);
        problem::write(&mut writer, &instance.data_source, problem);
    }

    fn deadline(&self) -> Option<Instant> {
        let connect = self.endpoint.is_none().then(|| self.reconnection.next());
        let commit = self.endpoint.as_ref().and_then(Endpoint::deadline);
        [connect, commit, self.flushes.deadline(), self.instances.deadline()].into_iter().flatten().min()
    }

    /// Waits until something happens. Returns whether `stop` is readable.
    fn wait(&mut self, stop: &OwnedFd, deadline: Option<Instant>) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(stop.as_fd(), false), PollFd::new(self.replies.as_fd(), false)];
        if let Some(endpoint) = &self.endpoint {
            fds.push(PollFd::new(endpoint.as_fd(), endpoint.wants_write()));
            fds.push(PollFd::new(endpoint.waker(), false));
        } else if let Some(watch) = self.reconnection.watch() {
            fds.push(PollFd::new(watch.as_fd(), false));
        }
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if let Err(why) = poll(&mut fds, timeout) {
            return if why.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(why) };
        }
        let (stops, has_appeared) =
            (fds[0].is_readable(), self.endpoint.is_none() && fds.get(2).is_some_and(PollFd::is_readable));
        if has_appeared {
            self.reconnection.look(Instant::now());
        }
        Ok(stops)
    }

    /// Groups the instances that are started by their workers.
    fn by_worker(&mut self, service_ids: &[u64]) -> BTreeMap<usize, Vec<InstanceId>> {
        let mut by_worker = BTreeMap::<_, Vec<_>>::new();
        for &service_id in service_ids {
            let Some((id, instance)) = self.instances.find(service_id) else { continue };
            if matches!(instance.phase, Phase::Starting | Phase::Started) {
                by_worker.entry(instance.worker).or_default().push(id);
            }
        }
        by_worker
    }

    fn start_worker(&mut self, index: usize) -> io::Result<()> {
        let Some(group) = self.workers[index].group.take() else { return Ok(()) };
        let other = self.workers.iter().enumerate().filter(|(other, _)| *other != index);
        let others = other.map(|(_, worker)| worker.mailbox.clone()).collect();
        let worker = &mut self.workers[index];
        worker.thread = Some(Worker::spawn(group, worker.mailbox.clone(), others, self.replies.clone())?);
        Ok(())
    }

    /// Flushes and tears down all instances, and sends what they wrote.
    fn end(mut self, stop: &OwnedFd) -> io::Result<()> {
        let _ = rustix::io::read(stop, &mut [0_u8; 1]);
        self.observer.stopping();
        let mut by_worker = BTreeMap::<_, Vec<_>>::new();
        for (id, instance) in self.instances.started() {
            by_worker.entry(instance.worker).or_default().push(id);
        }
        let mut running = 0;
        for (index, worker) in self.workers.iter().enumerate().filter(|(_, worker)| worker.thread.is_some()) {
            running += 1;
            let started = by_worker.remove(&index).unwrap_or_default();
            worker.mailbox.send(Command::Flush(started, 0));
            worker.mailbox.send(Command::End);
        }
        let patience = Instant::now() + END_PATIENCE;
        while running > 0 && Instant::now() < patience {
            self.send_last_words();
            running -= self.replies.take().into_iter().filter(|reply| *reply == Reply::Ended).count();
            if running > 0 && self.wait(stop, Some(patience))? {
                log::warn!("ending at once: some data sources are not torn down");
                return Ok(());
            }
        }
        if running > 0 {
            log::warn!("{running} threads of data sources do not end: files that they read may hang");
        }
        // The data that the workers flushed last is on its way when the service has answered a
        // later call.
        let answered = Arc::new(AtomicBool::new(false));
        if let Some(endpoint) = &mut self.endpoint {
            self.instances.service_ids().for_each(|id| endpoint.notify_stopped(id));
            let set = answered.clone();
            endpoint.sync(move || set.store(true, Ordering::Relaxed));
        }
        let patience = Instant::now() + LAST_WORDS_PATIENCE;
        while self.endpoint.is_some() && !answered.load(Ordering::Relaxed) && Instant::now() < patience {
            self.send_last_words();
            if !answered.load(Ordering::Relaxed) && self.wait(stop, Some(patience))? {
                break;
            }
        }
        Ok(())
    }

    /// Sends what writers have written. Commands of the service no longer count.
    fn send_last_words(&mut self) {
        if self.endpoint.as_mut().is_some_and(|endpoint| endpoint.pump().is_err()) {
            self.endpoint = None;
        }
    }
}
