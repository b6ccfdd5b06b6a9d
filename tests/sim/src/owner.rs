//! The simulated owner of the service: its sockets, timers and files, as the daemon has them. It
//! checks that the service keeps the contract of `esatto_service::api`.

use std::sync::Arc;

use esatto_ipc::{HostEvent, Invoke};
use esatto_service::{
    Attachment, CallId, ClientId, ConsumerCall, FileId, Input, MemoryKind, Output, ProducerCall, RelayCall, Reply,
    SharedBuffer, TimerClock, TimerId,
};
use esatto_shm::PrivateRegion;

use crate::connection::{Attached, Port, SharedMemory};
use crate::files::SimFile;
use crate::memory::{SimBuffer, take_seen};
use crate::model::SessionModel;
use crate::profile::MS;
use crate::relay::name_of;
use crate::rng::Rng;
use crate::work::About;
use crate::world::{CallKind, Event, Pending, Phase, World, trace};

/// Hands an input to the service, and leaves what happened, and the outputs, to be checked.
impl World {
    pub(crate) fn handle(&mut self, input: Input<'_>) {
        trace!(self, "→ {}", shorten(&format!("{input:?}")));
        self.tally.inputs += 1;
        let now = self.now();
        self.about = About::of(&input);
        let before = self.service.work();
        let held = crate::alloc::count(|| self.service.handle(&now, input, &mut self.outputs));
        self.tally.peak_bytes = self.tally.peak_bytes.max(held);
        self.work = self.service.work() - before;
        take_seen(&mut self.seen);
        if self.tally.inputs % 64 == 0 {
            self.assert_memory_is_bounded();
        }
        if self.tally.inputs % 256 == 0 {
            self.assert_shares();
        }
    }

    /// Hands in an input that the model need not know, and checks its effects.
    pub(crate) fn feed(&mut self, input: Input<'_>) {
        self.handle(input);
        self.settle();
    }

    /// Handles the complete frames. Each call is an input of as many bytes as its frame.
    pub(crate) fn take_frames(&mut self, index: usize) {
        loop {
            if !self.clients[index].is_open {
                return;
            }
            let mut decoder = core::mem::take(&mut self.clients[index].decoder);
            let mut answer = Vec::new();
            let client = &mut self.clients[index];
            let (call, is_over) = match decoder.next_frame() {
                Ok(Some(frame)) => match client.host.handle(&frame, &mut answer) {
                    Some(HostEvent::Invoke(invoke)) => (Some((Call::of(&invoke), invoke.args.to_vec())), false),
                    _ => (None, false),
                },
                Ok(None) => (None, true),
                Err(_) => {
                    // A frame that is too large: the connection ends.
                    self.clients[index].decoder = decoder;
                    self.crash(index);
                    return;
                }
            };
            let end = decoder.consumed();
            client.decoder = decoder;
            self.send_down(index, answer);
            if let Some((call, args)) = call {
                self.invoke(index, call, &args, end);
                self.input_bytes = 0;
            }
            if is_over {
                return;
            }
        }
    }

    fn invoke(&mut self, index: usize, call: Call, args: &[u8], end: u64) {
        let client = &mut self.clients[index];
        let is_new = !core::mem::replace(&mut client.introduced, true);
        let (id, peer, memory, port) = (client.id, client.peer, client.memory_kind, client.port);
        match port {
            _ if !is_new => {}
            Port::Consumer => self.feed(Input::ConsumerConnected { client: id, peer }),
            Port::Producer => self.feed(Input::ProducerConnected { client: id, peer, memory }),
            Port::Relay => {
                self.feed(Input::RelayConnected { client: id, peer });
                self.feed(Input::MachineNamed { client: id, name: name_of(peer.machine_id).as_bytes() });
            }
        }
        let attached = self.take_attached(index, end);
        self.input_bytes = args.len();
        if port == Port::Relay {
            match RelayCall::read(call.method, args) {
                Some(parsed) => {
                    let call = self.note_call(index, CallKind::Simple, call);
                    self.relay_call(index, call, parsed);
                }
                None => self.not_invoked(index, call.request_id),
            }
        } else if port == Port::Consumer {
            match ConsumerCall::read(call.method, args) {
                Some(parsed) => {
                    let kind = consumer_kind(&parsed);
                    let call = self.note_call(index, kind, call);
                    self.consumer_call(index, call, parsed, attached == Some(Attached::File));
                }
                None => self.not_invoked(index, call.request_id),
            }
        } else {
            match ProducerCall::read(call.method, args) {
                Some(parsed) => {
                    let is_offer =
                        matches!(parsed, ProducerCall::InitializeConnection(_)) && attached == Some(Attached::Memory);
                    let offered = if is_offer { self.own_memory(index) } else { None };
                    let kind = producer_kind(&parsed);
                    let call = self.note_call(index, kind, call);
                    self.producer_call(index, call, parsed, offered, args);
                }
                None => self.not_invoked(index, call.request_id),
            }
        }
    }

