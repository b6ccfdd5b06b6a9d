//! One connection: its buffers, its side of the RPC layer, and its unanswered calls.

use std::collections::HashMap;
use std::sync::Arc;

use esatto_ipc::connection::Io;
use esatto_ipc::{
    Connection, Error as IpcError, Family, ForeignFd, Frame, FrameBody, Host, HostEvent, Invoke, Limits, Peer, Stream,
};
use esatto_ports::relay_port;
use esatto_service::{
    CallId, ClientId, ConsumerCall, Input, MemoryKind, Outputs, Peer as ServicePeer, ProducerCall, RelayCall, Service,
    SharedBuffer,
};
use esatto_shm::{MappedRegion, Region as _, ServiceRegion};
use rustix::event::epoll::EventFlags;

use crate::clocks;
use crate::closers::Closers;
use crate::shared_memory;
use crate::shared_secret::{Gate, Progress, Refusal, SECRET_SERVICE, SharedSecret};
use crate::socket_role::{Ports, Role};
use crate::stats::Counters;
use crate::system_facts;
use crate::user_shares::{Owner, UserShares};

/// Limits of a producer. It is never paused, because it may block in a write itself and then would
/// never read again. The queue holds many times the bytes that the start of a session sends. If it
/// is full, the daemon disconnects the producer.
const PRODUCER_LIMITS: Limits = Limits { max_queued: 4 << 20, pause_reading_at: usize::MAX };
/// Limits of a consumer. If it does not read its replies, its next requests wait. Only
/// notifications are queued beyond that, so a full queue means that the consumer has stopped
/// reading.
const CONSUMER_LIMITS: Limits = Limits { max_queued: 64 << 20, pause_reading_at: 256 << 10 };
/// More of a trace is read for a client when less than this is queued for it.
const READY_BELOW: usize = 256 << 10;
/// Calls of one connection that may wait for a reply at the same time; more are rejected.
const MAX_PENDING_CALLS: usize = 4096;
/// Bytes of the name of a machine that a log line has.
const LOGGED_NAME_BYTES: usize = 100;

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) role: Role,
    pub(crate) connection: Connection,
    host: Host,
    /// The peer must prove a shared secret first.
    gate: Option<Gate>,
    /// Ports on which the service knows this connection. It learns of a connection with its first
    /// call, because the client of a relay tells its identity before.
    introduced: Introduced,
    /// Calls that want a reply: our number and that of the client, which need not be unique.
    pending: HashMap<u64, u64>,
    last_call: u64,
    /// Memory that the daemon created for the producer, to be sent with a reply, possibly again.
    pub(crate) shared: Option<Arc<MappedRegion>>,
    /// Memory that the producer brought along.
    adopted: Option<Arc<MappedRegion>>,
    /// The service has more of a trace for this client.
    pub(crate) awaits_ready: bool,
    /// Events that the loop waits for on the socket.
    pub(crate) interest: EventFlags,
    pub(crate) owner: Owner,
    /// Address of a peer on another machine.
    from: Option<String>,
    /// Bytes held and memory shared, as counted in the shares of its owner.
    pub(crate) held_counted: usize,
    pub(crate) memory_counted: usize,
    /// The connection is on the loop's list of changed ones.
    pub(crate) is_dirty: bool,
    /// The peer has closed the connection, which is on the loop's list of connections to end.
    pub(crate) has_hung_up: bool,
    consumed: u64,
    /// Bytes of replies so far.
    replied: u64,
}

/// The service and its surroundings while a call is handled.
#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    pub(crate) service: &'a mut Service,
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) attached: &'a mut Option<AttachedFile>,
    pub(crate) shares: &'a mut UserShares,
    pub(crate) counters: &'a Counters,
}

