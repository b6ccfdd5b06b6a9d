//! Clones of sessions (`docs/spec/service.md §20`).
//!
//! The data sources of a session flush in two groups, by the buffers that they write to. When a
//! group has flushed, the service copies or moves its buffers. Both groups together become a
//! session that is read-only and belongs to the consumer that asked.
//!
//! The owner also copies the file of a session that streams into one. The copy contains all writes
//! before it and no later ones. To lose nothing between file and buffers, the service takes all
//! buffers of such a session at that moment, when both groups have flushed. Their content then
//! follows the copy in the new file.

use esatto_protozero::Owned;
use esatto_schema::trace_stats::FinalFlushOutcome;
use esatto_schema::{CloneSessionRequestReader, CloneSessionResponse, TraceConfig};

use crate::api::{CallId, ClientId, FileId, Output};
use crate::client_text::{cut, cut_text};
use crate::context::Context;
use crate::ids::{BufferId, SessionId};
use crate::observer::Step;
use crate::read::Reading;
use crate::service::Service;
use crate::session::activity::Recorded;
use crate::session::clone::{BufferGroup, CloneFacts, CloneId, PendingClone, Taken};
use crate::session::flush::{AfterFlush, FlushReason, Flushes};
use crate::session::flush_strategy::FlushStrategy;
use crate::session::phase::Phase;
use crate::session::state::State;
use crate::session::trace_file::{FileState, OutputFile};
use crate::session::triggers::{Received, Triggers};
use crate::session::unread_events::Event;
use crate::session::{NewSession, Session};

/// The session id that stands for the best session for a bug report.
const BUGREPORT_SESSION: u64 = u64::MAX;

impl Service {
    /// Handles CloneSession.
    pub(crate) fn clone_session_call(
        &mut self,
        call: CallId,
        request: CloneSessionRequestReader<'_>,
        file_attached: bool,
        cx: &mut Context<'_>,
    ) {
        let Some(consumer) = self.consumers.get_mut(call.client) else { return cx.reject(call) };
        if let Some(earlier) = consumer.clone_call.replace(call) {
            cx.reject(earlier);
            self.abandon_clones_for(call.client, cx);
        }
        if let Err(error) = self.begin_clone(call, request, file_attached, cx) {
            self.reply_clone(call, Err(error), cx);
        }
    }

    fn begin_clone(
        &mut self,
        call: CallId,
        request: CloneSessionRequestReader<'_>,
        file_attached: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        let consumer = self.consumers.get(call.client).ok_or("the consumer is gone")?;
        let uid = consumer.uid;
        if consumer.session.is_some() {
            return Err("this consumer has a session already".to_owned());
        }
        let (source, is_bugreport) = self.source_of(&request, uid)?;
        self.sessions.check_clone_limits(uid)?;
        let session = self.sessions.get(source).ok_or("the session is gone")?;
        let bytes = session.buffer_bytes + session.reading.sequence_ids.bytes();
        self.sessions.check_memory(uid, 0, bytes, self.buffers.max_bytes)?;
        if session.opening().is_some() || session.clone_facts().is_some_and(|clone| clone.reply.is_some()) {
            return Err("the session is not complete yet".to_owned());
        }
        let streams = session.file.open().is_some();
        if streams && !file_attached {
            return Err("the session streams into a file: a file descriptor is needed to copy it to".to_owned());
        }
        self.clear_before_clone(source, cx)?;

        self.sessions.last.clone += 1;
        let id = CloneId(self.sessions.last.clone);
        self.observer.report(Step::CloneBegins { clone: id.0, source: source.0 });
        let file = streams.then(|| self.sessions.next_file());
        if let Some(file) = file {
            cx.push(Output::AdoptFile { file, call });
        }
        let Some(session) = self.sessions.get_mut(source) else { return Ok(()) };
        session.record(Event::FlushStarted, true, cx.now);
        let groups = [BufferGroup::Moved, BufferGroup::Copied];
        let pending = PendingClone {
            source,
            call,
            uid,
            bytes,
            skips_filter: is_bugreport || request.skip_trace_filter().unwrap_or(false),
            trigger: clone_trigger(&request),
            file,
            started_ns: cx.now.boottime_ns,
            waits_for: groups.to_vec(),
            is_flushed: true,
            buffers: session.buffers.iter().map(|_| None).collect(),
        };
        self.sessions.clones.insert(id, pending);

        let for_bugreport = is_bugreport || request.for_bugreport().unwrap_or(false);
        for group in groups {
            // The first group may have failed because there is no memory.
            if !self.sessions.clones.contains_key(&id) {
                break;
            }
            let Some(session) = self.sessions.get(source) else { break };
            let is_of_group = |(index, _): &(usize, &BufferId)| BufferGroup::of(session, *index) == group;
            let buffers: Vec<BufferId> =
                session.buffers.iter().enumerate().filter(is_of_group).map(|(_, &buffer)| buffer).collect();
            let reason = FlushReason::Clone { for_bugreport };
            let then = AfterFlush::Clone(id, group);
            self.flush_buffers(source, 0, reason, then, Some(buffers), cx);
        }
        Ok(())
    }