    fn not_invoked(&mut self, index: usize, request_id: u64) {
        let mut out = Vec::new();
        self.clients[index].host.reply_not_invoked(request_id, &mut out);
        self.send_down(index, out);
    }

    fn note_call(&mut self, index: usize, kind: CallKind, call: Call) -> CallId {
        let client = &mut self.clients[index];
        client.last_call += 1;
        let id = CallId { client: client.id, request: client.last_call };
        self.calls.insert(id, Pending { kind, request_id: (!call.drop_reply).then_some(call.request_id) });
        id
    }

    fn own_memory(&mut self, index: usize) -> Option<Box<dyn SharedBuffer>> {
        let memory = self.clients[index].memory.clone()?;
        Some(self.service_view(index, &memory))
    }

    fn service_view(&mut self, index: usize, memory: &SharedMemory) -> Box<dyn SharedBuffer> {
        let mischief =
            self.clients[index].is_hostile.then(|| (Rng::new(self.rng.bits()), self.rng.pick(&[3, 20, 200])));
        Box::new(SimBuffer::new(index as u64, memory.region.clone(), memory.page_size, mischief))
    }

    pub(crate) fn hung_up(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if !core::mem::replace(&mut client.is_open, false) {
            return;
        }
        client.is_alive = false;
        self.actors[index] = None;
        let id = self.clients[index].id;
        let mine = CallId { client: id, request: 0 }..=CallId { client: id, request: u64::MAX };
        let calls: Vec<CallId> = self.calls.range(mine).map(|(call, _)| *call).collect();
        self.calls.retain(|call, _| !calls.contains(call));
        if !self.clients[index].introduced {
            return;
        }
        match self.clients[index].port {
            Port::Consumer => self.consumer_hung_up(index),
            Port::Producer => self.producer_hung_up(index),
            Port::Relay => {
                self.model.pings.remove(&index);
                self.feed(Input::RelayDisconnected(id));
            }
        }
    }

    pub(crate) fn timer_is_due(&mut self, timer: TimerId) {
        let Some(&(clock, at_ns)) = self.timers.get(&timer) else { return };
        let axis_ns = self.axis_ns(clock);
        if axis_ns < at_ns {
            return;
        }
        self.timers.remove(&timer);
        self.feed(Input::TimerExpired(timer));
    }

    fn axis_ns(&self, clock: TimerClock) -> u64 {
        match clock {
            TimerClock::Monotonic => self.now_ns,
            TimerClock::Boottime => self.now_ns + self.suspended_ns,
        }
    }

    pub(crate) fn client_is_ready(&mut self, index: usize) {
        if self.clients[index].is_open {
            self.model.tells_of_past = true;
            self.feed(Input::Ready(self.clients[index].id));
            self.model.tells_of_past = false;
        }
    }

    pub(crate) fn memory_was_made(&mut self, index: usize) {
        if !self.clients[index].is_open {
            return;
        }
        let fails = self.phase == Phase::Running && self.rng.percent(self.profile.no_memory);
        let memory = self.clients[index].memory.clone().filter(|_| !fails);
        let buffer = memory.map(|memory| self.service_view(index, &memory));
        self.memory_for_producer(index, buffer);
    }

    pub(crate) fn file_was_opened(&mut self, file: FileId) {
        let fails = self.rng.percent(self.profile.file_faults);
        if fails {
            self.files.remove(&file);
        }
        self.file_opened(file, if fails { Err("permission denied".to_owned()) } else { Ok(()) });
    }

    pub(crate) fn priority_was_set(&mut self, change: u64) {
        let fails = self.phase == Phase::Running && self.rng.percent(self.profile.priority_faults);
        self.priority_set(change, if fails { Err("operation not permitted".to_owned()) } else { Ok(()) });
    }

