//! The world of a seed: connections, programs, time, and the choice of what happens next.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use esatto_ipc::frame::MAX_FRAME;
use esatto_ipc::service::Kind;
use esatto_ipc::{Channel, ChannelLimits, Error, ServerConnection, ServerLimits};

use super::calls::{FITS, Plan, Record, ServerEnd, TOO_LARGE};
use super::handlers::{Handle, Services, take_kept};
use super::hostile::Hostile;
use super::net::{End, Events, Side, Wires, cut, deliver, open_wide};
use super::profile::Profile;
use super::programs::{self, Task};
use super::services::{Target, offer, targets};
use super::shared::{self, is_woken, nanoseconds, new_waker, now_ns, take_woken, tell, with};
use super::wire::Wire;
use super::{RpcTally, descriptors};
use crate::alloc;
use crate::rng::Rng;

/// Turns in a row for which a connection may ask although nothing comes of them.
const IDLE_TURNS: u32 = 3;

/// The same while it says that it has more to do: a full buffer of the smallest frames, handled 64
/// at a time, of which none may matter.
const IDLE_TURNS_WITH_FRAMES: u32 = (MAX_FRAME / 4 / 64) as u32 + 2;

/// Bits of extensions.
const CANCEL: u8 = 4;
const CREDIT: u8 = 8;

/// Bytes that the library keeps for the next message of the thread.
const SPARE: u64 = 3 * MAX_FRAME as u64;

/// End of time. What is due later never comes.
const LATEST_NS: u64 = 1 << 60;

/// Steps within which everything comes to rest when nothing new begins.
const RESTING_STEPS: u64 = 200_000;

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) profile: Profile,
    targets: Vec<Target>,
    connections: Vec<Connection>,
    tasks: Vec<Running>,
    handles: Vec<Handle>,
    is_closing: bool,
    pub(super) tally: RpcTally,
}

struct Connection {
    ends: [Peer; 2],
    is_honest: bool,
    /// Ends that keep to the rules.
    honest: [bool; 2],
    channel_limits: ChannelLimits,
    server_limits: ServerLimits,
    /// The service keeps, or promises to keep, the windows of streams.
    has_windows: bool,
    /// The program has dropped its channel.
    is_channel_dropped: bool,
}

enum Peer {
    Client(Client),
    Server(Server),
    Hostile(Hostile),
    Gone,
}

struct Client {
    channel: Channel,
    /// The driver, unless a loop drives it.
    driver: Option<Pin<Box<dyn Future<Output = Arc<Error>>>>>,
    turns: Turns,
}

struct Server {
    connection: ServerConnection<Services>,
    events: Option<Events>,
    turns: Turns,
}

/// Turns of one end.
struct Turns {
    number: u64,
    waker: Waker,
    has_more: bool,
    idle: u32,
    /// Everything that can show that something has happened since the last turn.
    last: Option<(u64, u64, Option<u64>, usize)>,
    /// Its program does nothing now.
    is_asleep: bool,
    is_over: bool,
}

/// Future of a client's call.
struct Running {
    call: u64,
    connection: usize,
    task: Task,
    number: u64,
    waker: Waker,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Deliver(usize, Side),
    Turn(usize, Side),
    Poll(usize),
    Answer(usize),
    Hostile(usize, Side),
    Timer,
}