    /// Returns the session to clone, and whether it was picked for a bug report.
    fn source_of(&self, request: &CloneSessionRequestReader<'_>, uid: i32) -> Result<(SessionId, bool), String> {
        let is_allowed = |session: &&Session| uid == 0 || session.consumer_uid == uid;
        let id = request.session_id().unwrap_or(0);
        if id == BUGREPORT_SESSION {
            let score = |session: &&Session| session.config.bugreport_score.unwrap_or(0);
            let is_candidate = |session: &&Session| session.state() == State::Started && score(session) > 0;
            // Of equal scores, the oldest session wins.
            let best = self.sessions.values().filter(is_candidate).filter(is_allowed).rev().max_by_key(score);
            let best = best.ok_or("there is no session with a bugreport_score to clone")?;
            return Ok((best.id, true));
        }
        let name = request.unique_session_name().unwrap_or_default();
        let source = if id != 0 {
            self.sessions.get(SessionId(id))
        } else {
            let is_named = |session: &&Session| session.state() != State::Cloned && session.unique_name() == name;
            self.sessions.values().find(is_named).filter(|_| !name.is_empty())
        };
        let source = source.ok_or("there is no such session to clone")?;
        if !is_allowed(&source) {
            return Err("the session belongs to another user".to_owned());
        }
        Ok((source.id, false))
    }

    /// Empties the buffers whose old content clones do not want: all of them, or none.
    fn clear_before_clone(&mut self, source: SessionId, cx: &mut Context<'_>) -> Result<(), String> {
        let Some(session) = self.sessions.get(source) else { return Ok(()) };
        let is_cleared =
            |index: usize| session.config.buffers.get(index).is_some_and(|b| b.clear_before_clone == Some(true));
        let mut old = Vec::new();
        for (index, id) in session.buffers.iter().enumerate().filter(|&(index, _)| is_cleared(index)) {
            let Some(buffer) = self.buffers.get_mut(*id).filter(|buffer| !buffer.is_empty()) else { continue };
            match buffer.try_take() {
                Some(full) => old.push((index, *id, full)),
                None => {
                    old.into_iter().for_each(|(_, id, full)| self.buffers.replace(id, full));
                    return Err(format!("there is no memory for an empty buffer {index}"));
                }
            }
        }
        let emptied: Vec<usize> = old.iter().map(|&(index, ..)| index).collect();
        for (index, _, full) in old {
            if let Some(source) = self.sessions.get_mut(source) {
                source.moved.add(full.stats());
            }
            self.follow(source, index, None);
        }
        self.renew_state(source, &emptied, cx);
        Ok(())
    }

    /// Takes the buffers of a group whose data sources have flushed, or failed to.
    pub(crate) fn take_group(&mut self, id: CloneId, group: BufferGroup, is_flushed: bool, cx: &mut Context<'_>) {
        let Some(pending) = self.sessions.clones.get_mut(&id) else { return };
        pending.is_flushed &= is_flushed;
        pending.waits_for.retain(|&waiting| waiting != group);
        let is_last = pending.waits_for.is_empty();
        let is_taken = match pending.file {
            None => self.take_buffers(id, |other| other == group, cx),
            Some(_) => !is_last || self.take_buffers(id, |_| true, cx),
        };
        if !is_taken {
            self.abandon_clone(id, Some("there is no memory for a copy of the buffers"), cx);
        } else if is_last {
            self.finish_clone(id, cx);
        }
    }