    pub(crate) fn file_was_written(&mut self, file: FileId) {
        let result = self.files.get_mut(&file).expect("a file that was written to").write_oldest();
        trace!(self, "file {} written: {result:?}", file.0);
        self.file_written(file, result);
    }

    /// Carries out an output of the service, and lets the model check it.
    pub(crate) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Reply(reply) => self.carry_reply(&reply),
            Output::Reject(call) => {
                if let Some((index, pending)) = self.answered(call, false, "rejected") {
                    self.model_rejected(call, pending);
                    self.reply_down(index, pending, None);
                }
            }
            Output::CreateSharedBuffer { client, size_bytes, page_size_bytes } => {
                let index = client.0 as usize;
                let memory =
                    SharedMemory { region: Arc::new(PrivateRegion::new(size_bytes)), page_size: page_size_bytes };
                assert_eq!(
                    self.clients[index].memory_kind,
                    MemoryKind::Shared,
                    "memory is made for an emulated producer"
                );
                self.clients[index].memory = Some(memory);
                self.model.creating.insert(index);
                let delay_ns = self.rng.below(5 * MS);
                self.after(delay_ns, Event::Memory(index));
            }
            Output::CloseClient { client, .. } => {
                let index = client.0 as usize;
                if self.clients[index].is_alive {
                    self.crash(index);
                }
            }
            Output::AwaitReady(client) => {
                let index = client.0 as usize;
                let is_slow = self.rng.percent(self.profile.slow_readers);
                let delay_ns = if is_slow { self.rng.below(50 * MS) } else { 0 };
                self.after(delay_ns, Event::Ready(index));
            }
            Output::SetTimer { timer, clock, at_ns } => {
                assert!(self.timers.insert(timer, (clock, at_ns)).is_none(), "a timer is set twice");
                let late_ns = if self.profile.late_ns == 0 { 0 } else { self.rng.below(self.profile.late_ns) };
                let delay_ns = at_ns.saturating_sub(self.axis_ns(clock)) + late_ns;
                self.after(delay_ns, Event::Timer(timer.0));
            }
            Output::CancelTimer(timer) => {
                // Sometimes it comes too late.
                if self.phase != Phase::Running || !self.rng.percent(5) {
                    self.timers.remove(&timer);
                }
            }
            Output::AdoptFile { file, call } => {
                let kind = self.calls.get(&call).map(|pending| pending.kind);
                if kind == Some(CallKind::Clone) {
                    return self.clone_adopts(call, file);
                }
                assert_eq!(kind, Some(CallKind::Enable), "files: a call that brings no file");
                let session = self.model.sessions.values_mut().find(|session| session.enable_call == Some(call));
                let session = session.expect("files are asked for with a session");
                session.file = Some(file);
                let limit = session.config.max_file_size_bytes;
                self.new_file(file, limit);
            }
            Output::CopyFile { from, to } => self.copy_file(from, to),
            Output::SetPriority { change, boost } => {
                self.model_priority(change, boost);
                let delay_ns = self.rng.below(3 * MS);
                self.after(delay_ns, Event::Priority(change));
            }
            Output::CreateFile { file, path, .. } => {
                let wants = |session: &&mut SessionModel| session.config.output_path.as_deref() == Some(&path[..]);
                let session = self.model.sessions.values_mut().find(wants).expect("files: nobody wants this file");
                session.file = Some(file);
                let limit = session.config.max_file_size_bytes;
                self.new_file(file, limit);
                let delay_ns = self.rng.below(3 * MS);
                self.after(delay_ns, Event::Opened(file.0));
            }
            Output::WriteFile { file, bytes } => {
                let target = self.files.get_mut(&file).expect("files: a write to a file that does not exist");
                assert!(!target.is_closed, "files: a write to a closed file");
                target.waiting.push_back(bytes);
                let delay_ns = target.delay_ns;
                self.after(delay_ns, Event::Written(file.0));
            }
            Output::SyncFile(file) => {
                assert!(self.files.get(&file).is_some_and(|file| !file.is_closed), "files: a sync of a closed file");
            }
            Output::CloseFile(file) => {
                let target = self.files.get_mut(&file).expect("files: a file that does not exist is closed");
                assert!(!core::mem::replace(&mut target.is_closed, true), "files: a file is closed twice");
                for session in self.model.sessions.values_mut().filter(|session| session.file == Some(file)) {
                    session.file = None;
                }
            }
            Output::Log { level, text } => trace!(self, "log {level:?}: {text}"),
            other => panic!("the simulation does not know {other:?}"),
        }
    }

    /// Creates the file of a session, or of the clone that is being made.
    pub(crate) fn new_file(&mut self, file: FileId, limit: Option<u64>) {
        let fails = self.rng.percent(self.profile.file_faults);
        let is_slow = self.rng.percent(self.profile.slow_files);
        let opened = SimFile {
            room: fails.then(|| self.rng.below(200_000) as usize),
            delay_ns: if is_slow { self.rng.below(400 * MS) } else { 0 },
            limit: limit.filter(|&limit| limit != 0),
            ..SimFile::default()
        };
        assert!(self.files.insert(file, opened).is_none(), "files: a file id is used twice");
    }

    fn carry_reply(&mut self, reply: &Reply) {
        let Some((index, pending)) = self.answered(reply.call, reply.has_more, "answered") else { return };
        if reply.attachment == Attachment::SharedBuffer {
            assert!(self.clients[index].memory.is_some(), "memory is announced that was not made");
        }
        self.model_replied(index, reply, pending);
        self.reply_down(index, pending, Some((reply.body.as_bytes(), reply.has_more)));
    }

    /// Returns the connection and the call of an answer, or `None` if the client is gone.
    fn answered(&mut self, call: CallId, has_more: bool, how: &str) -> Option<(usize, Pending)> {
        let index = call.client.0 as usize;
        if !self.clients[index].is_open {
            return None;
        }
        let pending = self.calls.get(&call).copied();
        let pending = pending.unwrap_or_else(|| panic!("every request is answered once: {call:?} is {how} again"));
        if !has_more {
            self.calls.remove(&call);
        }
        Some((index, pending))
    }

    fn reply_down(&mut self, index: usize, pending: Pending, body: Option<(&[u8], bool)>) {
        let Some(request_id) = pending.request_id else { return };
        let mut out = Vec::new();
        match body {
            Some((body, has_more)) => self.clients[index]
                .host
                .reply_ok(request_id, body, has_more, &mut out)
                .expect("every reply fits into a frame"),
            None => self.clients[index].host.reply_rejected(request_id, &mut out),
        }
        self.send_down(index, out);
    }

    /// Demands an answer to this call within this time of the service. Late timers extend it.
    pub(crate) fn expect_answer(&mut self, call: CallId, within_ns: u64) {
        let slack_ns = 5_000 * MS + 8 * self.profile.late_ns;
        self.after(within_ns + slack_ns, Event::Deadline(call.client.0 as usize, call.request));
    }
}

