//! An honest consumer, which makes sessions of every kind and uses all methods of its port.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::priority_boost_config::BoostPolicy;
use esatto_schema::trace_config::buffer_config::FillPolicy;
use esatto_schema::trace_config::compression_config::{Deflate, Zstd};
use esatto_schema::trace_config::trigger_config::{Trigger, TriggerMode};
use esatto_schema::trace_config::{
    BufferConfig, BuiltinDataSource, CompressionConfig, CompressionType, DataSource, FFlushMode,
    IncrementalStateConfig, SessionSemaphore, TriggerConfig, WriteFlushMode,
};
use esatto_schema::{
    CloneSessionRequest, CloneSessionResponseReader, DataSourceConfig, ObserveEventsResponseReader,
    PriorityBoostConfig, TraceConfig,
};
use esatto_service::{MemoryKind, Peer};

use crate::connection::{Attached, ClientReply, Port};
use crate::pb::Pb;
use crate::profile::MS;
use crate::world::{Actor, Event, Phase, World, trace};

/// A consumer.
#[derive(Debug)]
pub struct Consumer {
    client: usize,
    uid: i32,
    /// The pending EnableTracing.
    enable: Option<u64>,
    attach: Option<(u64, String)>,
    detach: Option<(u64, String)>,
    read: Option<u64>,
    /// The pending CloneSession.
    clone: Option<u64>,
    observe: Option<u64>,
    /// It believes that it has a session.
    has_session: bool,
    /// It believes that its session is over.
    has_ended: bool,
    is_deferred: bool,
    /// Reads since the end.
    final_reads: u32,
    asked_to_stop: bool,
}

impl Consumer {
    /// Connects.
    pub fn connect(world: &mut World) {
        let uid = world.rng.pick(&[0, 1000, 1001, 1002]);
        Self::connect_as(world, uid);
    }

    /// Connects as this user.
    pub fn connect_as(world: &mut World, uid: i32) {
        let peer = Peer { uid, pid: Some(1), machine_id: 0 };
        let client = world.connect(peer, MemoryKind::Shared, Port::Consumer, false);
        let consumer = Self {
            client,
            uid,
            enable: None,
            attach: None,
            detach: None,
            read: None,
            clone: None,
            observe: None,
            has_session: false,
            has_ended: false,
            is_deferred: false,
            final_reads: 0,
            asked_to_stop: false,
        };
        world.actors[client] = Some(Actor::Consumer(Box::new(consumer)));
        let delay_ns = world.rng.below(50 * MS);
        world.after(delay_ns, Event::Act(client));
    }

    /// Takes a reply.
    pub fn receive(&mut self, reply: &ClientReply<'_>, world: &mut World) {
        if self.enable == Some(reply.request) {
            self.enable = None;
            self.has_ended = true;
        } else if self.attach.as_ref().is_some_and(|(request, _)| *request == reply.request) {
            let key = self.attach.take().map(|(_, key)| key).filter(|_| !reply.success);
            // Another consumer may have it, or may be about to detach from it.
            world.detached.extend(key.filter(|key| world.model.has_detached(key)).map(|key| (self.uid, key)));
            self.has_session |= reply.success;
            self.has_ended = false;
            if reply.success {
                let request = Pb::default().int(2, 1);
                self.enable = Some(world.call(self.client, method::EnableTracing::METHOD, &request.0, false));
            }
        } else if self.detach.as_ref().is_some_and(|(request, _)| *request == reply.request) {
            self.detach = None;
            if reply.success {
                self.has_session = false;
                self.enable = None;
            }
        } else if self.clone == Some(reply.request) {
            self.clone = None;
            let response = CloneSessionResponseReader::new(reply.body);
            if reply.success && response.success() == Some(true) {
                (self.has_session, self.has_ended, self.asked_to_stop, self.final_reads) = (true, true, true, 0);
            }
        } else if self.observe == Some(reply.request) {
            let events = ObserveEventsResponseReader::new(reply.body).events();
            if let Some(hit) = events.and_then(|events| events.clone_trigger_hit()) {
                let name = hit.trigger_name().unwrap_or_default().to_vec();
                world.clone_hits.push((hit.tracing_session_id().unwrap_or(0) as u64, name));
            }
        } else if self.read == Some(reply.request) && !reply.has_more {
            self.read = None;
            self.final_reads += u32::from(self.has_ended);
        }
    }