/// Runs the library, whose memory counts.
fn inside<T>(run: impl FnOnce() -> T) -> T {
    let mut result = None;
    alloc::count(|| result = Some(run()));
    result.expect("it has run")
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let profile = Profile::draw(&mut rng);
        Self {
            rng,
            profile,
            targets: targets(),
            connections: Vec::new(),
            tasks: Vec::new(),
            handles: Vec::new(),
            is_closing: false,
            tally: RpcTally::default(),
        }
    }

    pub(super) fn open(&mut self) {
        // Number 0 is that of empty messages.
        let target = Target { service: "", id: 0, kind: Kind::OneWay };
        let nobody = Plan { target, ..draw_plan(&mut self.rng, &self.profile, &self.targets, 0) };
        with(|shared| shared.calls.push(Record { is_abandoned: true, ..Record::new(nobody, false, 0) }));
        for _ in 0..self.profile.connections {
            self.connect();
        }
    }

    /// Adds a connection.
    fn connect(&mut self) {
        let Self { rng, profile, .. } = self;
        let is_hostile = rng.percent(profile.hostile);
        let hostile_side = if rng.percent(50) { Side::Client } else { Side::Server };
        let honest = [Side::Client, Side::Server].map(|side| !is_hostile || side != hostile_side);
        let index = self.connections.len();
        let offer = offer(rng.percent(30));
        let capacity = [rng.pick(&profile.capacities), rng.pick(&profile.capacities)];
        let low_water = capacity.map(|capacity| if rng.percent(50) { capacity } else { capacity / 4 });
        let mut features = if rng.percent(profile.old_peers) { rng.below(32) as u8 } else { 31 };
        if features & CANCEL == 0 {
            // A service that waits for credit would never learn that the client is not interested.
            features &= !CREDIT;
        }
        with(|shared| shared.wires.push(Wires::new(Wire::new(offer, honest), capacity, low_water, features)));
        let channel_limits = ChannelLimits {
            max_queued: rng.pick(&[1, 1000, 200_000, 4 << 20]),
            window: rng.pick(&[1, 100, 5000, 1 << 20]),
        };
        let server_limits = ServerLimits {
            max_calls: rng.pick(&[1, 3, 10, 64]),
            pause_at: rng.pick(&[1, 300, 5000, 256 << 10]),
            // So many bytes that honest clients never reach it.
            max_queued: if is_hostile { rng.pick(&[1000, 300_000, 16 << 20]) } else { 16 << 20 },
            max_request_bytes: rng.pick(&[1, 100_000, 16 << 20]),
            max_fds: rng.pick(&[1, 2, 64]),
            // Simulated networks may take any time.
            max_frame_time: if is_hostile { Duration::from_millis(rng.pick(&[1, 30_000])) } else { Duration::MAX },
        };
        let ends = [Side::Client, Side::Server].map(|side| {
            if is_hostile && side == hostile_side {
                return Peer::Hostile(Hostile::new(index, side, &mut self.rng));
            }
            let is_task = self.rng.percent(50);
            let stream = End::new(index, side).into_stream();
            let turns = Turns::new();
            match side {
                Side::Client => {
                    let channel = inside(|| Channel::with_limits(stream, channel_limits));
                    let (driver, events) = (channel.driver(), Events::new(index, side));
                    let driver: Option<Pin<Box<dyn Future<Output = Arc<Error>>>>> =
                        is_task.then(|| Box::pin(async move { driver.run(events).await }) as _);
                    if driver.is_none() {
                        channel.set_waker(&turns.waker);
                    }
                    Peer::Client(Client { channel, driver, turns })
                }
                Side::Server => {
                    let services = Services { connection: index, offer };
                    let connection = inside(|| ServerConnection::new(stream, services, server_limits));
                    if !is_task {
                        connection.set_waker(&turns.waker);
                    }
                    Peer::Server(Server { connection, events: is_task.then(|| Events::new(index, side)), turns })
                }
            }
        });
        let has_windows = match &ends[1] {
            Peer::Hostile(hostile) => hostile.knows_windows(),
            _ => features & CREDIT != 0,
        };
        tell!("connection {index}: honest {honest:?}, features {features}, {channel_limits:?}, {server_limits:?}");
        self.tally.connections += 1;
        self.connections.push(Connection {
            ends,
            is_honest: !is_hostile,
            honest,
            channel_limits,
            server_limits,
            has_windows,
            is_channel_dropped: false,
        });
    }

    /// Does one thing. Returns false if nothing can happen any more.
    pub(super) fn step(&mut self) -> bool {
        self.tally.steps += 1;
        if self.profile.step_ns > 0 {
            let passed = self.rng.below(self.profile.step_ns);
            shared::set_now(now_ns() + passed);
        }
        if !self.is_closing {
            self.happen();
        }
        self.handles.append(&mut take_kept());
        let actions = self.actions();
        if actions.is_empty() || self.rng.one_in(self.profile.jump_one_in) {
            return self.jump() || !actions.is_empty();
        }
        let action = self.rng.pick(&actions);
        self.act(action);
        if self.tally.steps.is_multiple_of(8) {
            self.check_memory();
        }
        true
    }

    /// Lets programs begin and end things.
    fn happen(&mut self) {
        let profile = &self.profile;
        let (start, cancel, cut, stall) = (profile.start, profile.cancel, profile.break_per_100_000, profile.stall);
        if self.rng.percent(start) {
            self.start_call();
        }
        if self.rng.below(1000) < cancel {
            self.cancel_call();
        }
        if self.rng.below(100_000) < cut {
            let index = self.rng.index(self.connections.len());
            self.break_connection(index);
        }
        let is_over = |connection: &Connection| {
            connection.ends.iter().any(|end| match end {
                Peer::Client(client) => client.turns.is_over,
                Peer::Server(server) => server.turns.is_over,
                Peer::Hostile(hostile) => hostile.is_over,
                Peer::Gone => true,
            })
        };
        if self.connections.len() < self.profile.most_connections && self.connections.iter().all(is_over) {
            self.connect();
        }
        if self.rng.below(1000) < stall {
            let (index, is_stalled) = (self.rng.index(self.connections.len()), self.rng.percent(50));
            let side = if self.rng.percent(50) { Side::Client } else { Side::Server };
            if self.rng.percent(50) {
                tell!("connection {index}: what the {side:?} sends is stalled: {is_stalled}");
                with(|shared| shared.wires[index].set_stalled(side, is_stalled));
            } else if let Some(turns) = self.connections[index].ends[side as usize].turns() {
                tell!("connection {index}: the {side:?} sleeps: {is_stalled}");
                turns.is_asleep = is_stalled;
            }
        }
        if self.rng.one_in(100) {
            with(|shared| shared.hooks.is_enabled = !shared.hooks.is_enabled);
        }
    }

    /// Lets time pass until something is due. Returns false if nothing is.
    fn jump(&mut self) -> bool {
        let now = now_ns();
        let timer = with(|shared| shared.timers.first_key_value().map(|((at_ns, _), _)| *at_ns));
        let handle = self.handles.iter().filter(|handle| !handle.is_waiting).map(|handle| handle.due_ns).min();
        let deadlines = self.connections.iter().flat_map(|connection| &connection.ends).filter_map(Peer::deadline_ns);
        let Some(next) = deadlines.chain(timer).chain(handle).filter(|at_ns| *at_ns > now && *at_ns < LATEST_NS).min()
        else {
            return false;
        };
        let to = match self.rng.below(10) {
            0 => next - 1,
            1 => next.saturating_add(1_000_000_000),
            2 => next.saturating_add(self.rng.below(2000)),
            _ => next,
        };
        shared::set_now(to.clamp(now, LATEST_NS));
        tell!("time passes");
        true
    }

    /// Returns everything that can happen now.
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        let now = now_ns();
        // Hostile peers always want to act.
        let acts = !self.is_closing && self.tally.steps.is_multiple_of(4);
        for (index, connection) in self.connections.iter().enumerate() {
            for side in [Side::Client, Side::Server] {
                if with(|shared| shared.wires[index].can_deliver(side)) {
                    actions.push(Action::Deliver(index, side));
                }
                match &connection.ends[side as usize] {
                    Peer::Hostile(hostile) if acts && !hostile.is_over => actions.push(Action::Hostile(index, side)),
                    peer if peer.wants_turn(index, side, now) => actions.push(Action::Turn(index, side)),
                    _ => {}
                }
            }
        }
        let tasks = self.tasks.iter().enumerate().filter(|(_, task)| is_woken(task.number));
        actions.extend(tasks.map(|(at, _)| Action::Poll(at)));
        for (at, handle) in self.handles.iter().enumerate() {
            let is_ready = if handle.is_waiting { is_woken(handle.number) } else { handle.due_ns <= now };
            if is_ready {
                actions.push(Action::Answer(at));
            }
        }
        if with(|shared| shared.timers.first_key_value().is_some_and(|((at_ns, _), _)| *at_ns <= now)) {
            actions.push(Action::Timer);
        }
        actions
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Deliver(index, side) => {
                let under_way = with(|shared| shared.wires[index].under_way(side));
                let bytes = match self.rng.below(4) {
                    0 => self.rng.pick(&[1, 2, 3, 4, 5, 20]),
                    1 => self.rng.between(1, under_way.max(1)),
                    _ => under_way,
                };
                deliver(index, side, bytes);
            }
            Action::Turn(index, side) => self.turn(index, side),
            Action::Poll(at) => self.poll(at),
            Action::Answer(at) => {
                let handle = self.handles.swap_remove(at);
                take_woken(handle.number);
                self.handles.extend(inside(|| handle.act()));
            }
            Action::Hostile(index, side) => {
                if let Peer::Hostile(hostile) = &mut self.connections[index].ends[side as usize] {
                    hostile.act(&mut self.rng);
                }
            }
            Action::Timer => {
                // The future that waited may have gone on already, and has nothing to do then.
                let waker = with(|shared| {
                    shared.progress += 1;
                    shared.timers.pop_first().map(|(_, waker)| waker)
                });
                inside(|| waker.into_iter().for_each(Waker::wake));
            }
        }
    }

    /// Lets one end of a connection work.
    fn turn(&mut self, index: usize, side: Side) {
        let peer = &mut self.connections[index].ends[side as usize];
        let measure = |peer: &Peer| {
            let (moved, progress) = with(|shared| (shared.wires[index].moved[side as usize], shared.progress));
            (moved, progress, peer.deadline_ns(), peer.open_calls())
        };
        let had_more = peer.turns().is_some_and(|turns| turns.has_more);
        tell!("connection {index}: the {side:?} works");
        let result = peer.work();
        let after = measure(peer);
        let is_task = peer.is_task();
        let Some(turns) = peer.turns() else { return };
        let has_moved = turns.last.replace(after) != Some(after);
        turns.idle = if has_moved || result.is_err() { 0 } else { turns.idle + 1 };
        let limit = if had_more || is_task { IDLE_TURNS_WITH_FRAMES } else { IDLE_TURNS };
        assert!(turns.idle <= limit, "nobody is busy for nothing: the {side:?} of connection {index}");
        match result {
            Ok(has_more) => {
                turns.has_more = has_more == Some(true);
                let deadline_ns = peer.deadline_ns();
                assert!(deadline_ns.is_none_or(|at_ns| at_ns > now_ns()), "a deadline that has passed is handled");
            }
            Err(error) => {
                tell!("connection {index}: the {side:?} ends: {error}");
                turns.is_over = true;
                let is_cut = with(|shared| shared.wires[index].wire.is_cut);
                let connection = &self.connections[index];
                assert!(is_cut || !connection.is_honest, "an open connection stays open: {side:?} says {error}");
                with(|shared| shared.wires[index].wire.is_cut = true);
            }
        }
        let limits = self.connections[index].server_limits;
        if let Peer::Server(server) = &self.connections[index].ends[side as usize] {
            let (open, queued) = (server.connection.open_calls(), server.connection.queued());
            assert!(open <= limits.max_calls, "open calls are bounded: {open} of {}", limits.max_calls);
            let most = limits.max_queued + MAX_FRAME;
            assert!(queued <= most, "bytes that wait are bounded: {queued} of {most}");
            if queued == 0 && !is_task && !server.turns.has_more && !server.turns.is_over {
                with(|shared| shared.wires[index].wire.all_handled());
            }
        }
    }

    fn poll(&mut self, at: usize) {
        let running = &mut self.tasks[at];
        take_woken(running.number);
        let mut cx = Context::from_waker(&running.waker);
        if inside(|| programs::poll(&mut running.task, &mut cx)) {
            let running = self.tasks.swap_remove(at);
            inside(|| drop(running.task));
        }
    }

    fn start_call(&mut self) {
        let is_open = |index: &usize| {
            let client = match &self.connections[*index].ends[0] {
                Peer::Client(client) => client,
                _ => return false,
            };
            !client.turns.is_over
        };
        let open: Vec<usize> = (0..self.connections.len()).filter(is_open).collect();
        let index = if open.is_empty() || self.rng.one_in(20) {
            self.rng.index(self.connections.len())
        } else {
            self.rng.pick(&open)
        };
        let connection = &mut self.connections[index];
        let Peer::Client(client) = &connection.ends[0] else { return };
        let plan = draw_plan(&mut self.rng, &self.profile, &self.targets, index);
        self.tally.calls += 1;
        let (mut plan, mut fd) = (plan, None);
        if plan.request_len > 0 && self.rng.one_in(12) {
            (plan.fd, fd) = descriptors::make().unzip();
        }
        let is_future = plan.is_future;
        let call = with(|shared| {
            if shared.is_traced {
                println!("call {}: {plan:?}", shared.calls.len());
            }
            shared.progress += 1;
            shared.calls.push(Record::new(plan, connection.is_honest, shared.now_ns));
            shared.calls.len() as u64 - 1
        });
        let task = inside(|| programs::start(&client.channel, call, fd));
        assert_eq!(task.is_some(), is_future, "a future, or a callback");
        if let Some(task) = task {
            let (number, waker) = new_waker();
            waker.wake_by_ref();
            self.tasks.push(Running { call, connection: index, task, number, waker });
        }
    }

    fn cancel_call(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let at = self.rng.index(self.tasks.len());
        self.abandon(at);
    }

    fn abandon(&mut self, at: usize) {
        let running = self.tasks.swap_remove(at);
        tell!("call {}: the program drops it", running.call);
        with(|shared| {
            shared.progress += 1;
            let record = &mut shared.calls[running.call as usize];
            record.is_abandoned = record.outcome.is_none();
        });
        inside(|| drop(running.task));
    }

    /// Ends a connection in one of several ways.
    fn break_connection(&mut self, index: usize) {
        with(|shared| shared.wires[index].wire.is_cut = true);
        let way = self.rng.below(4);
        tell!("connection {index} ends, way {way}");
        match (way, &mut self.connections[index].ends) {
            (0, [Peer::Client(client), _]) => inside(|| client.channel.close()),
            (1, [Peer::Client(_), _]) => {
                self.connections[index].is_channel_dropped = true;
                let client = std::mem::replace(&mut self.connections[index].ends[0], Peer::Gone);
                while let Some(at) = self.tasks.iter().position(|task| task.connection == index) {
                    self.abandon(at);
                }
                inside(|| drop(client));
            }
            (2, [_, server @ Peer::Server(_)]) => {
                let server = std::mem::replace(server, Peer::Gone);
                inside(|| drop(server));
            }
            _ => {
                let under_way =
                    [Side::Client, Side::Server].map(|side| with(|shared| shared.wires[index].under_way(side)));
                let kept = under_way.map(|bytes| self.rng.between(0, bytes));
                cut(index, kept);
            }
        }
    }

    /// Checks the memory of all connections against the sum of their limits.
    fn check_memory(&mut self) {
        let held = alloc::held();
        self.tally.peak_bytes = self.tally.peak_bytes.max(held);
        let mut open = vec![0_usize; self.connections.len()];
        with(|shared| {
            for record in shared.calls.iter().filter(|record| !record.is_over()) {
                open[record.plan.connection] += 1;
            }
        });
        let bound: u64 = (0..self.connections.len())
            .map(|index| {
                let connection = &self.connections[index];
                let (channel, server) = (connection.channel_limits, connection.server_limits);
                // Streams pause, so only the replies of open calls come on top.
                let replies = server.max_queued.min(server.pause_at + (server.max_calls + 1) * MAX_FRAME);
                let client = channel.max_queued + MAX_FRAME;
                let [has_client, has_server] = connection.honest.map(usize::from);
                // Buffers that grow may be twice as large as their content.
                let buffers = 4 * MAX_FRAME + 2 * (has_client * client + has_server * replies) + (256 << 10);
                let window = if connection.has_windows { channel.window as usize + MAX_FRAME } else { 64 << 20 };
                let calls = has_server * server.max_calls * 8192 + has_client * open[index] * (2 * window + 4096);
                (buffers + calls) as u64
            })
            .sum();
        assert!(held <= bound, "memory is bounded: {held} bytes are held of {bound}");
    }

    /// Lets everything come to rest, and checks that nothing is left.
    pub(super) fn close(mut self) -> RpcTally {
        tell!("the end begins");
        self.is_closing = true;
        for index in 0..self.connections.len() {
            open_wide(index);
            let connection = &mut self.connections[index];
            connection.ends.iter_mut().filter_map(Peer::turns).for_each(|turns| turns.is_asleep = false);
            if !connection.is_honest {
                cut(index, [u64::MAX / 2; 2]);
            }
        }
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < RESTING_STEPS, "everything comes to rest: {} tasks", self.tasks.len());
        }
        self.check_rest();
        self.drop_all()
    }

    fn check_rest(&self) {
        with(|shared| {
            for (number, record) in shared.calls.iter().enumerate() {
                let is_dropped = record.is_forgotten && self.connections[record.plan.connection].is_channel_dropped;
                let is_clients = record.is_honest || record.started_ns > 0 && record.plan.target.id > 0;
                assert!(
                    record.is_over() || is_dropped || !is_clients,
                    "every call ends: {number} does not, {record:?}"
                );
            }
        });
        assert!(self.tasks.is_empty(), "every call ends: a future does not");
        assert!(self.handles.is_empty(), "every handler is woken: {:?}", self.handles);
        for (index, connection) in self.connections.iter().enumerate() {
            with(|shared| {
                let wire = &shared.wires[index].wire;
                if connection.is_honest && !wire.is_cut {
                    wire.check_end();
                }
            });
            for peer in &connection.ends {
                assert_eq!(peer.open_calls(), 0, "nothing leaks: an end of connection {index} has open calls");
            }
        }
    }

    /// Drops everything in any order, and checks that nothing is left.
    fn drop_all(mut self) -> RpcTally {
        for index in 0..self.connections.len() {
            with(|shared| shared.wires[index].wire.is_cut = true);
        }
        while !self.connections.is_empty() {
            let connection = self.connections.swap_remove(self.rng.index(self.connections.len()));
            let [client, server] = connection.ends;
            let (first, second) = if self.rng.percent(50) { (client, server) } else { (server, client) };
            inside(|| drop(first));
            inside(|| drop(second));
        }
        let timers = with(|shared| std::mem::take(&mut shared.timers));
        inside(|| drop(timers));
        descriptors::check_all_closed();
        with(|shared| {
            shared.hooks.check_end();
            self.tally.hook_events = shared.hooks.events;
            self.tally.bytes = shared.wires.iter().map(|wires| wires.moved[0] + wires.moved[1]).sum::<u64>() / 2;
            self.tally.replies = shared.calls.iter().map(|record| record.received).sum();
            // They keep what the library gave them.
            shared.calls.clear();
        });
        let held = alloc::held();
        assert!(held < SPARE, "nothing leaks: {held} bytes are held for nobody");
        self.tally
    }
}