    /// Copies or moves buffers of the source. Returns false if there is no memory.
    fn take_buffers(&mut self, id: CloneId, is_wanted: impl Fn(BufferGroup) -> bool, cx: &mut Context<'_>) -> bool {
        let Self { sessions, buffers, observer, .. } = self;
        let Some((pending, source)) = sessions.pending_clone(id) else { return true };
        let source_id = source.id;
        let (mut moved, mut amounts, mut is_complete) = (Vec::new(), Recorded::default(), true);
        for (index, (buffer, slot)) in source.buffers.iter().zip(&mut pending.buffers).enumerate() {
            let group = BufferGroup::of(source, index);
            let Some(buffer) = buffers.get_mut(*buffer).filter(|_| is_wanted(group)) else { continue };
            let taken = match group {
                BufferGroup::Copied => buffer.try_clone(),
                _ => buffer.try_take(),
            };
            let Some(buffer) = taken else {
                is_complete = false;
                break;
            };
            if group == BufferGroup::Copied {
                cx.charge_bytes(buffer.clone_bytes());
            } else {
                amounts.add(buffer.stats());
            }
            observer.report(Step::CloneTakes { clone: id.0, index });
            if group == BufferGroup::Moved && !buffer.is_empty() {
                moved.push(index);
            }
            *slot = Some(Taken { buffer, at_ns: cx.now.boottime_ns, is_followed: false });
        }
        if let Some(source) = sessions.get_mut(source_id) {
            source.moved = source.moved.plus(amounts);
        }
        if is_complete {
            for &index in &moved {
                self.follow(source_id, index, Some(id));
            }
            self.renew_state(source_id, &moved, cx);
        }
        is_complete
    }

    /// Lets the writers of buffers that were emptied write again what their next packets refer to.
    fn renew_state(&mut self, source: SessionId, emptied: &[usize], cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get(source) else { return };
        let emptied: Vec<_> = emptied.iter().filter_map(|&index| session.buffers.get(index).copied()).collect();
        if !emptied.is_empty() {
            self.clear_incremental_state_of(source, |buffer| emptied.contains(&buffer), cx);
        }
    }

    /// Notes that the content of a buffer was taken out. It follows the content that earlier clones
    /// took out of the same buffer.
    fn follow(&mut self, source: SessionId, index: usize, by: Option<CloneId>) {
        let others = self.sessions.clones.iter_mut().filter(|(id, other)| other.source == source && Some(**id) != by);
        for (_, other) in others {
            if let Some(Some(taken)) = other.buffers.get_mut(index) {
                taken.is_followed = true;
            }
        }
    }

    fn finish_clone(&mut self, id: CloneId, cx: &mut Context<'_>) {
        let Some(pending) = self.sessions.clones.get(&id) else { return };
        if self.consumers.get(pending.call.client).is_none_or(|consumer| consumer.session.is_some()) {
            return self.abandon_clone(id, Some("this consumer has a session already"), cx);
        }
        let Some(pending) = self.sessions.clones.remove(&id) else { return };
        let copy = pending.file.map(|to| (self.sessions.get(pending.source).and_then(|source| source.file.open()), to));
        let copy = copy.map(|(from, to)| (from.map(|from| from.id), to));
        let Some(id) = self.make_clone(id, pending, cx) else { return };
        match copy {
            None => self.clone_is_complete(id, None, cx),
            Some((Some(from), to)) => {
                self.sessions.files.insert(to, id);
                // The clone continues when the copy is complete.
                cx.push(Output::CopyFile { from, to });
            }
            Some((None, to)) => {
                // The source ended while its data sources flushed, so its file cannot be copied any
                // more.
                self.sessions.files.insert(to, id);
                self.file_copied(to, Err("the session ended".to_owned()), cx);
            }
        }
    }

