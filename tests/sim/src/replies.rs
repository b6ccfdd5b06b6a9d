//! The replies of the service to clients, and the model's conclusions from them.

use std::collections::BTreeSet;

use esatto_protozero::Owned;
use esatto_schema::{
    EnableTracingResponse, GetAsyncCommandResponseReader, GetTraceStatsResponseReader, InitializeConnectionResponse,
    ObserveEventsResponseReader,
};
use esatto_service::{CallId, Reply};

use crate::model::{Identity, Instance, ProducerModel};
use crate::owner::index_of;
use crate::profile::MS;
use crate::verify::check_stats;
use crate::world::{Actor, CallKind, Pending, World};

impl World {
    pub(crate) fn model_rejected(&mut self, call: CallId, pending: Pending) {
        match pending.kind {
            CallKind::Flush => {
                let found = self.model.flushes.iter().find(|(_, flush)| flush.call == Some(call)).map(|(&id, _)| id);
                let Some(flush) = found.and_then(|id| self.model.flushes.remove(&id)) else { return };
                let is_over = self.now_ns >= flush.ends_ns;
                let is_gone = self.service.session_views().iter().all(|view| view.id != flush.session || view.is_freed);
                assert!(is_over || is_gone, "flush {call:?} is given up before its time");
            }
            CallKind::Clone => self.model_clone_rejected(call),
            CallKind::Commit => {
                let index = index_of(call.client);
                let is_ready = self.model.producers.get(&index).is_some_and(|producer| producer.has_memory);
                assert!(!is_ready, "a commit of client {index} is rejected");
            }
            _ => {}
        }
    }

    pub(crate) fn model_replied(&mut self, index: usize, reply: &Reply, pending: Pending) {
        let body = reply.body.as_bytes();
        match pending.kind {
            CallKind::Commands => self.model_command(index, body),
            CallKind::Simple if self.model.hello.is_some() => self.model_hello(index, body),
            CallKind::Enable => self.model_ended(reply.call, body),
            CallKind::Flush => {
                let waits = self.model.flushes.values().any(|flush| flush.call == Some(reply.call));
                assert!(!waits, "flush {:?} succeeds before everybody has answered", reply.call);
            }
            CallKind::Stats => {
                let stats = GetTraceStatsResponseReader::new(body).trace_stats();
                let session = self.model.session_of(index).and_then(|id| self.model.sessions.get(&id));
                if let (Some(stats), Some(session)) = (stats, session) {
                    let discarded = (self.model.discarded_chunks, self.model.discarded_patches);
                    check_stats(session, &self.model.buffers, stats, discarded);
                }
            }
            CallKind::Observe => {
                let events = ObserveEventsResponseReader::new(body).events();
                if events.is_some_and(|events| events.all_data_sources_started() == Some(true)) {
                    self.model_all_started(index);
                }
            }
            CallKind::Clone => self.model_cloned(index, reply),
            CallKind::Read | CallKind::Simple | CallKind::Commit => {}
        }
    }

    fn model_hello(&mut self, index: usize, body: &[u8]) {
        let Some(hello) = self.model.hello.take() else { return };
        let response = InitializeConnectionResponse::decode(body).expect("a response that is a message");
        self.model.last_producer += 1;
        let id = self.model.last_producer;
        let peer = self.clients[index].peer;
        let identity = Identity { uid: peer.uid, pid: peer.pid, machine: peer.machine_id, honest: hello.honest };
        self.model.identities.insert(id, identity);
        let producer = ProducerModel {
            id,
            is_emulated: response.use_shmem_emulation == Some(true),
            is_scraped: hello.is_scraped,
            has_memory: response.using_shmem_provided_by_producer == Some(true),
            ..ProducerModel::default()
        };
        self.model.producers.insert(index, producer);
    }

    fn model_command(&mut self, index: usize, body: &[u8]) {
        let command = GetAsyncCommandResponseReader::new(body);
        let (now_ns, is_late) = (self.now_ns, self.model.is_late);
        if let Some(setup) = command.setup_data_source() {
            let config = setup.config().expect("a set-up has a config");
            let id = setup.new_instance_id().unwrap_or(0);
            let session_id = config.tracing_session_id().unwrap_or(0);
            let session = self.model.sessions.get_mut(&session_id).filter(|session| !session.is_freed);
            let Some(session) = session else {
                // The command waited for the producer's memory, and the session ended meanwhile.
                self.model.ghosts.insert(id);
                return;
            };
            assert_eq!(session.awaits_change, None, "session {session_id} begins before its priority is there");
            let target = config.target_buffer().unwrap_or(0) as u16;
            let name = config.name().unwrap_or_default().to_vec();
            let wanted = session.config.data_sources.iter().filter_map(|source| source.config.as_ref());
            let mut wanted = wanted.filter(|config| config.name.as_deref() == Some(&name[..]));
            assert!(
                wanted.any(|config| session.buffers.get(config.target_buffer.unwrap_or(0) as usize) == Some(&target)),
                "isolation: {} is told to write to buffer {target}",
                String::from_utf8_lossy(&name)
            );
            let instance = Instance {
                producer: index,
                name,
                since_ns: now_ns,
                was_started: false,
                start_acked: false,
                stop_sent_ns: None,
                stop_acked: false,
            };
            assert!(session.instances.insert(id, instance).is_none(), "an instance id is used twice");
            let producer = self.model.producers.get_mut(&index).expect("a producer is told what to do");
            producer.allowed.insert(target);
            producer.has_memory |= producer.is_emulated;
        } else if let Some(start) = command.start_data_source() {
            let id = start.new_instance_id().unwrap_or(0);
            let Some(session) = self.model.session_with_or_ghost(id) else { return };
            session.started_ns.get_or_insert(now_ns);
            let instance = session.instances.get_mut(&id).expect("it was found there");
            assert_eq!(instance.producer, index, "isolation: a start for somebody else");
            assert!(!core::mem::replace(&mut instance.was_started, true), "an instance is started twice");
        } else if let Some(stop) = command.stop_data_source() {
            let id = stop.instance_id().unwrap_or(0);
            let Some(session) = self.model.session_with_or_ghost(id) else { return };
            let instance = session.instances.get_mut(&id).expect("it was found there");
            assert_eq!(instance.producer, index, "isolation: a stop for somebody else");
            assert!(instance.stop_sent_ns.replace(now_ns).is_none(), "an instance is stopped twice");
            // The command waited for memory for an unknown time.
            instance.stop_acked |= is_late;
        } else if let Some(flush) = command.flush() {
            self.model_flush_command(
                index,
                flush.request_id().unwrap_or(0),
                flush.flags().unwrap_or(0),
                flush.data_source_ids(),
            );
        } else if let Some(clear) = command.clear_incremental_state() {
            for id in clear.data_source_ids() {
                let Some(session) = self.model.session_with_or_ghost(id) else { return };
                session.last_clear_ns = now_ns;
            }
        }
    }