impl Client {
    /// Creates the client of a new connection. With a secret, it gets `ports` after its proof.
    pub(crate) fn new(
        id: ClientId,
        role: Role,
        mut stream: Stream,
        ports: Ports,
        secret: Option<SharedSecret>,
        closers: &Closers,
    ) -> Self {
        let peer = Peer::of(&stream);
        if let Some(disposal) = closers.disposal(&peer) {
            stream.set_disposal(disposal);
        }
        let owner = Owner::of(&peer);
        let (gate, ports) = match secret {
            Some(secret) => (Some(Gate::new(secret, ports)), Gate::ports()),
            None => (None, ports),
        };
        let host = Host::new(ports, peer);
        let from = stream.peer_address();
        let limits = match role {
            Role::Producer => PRODUCER_LIMITS,
            Role::Consumer => CONSUMER_LIMITS,
        };
        Self {
            id,
            role,
            connection: Connection::new(stream, limits),
            host,
            gate,
            introduced: Introduced::default(),
            pending: HashMap::new(),
            last_call: 0,
            shared: None,
            adopted: None,
            awaits_ready: false,
            interest: EventFlags::empty(),
            owner,
            from,
            held_counted: 0,
            memory_counted: 0,
            is_dirty: false,
            has_hung_up: false,
            consumed: 0,
            replied: 0,
        }
    }

    /// Returns the process that connected, if it is known.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.host.peer().pid
    }

    /// Returns role, number, machine, owner and process for log lines.
    pub(crate) fn name(&self) -> impl core::fmt::Display + use<> {
        let pid = self.host.peer().pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        format!("{} ({}{pid})", self.short_name(), self.owner)
    }

    /// Returns role, number and machine for log lines.
    pub(crate) fn short_name(&self) -> String {
        short_name(self.role, self.id, self.host.peer())
    }

    /// Handles the next frame that has arrived.
    ///
    /// # Errors
    ///
    /// The connection must be closed.
    pub(crate) fn handle_frame(&mut self, context: &mut CallContext<'_>) -> Result<Handled, IpcError> {
        let Some((frame, io)) = self.connection.next_frame()? else { return Ok(Handled::Nothing) };
        if let Some(gate) = &mut self.gate {
            return Ok(match gate.handle(&frame, &mut self.host, io.out.buffer()) {
                Ok(Progress::Waiting) => Handled::Frame,
                Ok(Progress::Proved(ports)) => {
                    // The new host keeps the identity that the peer may have told already.
                    self.host = Host::new(ports, self.host.peer().clone());
                    self.gate = None;
                    Handled::Proof
                }
                Err(refusal) => Handled::Refused(refusal),
            });
        }
        let mut call = Call {
            id: self.id,
            role: self.role,
            owner: self.owner,
            host: &mut self.host,
            adopted: &mut self.adopted,
            memory_counted: &mut self.memory_counted,
            introduced: &mut self.introduced,
            pending: &mut self.pending,
            last_call: &mut self.last_call,
            from: self.from.as_deref(),
        };
        call.handle(&frame, io, context);
        let consumed = self.connection.decoder().consumed();
        context.counters.frames_received.add_one();
        context.counters.bytes_received.add(consumed - self.consumed);
        self.consumed = consumed;
        Ok(Handled::Frame)
    }

    /// Returns whether the peer must still prove a shared secret.
    pub(crate) fn is_unproved(&self) -> bool {
        self.gate.is_some()
    }

    /// Answers a call. Does nothing if the client does not wait for the answer.
    ///
    /// # Errors
    ///
    /// The connection must be closed.
    pub(crate) fn reply(
        &mut self,
        call: u64,
        body: &[u8],
        has_more: bool,
        with_memory: bool,
        counters: &Counters,
    ) -> Result<(), IpcError> {
        let Some(&request_id) = self.pending.get(&call) else { return Ok(()) };
        if !has_more {
            self.pending.remove(&call);
        }
        let host = &self.host;
        let out = self.connection.out();
        let before = out.queued();
        let written = match self.shared.as_ref().filter(|_| with_memory) {
            Some(region) => {
                let fd = region.fd().try_clone_to_owned()?;
                out.with_fd(fd, |buffer| host.reply_ok(request_id, body, has_more, buffer))
            }
            None => host.reply_ok(request_id, body, has_more, out.buffer()),
        };
        match written {
            Ok(()) => {}
            // A rejection would end the stream: the client would get no later part.
            Err(e) if has_more => {
                log::error!("{}: {e}: this part is left out", short_name(self.role, self.id, host.peer()))
            }
            Err(e) => {
                log::error!("{}: {e}: the call is rejected", short_name(self.role, self.id, host.peer()));
                host.reply_rejected(request_id, out.buffer());
            }
        }
        let replied = (out.queued() - before) as u64;
        self.replied += replied;
        counters.bytes_sent.add(replied);
        Ok(())
    }

    /// Returns the bytes of replies that have left the queue. Other frames make it less exact, but
    /// it changes whenever the peer takes bytes.
    pub(crate) fn bytes_taken(&self) -> u64 {
        self.replied.wrapping_sub(self.connection.queued() as u64)
    }

    /// Answers that a call was rejected.
    pub(crate) fn reject(&mut self, call: u64) {
        if let Some(request_id) = self.pending.remove(&call) {
            self.host.reply_rejected(request_id, self.connection.out().buffer());
        }
    }

    /// Returns the inputs that tell the service of the connection's end, on each port where it
    /// knows it.
    pub(crate) fn farewells(&self) -> impl Iterator<Item = Input<'static>> + use<> {
        let client = self.introduced.as_client.then_some(match self.role {
            Role::Producer => Input::ProducerDisconnected(self.id),
            Role::Consumer => Input::ConsumerDisconnected(self.id),
        });
        let relay = self.introduced.as_relay.then_some(Input::RelayDisconnected(self.id));
        client.into_iter().chain(relay)
    }

    /// Returns whether more of a trace may be queued for this client.
    pub(crate) fn is_ready(&self) -> bool {
        self.awaits_ready && self.connection.queued() < READY_BELOW
    }

    /// Returns whether pages of its shared memory were taken away.
    pub(crate) fn has_lost_memory(&self) -> bool {
        [&self.shared, &self.adopted].into_iter().flatten().any(|region| region.is_lost())
    }

    /// Returns whether memory can be shared with this client.
    pub(crate) fn memory_kind(&self) -> MemoryKind {
        memory_kind(&self.host)
    }

    /// Returns the events to wait for on the socket.
    pub(crate) fn wanted_interest(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, self.connection.wants_read());
        wanted.set(EventFlags::OUT, self.connection.wants_write());
        wanted
    }
}

