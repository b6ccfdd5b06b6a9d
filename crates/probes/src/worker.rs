//! [`Worker`]: a thread on which some data sources work.
//!
//! The control thread sends [`Command`]s into the worker's [`Mailbox`]; the worker sends
//! [`Reply`]s back. Writers wait while the shared memory is full, which holds up only the worker:
//! the control thread goes on to send what is there, so that the service makes room.
//!
//! ```text
//! control thread ── Command ──► Mailbox ──► worker ── DataSource::set_up, start, flush, stop
//!       ▲                                     │   ▲
//!       └────────────── Reply ────────────────┘   └── DataSource::tick: deadlines, descriptors
//! ```

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use esatto::producer::TraceWriter;
use esatto_ipc::sys::{PollFd, poll};

use crate::boosts::Boosts;
use crate::data_source::{DataSource, Instance, InstanceId, Monotonic, Observations, SetupError};
use crate::mailbox::{Command, Mailbox};
use crate::metatrace;
use crate::problem;
use crate::replies::{Replies, Reply};

/// Commands in a row, before data sources whose time has come get their turn.
const COMMANDS_PER_TURN: usize = 64;

/// Data sources that work on one thread.
pub(crate) struct SourceGroup {
    /// Name of the thread, at most 15 bytes.
    pub(crate) thread: &'static str,
    pub(crate) sources: Vec<Box<dyn DataSource + Send>>,
}

/// Data sources, with the thread on which they work.
pub(crate) struct Worker {
    sources: Vec<Box<dyn DataSource + Send>>,
    /// Names of the data sources.
    names: Vec<&'static str>,
    instances: BTreeMap<InstanceId, Entry>,
    mailbox: Arc<Mailbox>,
    /// Mailboxes of the other workers.
    others: Vec<Arc<Mailbox>>,
    replies: Arc<Replies>,
    clock: fn() -> Monotonic,
    observations: Observations,
    boosts: Boosts,
}

struct Entry {
    /// Index of the data source.
    source: usize,
    /// Reason why the instance does not record.
    failure: Option<SetupError>,
    is_started: bool,
}

impl Worker {
    /// Starts the thread. It sleeps while none of its instances has something to do, and ends with
    /// [`Command::End`].
    pub(crate) fn spawn(
        group: SourceGroup,
        mailbox: Arc<Mailbox>,
        others: Vec<Arc<Mailbox>>,
        replies: Arc<Replies>,
    ) -> io::Result<JoinHandle<()>> {
        let name = group.thread;
        let mut worker = Self::new(group, mailbox, others, replies, monotonic_now);
        Builder::new().name(name.to_owned()).spawn(move || worker.run())
    }

    fn new(
        group: SourceGroup,
        mailbox: Arc<Mailbox>,
        others: Vec<Arc<Mailbox>>,
        replies: Arc<Replies>,
        clock: fn() -> Monotonic,
    ) -> Self {
        let (sources, instances) = (group.sources, BTreeMap::new());
        // Once per process: they also name records of the probes' own activity.
        let names = sources.iter().map(|source| &*name_of(source.as_ref()).leak()).collect();
        Self {
            sources,
            names,
            instances,
            mailbox,
            others,
            replies,
            clock,
            observations: Vec::new(),
            boosts: Boosts::default(),
        }
    }

    fn run(&mut self) {
        let _ended = self.replies.report_end();
        let mut has_commands = true;
        while !has_commands || self.handle_commands() {
            self.tick();
            has_commands = self.wait();
        }
    }

    /// Handles some of the commands. Returns whether the thread goes on.
    fn handle_commands(&mut self) -> bool {
        for _ in 0..COMMANDS_PER_TURN {
            let Some(command) = self.mailbox.take() else { break };
            if !self.handle(command) {
                return false;
            }
        }
        true
    }

    fn handle(&mut self, command: Command) -> bool {
        match command {
            Command::SetUp(source, instance) => self.set_up(source, instance),
            Command::Start(id, writer) => self.start(id, *writer),
            Command::Flush(ids, request) => {
                for id in ids {
                    self.flush(id);
                }
                self.replies.send(Reply::Flushed(request));
            }
            Command::Stop(id) => {
                self.stop(id);
                self.replies.send(Reply::Stopped(id));
            }
            Command::ClearIncrementalState(ids) => {
                for id in ids {
                    if let Some(entry) = self.instances.get(&id).filter(|entry| entry.is_started) {
                        self.sources[entry.source].clear_incremental_state(id);
                    }
                }
            }
            Command::StopAll => self.stop_all(),
            Command::Observe(observations) => {
                for source in &mut self.sources {
                    observations.iter().for_each(|(session, observed)| source.observe(*session, observed));
                }
            }
            Command::End => {
                self.stop_all();
                return false;
            }
        }
        true
    }