    /// Does the next step.
    pub fn act(&mut self, world: &mut World) {
        match world.phase {
            Phase::Running => self.go_on(world),
            Phase::Closing => self.wind_up(world),
            Phase::Leaving => return,
        }
        if world.clients[self.client].is_alive {
            let pause_ns = if world.phase == Phase::Running { 40 * MS } else { 100 * MS };
            let pause_ns = world.rng.between(MS, pause_ns);
            world.after(pause_ns, Event::Act(self.client));
        }
    }

    fn call(&self, world: &mut World, method: u32, args: &[u8]) -> u64 {
        world.call(self.client, method, args, false)
    }

    fn go_on(&mut self, world: &mut World) {
        let crashes = world.profile.consumer_crash_one_in;
        if crashes != 0 && world.rng.one_in(crashes) {
            // The call may never arrive.
            world.detached.extend(self.attach.take().map(|(_, key)| (self.uid, key)));
            return world.crash(self.client);
        }
        if !self.has_session {
            return match world.rng.below(10) {
                0 => self.ask_something(world),
                1 | 2 if !world.detached.is_empty() => self.attach(world),
                3..=6 if world.profile.clones => self.clone(world),
                _ => self.enable(world),
            };
        }
        if self.has_ended && self.final_reads > 0 && world.rng.percent(60) {
            return self.free(world);
        }
        match world.rng.below(40) {
            0..=13 => self.read(world),
            14..=18 => self.flush(world),
            19..=22 => drop(self.call(world, method::GetTraceStats::METHOD, &[])),
            23..=26 if self.is_deferred => {
                self.call(world, method::StartTracing::METHOD, &[]);
            }
            27 if world.rng.percent(30) => self.stop(world),
            28 if world.rng.percent(20) => self.free(world),
            29 if world.profile.detaches && self.detach.is_none() => self.detach(world),
            30 | 31 => self.observe(world),
            32 => self.ask_something(world),
            33 => {
                let config = config(world).0;
                let request = Pb::default().bytes(1, &config.encode());
                self.call(world, method::ChangeTraceConfig::METHOD, &request.0);
            }
            _ => {}
        }
    }

    /// Ends the session: stops, reads and frees it.
    fn wind_up(&mut self, world: &mut World) {
        if self.attach.is_some() || self.detach.is_some() || self.read.is_some() || self.clone.is_some() {
            return;
        }
        if !self.has_session {
            if !world.detached.is_empty() {
                self.attach(world);
            }
        } else if !self.has_ended {
            if !core::mem::replace(&mut self.asked_to_stop, true) {
                self.stop(world);
            }
        } else if self.final_reads < 2 {
            self.read(world);
        } else {
            self.call(world, method::GetTraceStats::METHOD, &[]);
            self.free(world);
        }
    }

    fn stop(&mut self, world: &mut World) {
        self.call(world, method::DisableTracing::METHOD, &[]);
    }

    fn free(&mut self, world: &mut World) {
        self.call(world, method::FreeBuffers::METHOD, &[]);
        self.has_session = false;
        self.has_ended = false;
        self.asked_to_stop = false;
        self.final_reads = 0;
        self.read = None;
    }

    fn read(&mut self, world: &mut World) {
        self.read = Some(self.call(world, method::ReadBuffers::METHOD, &[]));
    }

    fn flush(&mut self, world: &mut World) {
        let mut request = Pb::default();
        if world.rng.percent(70) {
            request = request.int(1, world.rng.pick(&[1, 50, 300, 3000]));
        }
        if world.rng.percent(30) {
            request = request.int(2, world.rng.pick(&[0x20, 0x22, 0x23]));
        }
        self.call(world, method::Flush::METHOD, &request.0);
    }

    fn detach(&mut self, world: &mut World) {
        let key = format!("key-{}", world.name());
        let request = self.call(world, method::Detach::METHOD, &Pb::default().bytes(1, key.as_bytes()).0);
        self.detach = Some((request, key));
    }

    fn attach(&mut self, world: &mut World) {
        if self.attach.is_some() {
            return;
        }
        let Some(at) = world.detached.iter().position(|(uid, _)| *uid == self.uid) else { return };
        let (_, key) = world.detached.swap_remove(at);
        self.asked_to_stop = false;
        self.final_reads = 0;
        let request = self.call(world, method::Attach::METHOD, &Pb::default().bytes(1, key.as_bytes()).0);
        self.attach = Some((request, key));
    }

    fn observe(&mut self, world: &mut World) {
        let mut request = Pb::default();
        for event in [1, 2] {
            if world.rng.percent(70) {
                request = request.int(1, event);
            }
        }
        if world.profile.clones && world.rng.percent(70) {
            request = request.int(1, 4);
        }
        self.observe = Some(self.call(world, method::ObserveEvents::METHOD, &request.0));
    }