impl Turns {
    fn new() -> Self {
        let (number, waker) = new_waker();
        // The first turn needs no reason.
        waker.wake_by_ref();
        Self { number, waker, has_more: false, idle: 0, last: None, is_asleep: false, is_over: false }
    }
}

impl Peer {
    fn turns(&mut self) -> Option<&mut Turns> {
        match self {
            Self::Client(client) => Some(&mut client.turns),
            Self::Server(server) => Some(&mut server.turns),
            Self::Hostile(_) | Self::Gone => None,
        }
    }

    fn is_task(&self) -> bool {
        match self {
            Self::Client(client) => client.driver.is_some(),
            Self::Server(server) => server.events.is_some(),
            Self::Hostile(_) | Self::Gone => false,
        }
    }

    fn open_calls(&self) -> usize {
        match self {
            Self::Client(client) => client.channel.open_calls(),
            Self::Server(server) => server.connection.open_calls(),
            Self::Hostile(_) | Self::Gone => 0,
        }
    }

    fn deadline_ns(&self) -> Option<u64> {
        let deadline = match self {
            Self::Client(client) if !client.turns.is_over => client.channel.next_deadline(),
            Self::Server(server) if !server.turns.is_over => server.connection.next_deadline(),
            _ => None,
        };
        deadline.map(nanoseconds)
    }

