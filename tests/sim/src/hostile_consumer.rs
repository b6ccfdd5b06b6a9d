//! A hostile consumer. It calls any method in any order and many times, before it has an answer. It
//! calls for sessions of other consumers, and with arguments that are not a message. It disconnects
//! at any time.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::{self, method};
use esatto_protozero::Owned;
use esatto_schema::trace_config::BufferConfig;
use esatto_schema::{CloneSessionRequest, TraceConfig};
use esatto_service::{MemoryKind, Peer};

use crate::connection::{Attached, Port};
use crate::consumer::config;
use crate::pb::Pb;
use crate::profile::MS;
use crate::rng::Rng;
use crate::world::{Actor, Event, Phase, World};

/// Its user, which some honest consumers also have.
const UID: i32 = 1002;

/// A hostile consumer. It ignores all replies.
#[derive(Debug)]
pub struct HostileConsumer {
    client: usize,
    rng: Rng,
}

impl HostileConsumer {
    /// Connects.
    pub fn connect(world: &mut World) {
        let rng = Rng::new(world.rng.bits());
        let peer = Peer { uid: UID, pid: Some(13), machine_id: 0 };
        let client = world.connect(peer, MemoryKind::Shared, Port::Consumer, true);
        world.actors[client] = Some(Actor::HostileConsumer(Box::new(Self { client, rng })));
        world.after(0, Event::Act(client));
    }

    /// Does the next step.
    pub fn act(&mut self, world: &mut World) {
        if world.phase != Phase::Running || self.rng.one_in(60) {
            return world.crash(self.client);
        }
        for _ in 0..self.rng.pick(&[1, 2, 5]) {
            self.do_something(world);
        }
        let pause_ns = self.rng.between(MS, 60 * MS);
        world.after(pause_ns, Event::Act(self.client));
    }

    fn call(&mut self, world: &mut World, method: u32, args: &[u8]) {
        let attached = self.rng.percent(10).then_some(Attached::File);
        let drops_reply = self.rng.percent(20);
        world.call_with(self.client, method, args, drops_reply, attached);
    }

    fn do_something(&mut self, world: &mut World) {
        match self.rng.below(16) {
            0..=2 => self.enable(world),
            3 => {
                // The same call many times; each must be answered.
                let method = self.rng.pick(&[
                    method::ReadBuffers::METHOD,
                    method::GetTraceStats::METHOD,
                    method::Flush::METHOD,
                    method::ObserveEvents::METHOD,
                ]);
                let args = self.some_args(method);
                for _ in 0..self.rng.pick(&[2, 5, 30]) {
                    self.call(world, method, &args);
                }
            }
            4 => self.clone(world),
            5 => {
                // The calls that end a session, twice and in the wrong order.
                for method in self.rng.pick(&[
                    [method::DisableTracing::METHOD, method::FreeBuffers::METHOD],
                    [method::FreeBuffers::METHOD, method::DisableTracing::METHOD],
                    [method::StartTracing::METHOD, method::DisableTracing::METHOD],
                    [method::DisableTracing::METHOD, method::StartTracing::METHOD],
                    [method::ReadBuffers::METHOD, method::FreeBuffers::METHOD],
                ]) {
                    self.call(world, method, &[]);
                }
            }
            6 => {
                let key = format!("key-{}", world.next_name + self.rng.below(2));
                let method = self.rng.pick(&[method::Detach::METHOD, method::Attach::METHOD]);
                self.call(world, method, &Pb::default().bytes(1, key.as_bytes()).0);
            }
            7 => {
                let changed = config(world).0.encode();
                self.call(world, method::ChangeTraceConfig::METHOD, &Pb::default().bytes(1, &changed).0);
            }
            8 => {
                let bytes: Vec<u8> = (0..self.rng.below(60)).map(|_| self.rng.bits() as u8).collect();
                let method = self.some_method();
                self.call(world, method, &bytes);
            }
            9 => drop(world.call(self.client, self.rng.pick(&[0, 99, u32::MAX]), &[], false)),
            _ => {
                let method = self.some_method();
                let args = self.some_args(method);
                self.call(world, method, &args);
            }
        }
    }

    fn some_method(&mut self) -> u32 {
        let methods: Vec<u32> = (1..).zip(consumer_port::SERVICE.methods).map(|(id, _)| id).collect();
        self.rng.pick(&methods)
    }

    fn some_args(&mut self, method: u32) -> Vec<u8> {
        let mut args = Pb::default();
        match method {
            method::Flush::METHOD => {
                args = args.int(1, self.rng.pick(&[0, 1, 300, 4000])).int(2, self.rng.bits() & 0xff)
            }
            method::ObserveEvents::METHOD => {
                for _ in 0..self.rng.pick(&[0, 1, 4, 50]) {
                    args = args.int(1, self.rng.below(6));
                }
            }
            method::QueryServiceState::METHOD => args = args.int(1, self.rng.below(3)),
            _ => {}
        }
        args.0
    }

    /// Asks for a session of any kind, or for an impossible one.
    fn enable(&mut self, world: &mut World) {
        let (mut config, attached) = config(world);
        match self.rng.below(8) {
            0 => config.buffers.clear(),
            1 => config.buffers.resize(self.rng.pick(&[128, 129, 1000]), buffer(self.rng.pick(&[4, 0]))),
            2 => config.buffers.push(buffer(self.rng.pick(&[0, u32::MAX]))),
            3 => {
                let target = Some(self.rng.pick(&[7, u32::MAX]));
                config.data_sources.iter_mut().filter_map(|source| source.config.as_mut()).for_each(|config| {
                    config.target_buffer = target;
                });
            }
            4 => {
                // Every data source many times.
                let again = config.data_sources.clone();
                (0..self.rng.pick(&[2, 20])).for_each(|_| config.data_sources.extend(again.iter().cloned()));
            }
            _ => {}
        }
        config.flush_timeout_ms = config.flush_timeout_ms.filter(|_| self.rng.percent(80));
        self.enable_with(&config, attached, world);
    }

    fn enable_with(&mut self, config: &TraceConfig, attached: Option<Attached>, world: &mut World) {
        let attached = attached.filter(|_| self.rng.percent(80));
        let request = Pb::default().bytes(1, &config.encode());
        world.call_with(self.client, method::EnableTracing::METHOD, &request.0, self.rng.percent(20), attached);
    }

    /// Asks for clones of other consumers' sessions, for several at a time.
    fn clone(&mut self, world: &mut World) {
        let ids: Vec<u64> = world.model.sessions.keys().copied().collect();
        for _ in 0..self.rng.pick(&[1, 3]) {
            let session_id = if ids.is_empty() { self.rng.below(9) } else { self.rng.pick(&ids) };
            let request = CloneSessionRequest {
                session_id: Some(session_id),
                skip_trace_filter: self.rng.percent(30).then_some(true),
                for_bugreport: self.rng.percent(20).then_some(true),
                ..Default::default()
            };
            self.call(world, method::CloneSession::METHOD, &request.encode());
        }
    }
}

fn buffer(size_kb: u32) -> BufferConfig {
    BufferConfig { size_kb: Some(size_kb), ..Default::default() }
}