/// Frame that a client has handled.
#[derive(Debug)]
pub(crate) enum Handled {
    /// None has arrived.
    Nothing,
    Frame,
    /// The peer has proved the shared secret.
    Proof,
    /// The peer has not proved the shared secret: the connection must be closed.
    Refused(Refusal),
}

/// A descriptor that came with a call, until the call is handled.
#[derive(Debug)]
pub(crate) struct AttachedFile {
    pub(crate) call: CallId,
    pub(crate) fd: ForeignFd,
    /// The owner for whom the descriptor counts if it becomes a trace file.
    pub(crate) owner: Owner,
}

/// Ports on which the service knows a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Introduced {
    /// The port of producers or of consumers.
    as_client: bool,
    as_relay: bool,
}

/// Reason why the memory of a producer is not adopted.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the descriptor is not memory (error {0})")]
    NotMemory(i32),
    #[error("{0} has used up its share of memory")]
    TooMuch(Owner),
    #[error("the connection has shared memory already")]
    Again,
    #[error(transparent)]
    Memory(#[from] esatto_shm::Error),
}

/// A client without its buffers, which a frame borrows.
struct Call<'c> {
    id: ClientId,
    role: Role,
    owner: Owner,
    host: &'c mut Host,
    adopted: &'c mut Option<Arc<MappedRegion>>,
    memory_counted: &'c mut usize,
    introduced: &'c mut Introduced,
    pending: &'c mut HashMap<u64, u64>,
    last_call: &'c mut u64,
    /// Address of a peer on another machine.
    from: Option<&'c str>,
}