    /// Makes the session of a clone.
    fn make_clone(&mut self, clone: CloneId, pending: PendingClone, cx: &mut Context<'_>) -> Option<SessionId> {
        let mut events = Vec::new();
        let mut buffers = Vec::with_capacity(pending.buffers.len());
        let sequence_ids = &self.sessions.get(pending.source)?.reading.sequence_ids;
        // In the same file the sequences continue; in a separate file they begin again.
        let sequence_ids = if pending.file.is_some() { sequence_ids.clone() } else { sequence_ids.restarted() };
        let mut buffer_bytes = sequence_ids.bytes();
        cx.charge_bytes(usize::try_from(buffer_bytes).unwrap_or(usize::MAX));
        for (index, taken) in (0u32..).zip(pending.buffers) {
            let Taken { mut buffer, at_ns, .. } = taken?;
            buffer_bytes += buffer.clone_bytes() as u64;
            buffer.make_read_only();
            buffers.push(self.buffers.insert(buffer)?);
            events.push((at_ns, Event::BufferCloned(index)));
        }
        let uuid_msb = self.random.uuid().0;
        let id = self.sessions.next_session();
        let source = self.sessions.get_mut(pending.source)?;

        let mut unread = source.unread.for_clone(pending.started_ns);
        unread.events.append(&mut events);
        let bytes_written = source.file.open().map_or(0, |file| file.bytes_written);
        let mut session = Session::new(NewSession {
            id,
            consumer: pending.call.client,
            consumer_uid: pending.uid,
            // TraceConfig implements no Clone, because only clones need it and the code would be
            // large.
            config: TraceConfig::decode(&source.config.encode()).unwrap_or_default(),
            config_bytes: source.config_bytes.clone(),
            uuid: (uuid_msb, source.uuid.1),
            phase: Phase::Cloned(CloneFacts { trigger: pending.trigger, reply: Some(pending.call) }),
            buffers,
            buffer_bytes,
            file: pending.file.map(|id| OutputFile::opening(id, bytes_written)),
            reading: Reading {
                filter: source.reading.filter.clone().filter(|_| !pending.skips_filter),
                codec: source.reading.codec,
                sequence_ids,
                invalid_packets: source.reading.invalid_packets,
                is_done_while_recording: false,
            },
        });
        session.started_realtime_ns = source.started_realtime_ns;
        session.triggers = Triggers::of_clone(&mut source.triggers);
        session.unread = unread;
        session.flushes = Flushes {
            requested: source.flushes.requested,
            succeeded: source.flushes.succeeded,
            failed: source.flushes.failed,
            final_outcome: Some(match pending.is_flushed {
                true => FinalFlushOutcome::FINAL_FLUSH_SUCCEEDED,
                false => FinalFlushOutcome::FINAL_FLUSH_FAILED,
            }),
            ..Flushes::new(FlushStrategy::Never)
        };
        self.sessions.insert(session);
        self.observer.report(Step::CloneMade { clone: clone.0, session: id.0 });
        let (uid, source) = (pending.uid, pending.source.0);
        let unfiltered = if pending.skips_filter { ", not filtered" } else { "" };
        let label = self.sessions.get(id).map(Session::label).unwrap_or_default();
        cx.info(format!("{label} of uid {uid} is a clone of session {source}{unfiltered}"));
        self.sessions.announce(id, cx);
        self.sessions.get_mut(id)?.record(Event::TracingDisabled, true, cx.now);
        self.consumers.get_mut(pending.call.client)?.session = Some(id);
        Some(id)
    }

    /// Handles the result of a copy of the source's file.
    pub(crate) fn file_copied(&mut self, file: FileId, result: Result<(), String>, cx: &mut Context<'_>) {
        let session = self.sessions.of_file(file);
        let Some(session) = session else {
            // The clone has ended meanwhile.
            return cx.push(Output::CloseFile(file));
        };
        let id = session.id;
        match result {
            Ok(()) => {
                if let Some(file) = session.file.open_mut() {
                    file.state = FileState::Idle;
                }
                self.write_file(id, true, cx);
            }
            Err(error) => {
                session.file.close();
                self.sessions.files.remove(&file);
                cx.push(Output::CloseFile(file));
                self.clone_is_complete(id, Some(format!("the trace file cannot be copied: {error}")), cx);
            }
        }
    }

    /// Answers the call that made the clone: it can be read, or is in the file. An error ends it.
    ///
    /// While the file is written, the clone may be detached and attached. Then two consumers wait:
    /// one asked for the clone, and the other waits for the end of its session.
    pub(crate) fn clone_is_complete(&mut self, id: SessionId, error: Option<String>, cx: &mut Context<'_>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.end_error.clone_from(&error);
        let made = Made { uuid: session.uuid, is_in_file: session.file.is_used() };
        let is_left = session.is_detached() && session.file.is_used();
        let call = session.clone_facts_mut().and_then(|clone| clone.reply.take());
        let is_over = call.is_some() && (error.is_some() || is_left);
        if let Some(call) = call {
            self.reply_clone(call, error.map_or(Ok(made), Err), cx);
        }
        self.answer_end(id, cx);
        if is_over {
            self.free(id, None, cx);
        }
    }

    /// Gives up the clones for a consumer that has called again or disconnected.
    pub(crate) fn abandon_clones_for(&mut self, client: ClientId, cx: &mut Context<'_>) {
        self.abandon_clones(|pending| pending.call.client == client, None, cx);
    }