    /// Asks for a clone of some session, or of none.
    fn clone(&mut self, world: &mut World) {
        let mut request = CloneSessionRequest::default();
        let ids: Vec<u64> = world.model.sessions.keys().copied().collect();
        match world.rng.below(8) {
            0 => request.session_id = Some(u64::MAX),
            1 => request.unique_session_name = Some(format!("session-{}", world.rng.below(3)).as_str().into()),
            2 => request.session_id = Some(world.rng.below(1000)),
            3 | 4 if !world.clone_hits.is_empty() => {
                let (session, name) = world.clone_hits.remove(0);
                request.session_id = Some(session);
                request.clone_trigger_name = Some(String::from_utf8_lossy(&name).as_ref().into());
            }
            _ if !ids.is_empty() => request.session_id = Some(world.rng.pick(&ids)),
            _ => {}
        }
        request.skip_trace_filter = world.rng.percent(30).then_some(true);
        let attached = world.rng.percent(80).then_some(Attached::File);
        let method = method::CloneSession::METHOD;
        self.clone = Some(world.call_with(self.client, method, &request.encode(), false, attached));
    }

    fn ask_something(&mut self, world: &mut World) {
        match world.rng.below(8) {
            0 => drop(self.call(world, method::QueryCapabilities::METHOD, &[])),
            1 => drop(self.call(world, method::SaveTraceForBugreport::METHOD, &[])),
            2 => drop(self.call(world, method::Attach::METHOD, &Pb::default().bytes(1, b"no such key").0)),
            3 => drop(self.call(world, method::EnableTracing::METHOD, &[0xff])),
            4 => self.read(world),
            5 => drop(self.call(world, method::GetTraceStats::METHOD, &[])),
            _ => {
                let request = Pb::default().int(1, world.rng.below(2));
                self.call(world, method::QueryServiceState::METHOD, &request.0);
            }
        }
    }

    fn enable(&mut self, world: &mut World) {
        if self.enable.is_some() {
            return;
        }
        let (config, attached) = config(world);
        self.is_deferred = config.deferred_start == Some(true);
        trace!(world, "consumer {} wants {config:?}", self.client);
        let request = Pb::default().bytes(1, &config.encode());
        let request = world.call_with(self.client, method::EnableTracing::METHOD, &request.0, false, attached);
        self.enable = Some(request);
        self.has_session = true;
        self.has_ended = false;
        self.asked_to_stop = false;
        self.final_reads = 0;
    }
}