    fn set_up(&mut self, index: usize, instance: Instance) {
        let Some(source) = self.sources.get_mut(index) else { return };
        let id = instance.id;
        self.boosts.begin(&instance);
        let failure = source.set_up(instance).err();
        if let Some(reason) = &failure {
            log::warn!("{} cannot record: {reason}", self.names[index]);
        }
        self.instances.insert(id, Entry { source: index, failure, is_started: false });
        self.mailbox.set_instances(self.instances.len());
    }

    fn start(&mut self, id: InstanceId, mut writer: TraceWriter) {
        if let Some(entry) = self.instances.get_mut(&id).filter(|entry| !entry.is_started) {
            entry.is_started = true;
            let source = &mut self.sources[entry.source];
            match &entry.failure {
                None => source.start(id, writer),
                Some(reason) => problem::write(&mut writer, self.names[entry.source], &reason.0),
            }
        }
        self.replies.send(Reply::Started(id));
    }

    fn flush(&mut self, id: InstanceId) {
        let Some(entry) = self.instances.get(&id).filter(|entry| entry.is_started && entry.failure.is_none()) else {
            return;
        };
        let index = entry.source;
        let _flush = metatrace::scope(self.names[index]);
        self.sources[index].flush(id, &mut self.observations);
        self.pass_observations(index);
    }

    fn stop(&mut self, id: InstanceId) {
        let Some(entry) = self.instances.remove(&id) else { return };
        self.mailbox.set_instances(self.instances.len());
        self.boosts.end(id);
        // After a failed set-up the data source does not know the instance.
        if entry.failure.is_none() {
            self.sources[entry.source].stop(id);
        }
    }

    fn stop_all(&mut self) {
        while let Some((&id, _)) = self.instances.first_key_value() {
            self.stop(id);
        }
    }

    /// Gives the data sources whose time has come their turn. Those whose descriptors are readable
    /// have asked for it in [`wait`](Self::wait).
    fn tick(&mut self) {
        for index in 0..self.sources.len() {
            let source = &mut self.sources[index];
            let is_due = |now| source.deadline().is_some_and(|deadline| deadline <= now);
            let now = (self.clock)();
            if is_due(now) {
                let _turn = metatrace::scope(self.names[index]);
                source.tick(now, &mut self.observations);
                self.pass_observations(index);
            }
        }
    }

    /// Waits for a command, a deadline or a descriptor. Data sources with a readable descriptor get
    /// their turn. Returns true if there may be commands.
    fn wait(&mut self) -> bool {
        let deadline = self.sources.iter().filter_map(|source| source.deadline()).min();
        let timeout = deadline.map(|deadline| deadline.saturating_sub((self.clock)()));
        let mut fds = vec![PollFd::new(self.mailbox.as_fd(), false)];
        let mut owners = Vec::new();
        for (index, source) in self.sources.iter().enumerate() {
            for fd in source.descriptors() {
                fds.push(PollFd::new(fd, false));
                owners.push(index);
            }
        }
        if let Err(why) = poll(&mut fds, timeout) {
            if why.kind() != io::ErrorKind::Interrupted {
                log::error!("cannot wait for events: {why}");
                // Not again at once.
                std::thread::sleep(PAUSE_AFTER_ERROR);
            }
            return true;
        }
        let has_commands = fds[0].is_readable();
        let is_ready = |fd: &PollFd<'_>| fd.is_readable() || fd.is_hung_up();
        let mut ready: Vec<usize> =
            fds[1..].iter().zip(owners).filter(|(fd, _)| is_ready(fd)).map(|(_, owner)| owner).collect();
        ready.dedup();
        for index in ready {
            let now = (self.clock)();
            let _turn = metatrace::scope(self.names[index]);
            self.sources[index].tick(now, &mut self.observations);
            self.pass_observations(index);
        }
        has_commands
    }

    /// Passes what the data source with this index observed to all others, also those of other
    /// workers.
    fn pass_observations(&mut self, from: usize) {
        if self.observations.is_empty() {
            return;
        }
        for (index, source) in self.sources.iter_mut().enumerate() {
            if index != from {
                self.observations.iter().for_each(|(session, observed)| source.observe(*session, observed));
            }
        }
        // Only files are of interest elsewhere.
        if self.observations.iter().any(|(_, observed)| !observed.inodes.is_empty()) && !self.others.is_empty() {
            let observations = Arc::new(std::mem::take(&mut self.observations));
            self.others.iter().for_each(|other| other.send_observations(&observations));
        }
        self.observations.clear();
    }
}

/// Pause after a call of the system that should not fail.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// Returns the name of a data source.
pub(crate) fn name_of(source: &dyn DataSource) -> String {
    source.descriptor().name.map(|name| String::from_utf8_lossy(name.as_ref()).into_owned()).unwrap_or_default()
}

/// Reads CLOCK_MONOTONIC.
pub(crate) fn monotonic_now() -> Monotonic {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