    fn model_flush_command(&mut self, index: usize, id: u64, flags: u64, mut instances: impl Iterator<Item = u64>) {
        let Some(first) = instances.next() else {
            // A flush for a producer that copies its own chunks names no instance. Other flushes
            // name instances, which tell the session.
            let flush = self.model.flushes.entry(id).or_default();
            flush.waiting.insert(index);
            return;
        };
        let session_id = self.model.sessions.iter().find(|(_, session)| session.instances.contains_key(&first));
        let Some((&session_id, _)) = session_id else {
            assert!(self.model.ghosts.contains(&first), "a flush without a set-up");
            return;
        };
        let session = self.model.sessions.get_mut(&session_id).expect("it was found there");
        assert_eq!(session.instances[&first].producer, index, "isolation: a flush for somebody else");
        let own_ms = session.config.flush_timeout_ms.filter(|&ms| ms != 0).unwrap_or(5000);
        if flags == 0x11 {
            session.last_flush_ns = self.now_ns;
        }
        let (call, timeout_ms) = match self.model.flushing {
            Some((call, timeout_ms)) => (Some(call), timeout_ms),
            None => (None, own_ms),
        };
        let ends_ns = self.now_ns + u64::from(timeout_ms) * MS;
        // Commands wait while a producer's memory is made, so that the simulator cannot know which
        // producers such a flush waits for.
        let is_certain = self.model.creating.is_empty();
        if !is_certain && self.model.is_late && !self.model.flushes.contains_key(&id) {
            return;
        }
        let flush = self.model.flushes.entry(id).or_default();
        (flush.session, flush.call, flush.ends_ns) = (session_id, call, if is_certain { ends_ns } else { 0 });
        flush.waiting.insert(index);
    }

    /// Checks the answer to EnableTracing.
    fn model_ended(&mut self, call: CallId, body: &[u8]) {
        let response = EnableTracingResponse::decode(body).expect("a response that is a message");
        assert_eq!(response.disabled, Some(true));
        let error = response.error.map(|error| error.to_string()).unwrap_or_default();
        let views = self.service.session_views();
        let is_there: BTreeSet<u64> = views.iter().filter(|view| !view.is_freed).map(|view| view.id).collect();
        let (now_ns, boottime_ns) = (self.now_ns, self.now_ns + self.suspended_ns);
        let found = self.model.sessions.iter_mut().find(|(_, session)| session.enable_call == Some(call));
        let Some((id, session)) = found else { return };
        session.enable_call = None;
        session.has_ended = true;
        assert!(
            !session.file_failed || !error.is_empty(),
            "the end of session {id} does not tell that its file failed"
        );
        if !is_there.contains(id) {
            return;
        }
        let duration_ms = u64::from(session.config.duration_ms.unwrap_or(0));
        let lasted_ns = match session.config.prefer_suspend_clock_for_duration {
            Some(true) => boottime_ns - session.created_boottime_ns,
            _ => now_ns - session.created_ns,
        };
        let is_due = duration_ms != 0 && lasted_ns >= duration_ms * MS;
        let is_full = session.config.max_file_size_bytes.is_some();
        let has_triggers = session.config.trigger_config.is_some();
        assert!(session.may_end || is_due || is_full || has_triggers, "session {id} ends before its time");
        let timeout_ns = u64::from(session.config.data_source_stop_timeout_ms.unwrap_or(5000)) * MS;
        for (instance_id, instance) in &session.instances {
            let Some(Actor::Honest(producer)) = &self.actors[instance.producer] else { continue };
            let Some(sent_ns) = instance.stop_sent_ns.filter(|_| instance.was_started) else { continue };
            assert!(
                instance.stop_acked || !producer.notifies_stop || now_ns >= sent_ns + timeout_ns,
                "session {id} ends before instance {instance_id} acknowledged its stop"
            );
        }
    }

    fn model_all_started(&mut self, index: usize) {
        let Some(id) = self.model.session_of(index) else { return };
        let session = &self.model.sessions[&id];
        if session.all_started_told || self.model.tells_of_past {
            // The event was sent before, and is sent again now.
            self.model.sessions.get_mut(&id).expect("it is there").all_started_told = true;
            return;
        }
        for (instance_id, instance) in &session.instances {
            let Some(Actor::Honest(producer)) = &self.actors[instance.producer] else { continue };
            assert!(
                instance.start_acked || !producer.notifies_start,
                "all data sources of session {id} are said to be started, {instance_id} is not"
            );
        }
        self.model.sessions.get_mut(&id).expect("it is there").all_started_told = true;
    }
}