/// Draws a config of any kind, and the file for it.
pub(crate) fn config(world: &mut World) -> (TraceConfig, Option<Attached>) {
    let profile = world.profile.clone();
    let path = world.name();
    let rng = &mut world.rng;
    let some = |on: bool, value: u32| on.then_some(value);
    let buffers = rng.between(1, 3);
    let mut config = TraceConfig::default();
    for _ in 0..buffers {
        let size_kb = rng.pick(&[4, 8, 13, 64, 512]).min(profile.buffer_kb as u32);
        let policy = if rng.percent(profile.discard) { FillPolicy::DISCARD } else { FillPolicy(rng.below(2) as i32) };
        let mut buffer = BufferConfig { size_kb: Some(size_kb), fill_policy: Some(policy), ..Default::default() };
        if profile.clones {
            buffer.transfer_on_clone = rng.percent(25).then_some(true);
            buffer.clear_before_clone = rng.percent(15).then_some(true);
        }
        config.buffers.push(buffer);
    }
    for source in 0..profile.sources {
        if rng.percent(30) {
            continue;
        }
        let target = rng.below(buffers) as u32;
        let name = format!("source-{source}");
        let source =
            DataSourceConfig { name: Some(name.as_str().into()), target_buffer: Some(target), ..Default::default() };
        let producer_name_filter =
            if rng.percent(10) { vec![format!("producer-{}", rng.below(40)).as_str().into()] } else { Vec::new() };
        config.data_sources.push(DataSource {
            config: Some(Box::new(source)),
            producer_name_filter,
            ..Default::default()
        });
    }
    config.trace_all_machines = rng.percent(60).then_some(true);
    config.flush_timeout_ms = some(rng.percent(80), rng.pick(&[20, 200, 2000]));
    config.data_source_stop_timeout_ms = some(rng.percent(80), rng.pick(&[20, 200, 2000]));
    config.flush_period_ms = some(rng.percent(30), rng.pick(&[30, 200, 1000]));
    config.deferred_start = rng.percent(20).then_some(true);
    config.prefer_suspend_clock_for_duration = rng.percent(20).then_some(true);
    config.builtin_data_sources = rng.percent(70).then(|| BuiltinDataSource {
        disable_clock_snapshotting: rng.percent(40).then_some(true),
        disable_service_events: rng.percent(20).then_some(true),
        disable_trace_config: rng.percent(20).then_some(true),
        disable_chunk_usage_histograms: rng.percent(70).then_some(true),
        snapshot_interval_ms: some(rng.percent(50), rng.pick(&[50, 500])),
        enable_concurrent_session_events: rng.percent(20).then_some(true),
        prefer_suspend_clock_for_snapshot: rng.percent(20).then_some(true),
        ..Default::default()
    });
    if rng.percent(40) {
        let clear_period_ms = Some(rng.pick(&[40, 300]));
        config.incremental_state_config = Some(IncrementalStateConfig { clear_period_ms, ..Default::default() });
    }
    if rng.percent(3) {
        config.exclusive_prio = Some(rng.between(1, 3) as u32);
    }
    if rng.percent(20) {
        let semaphore = SessionSemaphore {
            name: Some("semaphore".into()),
            max_other_session_count: Some(rng.between(0, 3)),
            ..Default::default()
        };
        config.session_semaphores.push(semaphore);
    }
    if rng.percent(10) {
        config.unique_session_name = Some(format!("session-{}", rng.below(3)).as_str().into());
    }
    if profile.clones && rng.percent(30) {
        config.bugreport_score = Some(rng.pick(&[0, 1, 100]));
    }
    let streams = rng.percent(profile.files);
    let has_triggers = rng.percent(profile.triggers);
    if has_triggers {
        let mut mode = if rng.percent(50) || streams { TriggerMode::START_TRACING } else { TriggerMode::STOP_TRACING };
        if profile.clones && !streams && rng.percent(40) {
            mode = TriggerMode::CLONE_SNAPSHOT;
        }
        let triggers = (0..rng.between(1, 3)).map(|i| Trigger {
            name: Some(format!("trigger-{i}").as_str().into()),
            stop_delay_ms: Some(rng.pick(&[1, 100, 900])),
            max_per_24_h: some(rng.percent(30), 2),
            skip_probability: rng.percent(20).then_some(0.5),
            ..Default::default()
        });
        config.trigger_config = Some(TriggerConfig {
            trigger_mode: Some(mode),
            triggers: triggers.collect(),
            trigger_timeout_ms: Some(rng.pick(&[300, 3000])),
            ..Default::default()
        });
    } else {
        config.duration_ms = some(rng.percent(50), rng.pick(&[1, 100, 700, 4000]));
    }
    if profile.boosted != 0 && rng.percent(profile.boosted) {
        let policy = rng.pick(&[BoostPolicy::POLICY_SCHED_OTHER, BoostPolicy::POLICY_SCHED_FIFO]);
        // Some of them are out of range.
        let priority = Some(rng.pick(&[0, 1, 5, 20, 50, 99, 100]));
        config.priority_boost = Some(PriorityBoostConfig { policy: Some(policy), priority, ..Default::default() });
    }
    if profile.compressed != 0 && rng.percent(profile.compressed) {
        match rng.below(3) {
            0 => config.compression_type = Some(CompressionType::COMPRESSION_TYPE_DEFLATE),
            1 => {
                let deflate = Some(Deflate::default());
                config.compression = Some(CompressionConfig { deflate, ..Default::default() });
            }
            _ => {
                let zstd = Some(Zstd { level: Some(rng.pick(&[-5, 0, 1])), ..Default::default() });
                config.compression = Some(CompressionConfig { zstd, ..Default::default() });
            }
        }
    }
    if profile.filtered != 0 && rng.percent(profile.filtered) {
        config.trace_filter = Some(Box::new(crate::filters::some(rng)));
    }
    let is_compressed = config.compression_type.is_some() || config.compression.is_some();
    let mut attached = None;
    if streams {
        config.write_into_file = Some(true);
        config.file_write_period_ms = some(rng.percent(80), rng.pick(&[1, 150, 600, 6000]));
        config.max_file_size_bytes = rng.percent(30).then(|| rng.pick(&[1, 3000, 60_000]));
        if is_compressed {
            // A compressed pass that does not fit is not written, so that the simulator could not
            // see its packets.
            config.max_file_size_bytes = None;
        }
        config.write_flush_mode = rng.percent(60).then(|| WriteFlushMode(rng.between(0, 2) as i32));
        config.fflush_post_write = rng.percent(40).then_some(FFlushMode::FFLUSH_ENABLED);
        if rng.percent(50) {
            attached = Some(Attached::File);
        } else {
            config.output_path = Some(format!("/trace-{path}").as_str().into());
        }
    }
    (config, attached)
}