    /// Returns true if its program would let it work now.
    fn wants_turn(&self, index: usize, side: Side, now: u64) -> bool {
        let (turns, interest) = match self {
            Self::Client(client) => (&client.turns, client.driver.is_none().then(|| client.channel.interest())),
            Self::Server(server) => (&server.turns, server.events.is_none().then(|| server.connection.interest())),
            Self::Hostile(_) | Self::Gone => return false,
        };
        if turns.is_over || turns.is_asleep {
            return false;
        }
        if turns.has_more || is_woken(turns.number) {
            return true;
        }
        // A loop looks at the socket and at the clock.
        let Some(interest) = interest else { return false };
        let (is_readable, is_writable) =
            with(|shared| (shared.wires[index].is_readable(side), shared.wires[index].is_writable(side)));
        let is_due = self.deadline_ns().is_some_and(|at_ns| at_ns <= now);
        interest.read && is_readable || interest.write && is_writable || is_due
    }

    /// Lets it work. Returns true if a loop must let it work again at once; `None` of a task.
    fn work(&mut self) -> Result<Option<bool>, Arc<Error>> {
        if let Some(turns) = self.turns() {
            take_woken(turns.number);
        }
        inside(|| match self {
            Self::Client(Client { channel, driver: None, .. }) => channel.pump().map(Some),
            Self::Client(Client { driver: Some(driver), turns, .. }) => {
                match driver.as_mut().poll(&mut Context::from_waker(&turns.waker)) {
                    Poll::Ready(error) => Err(error),
                    Poll::Pending => Ok(None),
                }
            }
            Self::Server(Server { connection, events: None, .. }) => connection.pump().map(Some),
            Self::Server(Server { connection, events: Some(events), turns }) => {
                match connection.poll_drive(&mut Context::from_waker(&turns.waker), events) {
                    Poll::Ready(error) => Err(error),
                    Poll::Pending => Ok(None),
                }
            }
            Self::Hostile(_) | Self::Gone => Ok(Some(false)),
        })
    }
}