    /// Gives up the clones of a session that ends.
    pub(crate) fn abandon_clones_of(&mut self, session: SessionId, cx: &mut Context<'_>) {
        self.abandon_clones(|pending| pending.source == session, Some("the session ended"), cx);
        let reply = self.sessions.get_mut(session).and_then(|session| session.clone_facts_mut()?.reply.take());
        if let Some(call) = reply {
            self.reply_clone(call, Err("the clone was freed before its file was complete".to_owned()), cx);
        }
    }

    fn abandon_clones(&mut self, is_it: impl Fn(&PendingClone) -> bool, error: Option<&str>, cx: &mut Context<'_>) {
        let clones: Vec<CloneId> =
            self.sessions.clones.iter().filter(|(_, pending)| is_it(pending)).map(|(&id, _)| id).collect();
        for clone in clones {
            self.abandon_clone(clone, error, cx);
        }
    }

    /// Gives up a clone.
    ///
    /// Content that was moved out of the source goes back, unless the source has recorded new data
    /// since then, even if another clone has taken those. In that case the service marks the loss
    /// in the next packets of its sequences.
    fn abandon_clone(&mut self, id: CloneId, error: Option<&str>, cx: &mut Context<'_>) {
        let Some(pending) = self.sessions.clones.remove(&id) else { return };
        self.observer.report(Step::CloneAbandoned(id.0));
        if let Some(source) = self.sessions.get_mut(pending.source) {
            for (index, (buffer, taken)) in source.buffers.iter().zip(pending.buffers).enumerate() {
                let (Some(taken), BufferGroup::Moved) = (taken, BufferGroup::of(source, index)) else { continue };
                let Some(buffer) = self.buffers.get_mut(*buffer) else { continue };
                // Content that cannot go back. It may consist of loss marks only.
                let mut gone = taken.buffer;
                if buffer.is_empty() && !taken.is_followed {
                    core::mem::swap(buffer, &mut gone);
                    source.moved.add(gone.stats());
                    source.moved.remove(buffer.stats());
                }
                let before = buffer.work();
                buffer.inherit_loss(&gone);
                cx.work += buffer.work() - before;
                if !gone.is_empty() {
                    source.moved.clone_losses += 1;
                    cx.error(format!(
                        "session {}: the content that a failed clone took from buffer {index} is lost",
                        source.id.0
                    ));
                }
            }
        }
        if let Some(file) = pending.file {
            cx.push(Output::CloseFile(file));
        }
        if let Some(error) = error {
            self.reply_clone(pending.call, Err(error.to_owned()), cx);
        }
    }

    fn reply_clone(&mut self, call: CallId, result: Result<Made, String>, cx: &mut Context<'_>) {
        let Some(consumer) = self.consumers.get_mut(call.client) else { return };
        // A later call has taken its place, and the service has rejected this one.
        if consumer.clone_call != Some(call) {
            return;
        }
        consumer.clone_call = None;
        let response = match result {
            Ok(made) => CloneSessionResponse {
                success: Some(true),
                uuid_msb: Some(made.uuid.0),
                uuid_lsb: Some(made.uuid.1),
                was_write_into_file: Some(made.is_in_file),
                ..Default::default()
            },
            Err(error) => {
                let error = cut_text(error);
                cx.warn(format!("a session is not cloned: {error}"));
                CloneSessionResponse {
                    success: Some(false),
                    error: Some(error.into()),
                    uuid_msb: Some(0),
                    uuid_lsb: Some(0),
                    was_write_into_file: Some(false),
                    ..Default::default()
                }
            }
        };
        cx.reply(call, response.encode());
    }
}

/// The facts that the consumer gets about its clone.
struct Made {
    uuid: (i64, i64),
    is_in_file: bool,
}

/// Returns the trigger that a consumer names as the reason of a clone.
fn clone_trigger(request: &CloneSessionRequestReader<'_>) -> Option<Received> {
    let name = request.clone_trigger_name().filter(|name| !name.is_empty())?;
    Some(Received {
        boottime_ns: request.clone_trigger_boot_time_ns().unwrap_or(0),
        name: cut(name).into(),
        producer_name: cut(request.clone_trigger_producer_name().unwrap_or_default()).into(),
        producer_uid: request.clone_trigger_trusted_producer_uid().unwrap_or(0),
        stop_delay_ms: request.clone_trigger_delay_ms().unwrap_or(0),
    })
}