impl Call<'_> {
    fn name(&self) -> String {
        short_name(self.role, self.id, self.host.peer())
    }

    fn handle(&mut self, frame: &Frame<'_>, io: Io<'_>, context: &mut CallContext<'_>) {
        let refused = self.host.refused();
        let event = self.host.handle(frame, io.out.buffer());
        if self.host.refused() > refused {
            context.counters.bad_calls.add_one();
            let from = self.from.map(|address| format!(" from {address}")).unwrap_or_default();
            match frame.body {
                FrameBody::BindService { service_name } if service_name == SECRET_SERVICE.as_bytes() => {
                    let name = self.name();
                    log::warn!(
                        "{name}{from} wants to prove a shared secret, but this service has none: start it with \
                         --secret-file, or the relay without"
                    );
                }
                FrameBody::BindService { service_name } => {
                    let port = String::from_utf8_lossy(&service_name[..service_name.len().min(LOGGED_NAME_BYTES)]);
                    log::warn!("{}{from}: an invalid bind_service is refused: there is no port {port:?}", self.name());
                }
                _ => log::warn!("{}: an invalid {} is refused", self.name(), frame.kind()),
            }
        }
        let Some(HostEvent::Invoke(invoke)) = event else { return };
        log::trace!("{}: {} ({} bytes)", self.name(), invoke.method.name, invoke.args.len());
        if self.pending.len() >= MAX_PENDING_CALLS && !invoke.drop_reply {
            log::warn!(
                "{}: {MAX_PENDING_CALLS} calls wait for a reply already, so {} is rejected",
                self.name(),
                invoke.method.name
            );
            self.host.reply_rejected(invoke.request_id, io.out.buffer());
            return;
        }
        let parsed = match self.role {
            Role::Producer if core::ptr::eq(invoke.service, &relay_port::SERVICE) => self.relay_call(&invoke, context),
            Role::Producer => self.producer_call(&invoke, io.fd, context),
            Role::Consumer => self.consumer_call(&invoke, io.fd, context),
        };
        if !parsed {
            context.counters.bad_calls.add_one();
            log::warn!("{}: the arguments of {} do not parse", self.name(), invoke.method.name);
            self.host.reply_not_invoked(invoke.request_id, io.out.buffer());
        }
    }

    fn producer_call(
        &mut self,
        invoke: &Invoke<'_>,
        fd: &mut Option<ForeignFd>,
        context: &mut CallContext<'_>,
    ) -> bool {
        if !core::mem::replace(&mut self.introduced.as_client, true) {
            let (peer, memory) = (self.service_peer(), memory_kind(self.host));
            self.feed(Input::ProducerConnected { client: self.id, peer, memory }, context);
            self.name_machine(context);
        }
        let Some(method) = ProducerCall::read(invoke.method_id, invoke.args) else { return false };
        let mut offered = None;
        if let ProducerCall::InitializeConnection(request) = &method {
            if request.producer_provided_shmem() == Some(true) {
                let hint = request.shared_memory_page_size_hint_bytes().unwrap_or(0);
                match fd.take().map(|fd| self.adopt(&fd, hint, context.shares)) {
                    Some(Ok((region, buffer))) => {
                        *self.adopted = Some(region);
                        offered = Some(Box::new(buffer) as Box<dyn SharedBuffer>);
                    }
                    refused => {
                        context.counters.memory_refused.add_one();
                        let why = match refused {
                            Some(Err(e)) => e.to_string(),
                            _ => "no descriptor came with the call".to_owned(),
                        };
                        log::warn!("{}: its shared memory is not adopted: {why}", self.name());
                    }
                }
            }
        }
        let call = self.note(invoke);
        self.feed(Input::ProducerCall { call, method, offered }, context);
        true
    }

    /// Adopts memory that a producer offers. Refuses descriptors that are no memory without further
    /// calls.
    fn adopt(
        &mut self,
        fd: &ForeignFd,
        page_size_bytes: u32,
        shares: &mut UserShares,
    ) -> Result<(Arc<MappedRegion>, ServiceRegion), Refused> {
        let memory = fd.as_memory().map_err(|e| Refused::NotMemory(e.raw_os_error().unwrap_or_default()))?;
        let (region, buffer) = shared_memory::adopt(memory, page_size_bytes)?;
        let bytes = buffer.size_bytes();
        // A connection has one memory, even if it offers several.
        if *self.memory_counted != 0 {
            return Err(Refused::Again);
        }
        if !shares.share_memory(self.owner, bytes) {
            return Err(Refused::TooMuch(self.owner));
        }
        *self.memory_counted += bytes;
        Ok((region, buffer))
    }

    fn consumer_call(
        &mut self,
        invoke: &Invoke<'_>,
        fd: &mut Option<ForeignFd>,
        context: &mut CallContext<'_>,
    ) -> bool {
        if !core::mem::replace(&mut self.introduced.as_client, true) {
            let peer = self.service_peer();
            self.feed(Input::ConsumerConnected { client: self.id, peer }, context);
        }
        let Some(method) = ConsumerCall::read(invoke.method_id, invoke.args) else { return false };
        let call = self.note(invoke);
        let takes_file = matches!(method, ConsumerCall::EnableTracing(_) | ConsumerCall::CloneSession(_));
        if takes_file {
            // The call may begin a trace.
            self.feed(Input::TimezoneOffset(system_facts::timezone_offset_minutes()), context);
        }
        *context.attached = fd.take_if(|_| takes_file).map(|fd| AttachedFile { call, fd, owner: self.owner });
        let file_attached = context.attached.is_some();
        self.feed(Input::ConsumerCall { call, method, file_attached }, context);
        true
    }

    fn relay_call(&mut self, invoke: &Invoke<'_>, context: &mut CallContext<'_>) -> bool {
        if !core::mem::replace(&mut self.introduced.as_relay, true) {
            self.feed(Input::RelayConnected { client: self.id, peer: self.service_peer() }, context);
            self.name_machine(context);
        }
        let Some(method) = RelayCall::read(invoke.method_id, invoke.args) else { return false };
        let call = self.note(invoke);
        self.feed(Input::RelayCall { call, method }, context);
        true
    }

    /// Passes the machine name that a relay announced to the service.
    fn name_machine(&self, context: &mut CallContext<'_>) {
        let name = &self.host.peer().machine_name;
        if !name.is_empty() {
            self.feed(Input::MachineNamed { client: self.id, name }, context);
        }
    }

    /// Gives the call a number, and remembers the client's number if it wants a reply.
    fn note(&mut self, invoke: &Invoke<'_>) -> CallId {
        *self.last_call += 1;
        if !invoke.drop_reply {
            self.pending.insert(*self.last_call, invoke.request_id);
        }
        CallId { client: self.id, request: *self.last_call }
    }

    fn feed(&self, input: Input<'_>, context: &mut CallContext<'_>) {
        context.service.handle(&clocks::now(), input, context.outputs);
    }

    fn service_peer(&self) -> ServicePeer {
        let peer = self.host.peer();
        ServicePeer { uid: peer.uid, pid: peer.pid, machine_id: peer.machine_id }
    }
}

/// Returns role and number, and the machine if it is another one.
fn short_name(role: Role, id: ClientId, peer: &Peer) -> String {
    let machine = match (peer.machine_id, &peer.machine_name[..]) {
        (0, _) => String::new(),
        (id, []) => format!(" of machine {id:#010x}"),
        (_, name) => {
            let shown = &name[..name.len().min(LOGGED_NAME_BYTES)];
            format!(" of machine {:?}", String::from_utf8_lossy(shown))
        }
    };
    format!("{} {}{machine}", role.name(), id.0)
}

fn memory_kind(host: &Host) -> MemoryKind {
    match host.peer().family {
        Family::Unix => MemoryKind::Shared,
        _ => MemoryKind::Emulated,
    }
}