fn draw_plan(rng: &mut Rng, profile: &Profile, targets: &[Target], connection: usize) -> Plan {
    let target = rng.pick(targets);
    let kind = target.kind;
    let len = |rng: &mut Rng| {
        if rng.percent(profile.large) {
            return rng.pick(&[5000, 60_000, FITS, TOO_LARGE]);
        }
        rng.pick(&[1, 1, 10, 50, 300])
    };
    let most = if kind == Kind::ServerStream { rng.pick(&[0, 1, 3, 20]) } else { 1 };
    let reply_len = |rng: &mut Rng| if rng.one_in(8) { 0 } else { len(rng) };
    Plan {
        connection,
        target,
        is_future: rng.percent(60),
        request_len: if kind == Kind::OneWay && rng.one_in(8) { 0 } else { len(rng) },
        fd: None,
        timeout_ns: (kind != Kind::OneWay && rng.percent(profile.deadlines))
            .then(|| rng.pick(&[0, 1, 999, 1000, 1001, 60_000, 5_000_000, 2_000_000_000])),
        slow_ns: rng.pick(&profile.delays_ns),
        is_immediate: rng.percent(40),
        work_ns: rng.pick(&profile.delays_ns),
        replies: (0..most).map(|_| reply_len(rng)).collect(),
        has_reply_fds: rng.one_in(10),
        end: match rng.below(10) {
            0 => ServerEnd::Drop,
            1 => ServerEnd::Fail(rng.between(1, 16) as i32),
            2 => ServerEnd::LastReply,
            _ => ServerEnd::Finish,
        },
    }
}