/// The part of an invoke frame that outlives the decoder's buffer.
#[derive(Clone, Copy, Debug)]
struct Call {
    method: u32,
    request_id: u64,
    drop_reply: bool,
}

impl Call {
    fn of(invoke: &Invoke<'_>) -> Self {
        Self { method: invoke.method_id, request_id: invoke.request_id, drop_reply: invoke.drop_reply }
    }
}

fn producer_kind(call: &ProducerCall<'_>) -> CallKind {
    match call {
        ProducerCall::GetAsyncCommand(_) => CallKind::Commands,
        ProducerCall::CommitData(_) => CallKind::Commit,
        _ => CallKind::Simple,
    }
}

fn consumer_kind(call: &ConsumerCall<'_>) -> CallKind {
    match call {
        ConsumerCall::EnableTracing(_) => CallKind::Enable,
        ConsumerCall::ReadBuffers(_) => CallKind::Read,
        ConsumerCall::Flush(_) => CallKind::Flush,
        ConsumerCall::GetTraceStats(_) => CallKind::Stats,
        ConsumerCall::ObserveEvents(_) => CallKind::Observe,
        ConsumerCall::CloneSession(_) => CallKind::Clone,
        _ => CallKind::Simple,
    }
}

/// Cuts a line so that the log stays readable.
fn shorten(text: &str) -> &str {
    let end = text.char_indices().nth(300).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Returns the number of a client.
pub(crate) fn index_of(client: ClientId) -> usize {
    client.0 as usize
}
