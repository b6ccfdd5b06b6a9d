//! Clones of sessions. The simulator copies their expected content when the service copies it.

use std::collections::BTreeMap;

use esatto_protozero::Owned;
use esatto_schema::{CloneSessionResponse, TraceConfig};
use esatto_service::Step;
use esatto_service::{CallId, FileId, Input, Reply};

use crate::model::{BufferModel, SessionModel};
use crate::owner::index_of;
use crate::profile::MS;
use crate::world::{CallKind, Event, World, trace};

/// A clone under way.
#[derive(Debug)]
pub struct PendingClone {
    source: u64,
    call: CallId,
    skips_filter: bool,
    /// The buffers taken so far, by index.
    taken: BTreeMap<usize, BufferModel>,
    file: Option<FileId>,
}

impl PendingClone {
    /// The buffers that it has taken so far.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &BufferModel> {
        self.taken.values()
    }
}

/// A copy of a file under way.
#[derive(Clone, Copy, Debug)]
pub struct FileCopy {
    from: FileId,
    /// The number of its bytes to copy.
    bytes: usize,
}

impl World {
    /// Follows a step of a clone, when the service reports it.
    pub(crate) fn model_clone(&mut self, step: Step) {
        match step {
            Step::CloneBegins { clone, source } => {
                let (call, skips_filter) = self.model.cloning.expect("clones come of CloneSession");
                let pending = PendingClone { source, call, skips_filter, taken: BTreeMap::new(), file: None };
                assert!(self.model.clones.insert(clone, pending).is_none(), "a clone has a number that is not new");
                let session = &self.model.sessions[&source];
                for (id, config) in session.buffers.iter().zip(&session.config.buffers) {
                    let buffer = self.model.buffers.get_mut(id).expect("a buffer of a session");
                    if config.clear_before_clone == Some(true) && !buffer.reference.is_untouched() {
                        buffer.take();
                    }
                }
            }
            Step::CloneTakes { clone, index } => {
                let pending = self.model.clones.get_mut(&clone).expect("a clone that was begun");
                let session = &self.model.sessions[&pending.source];
                let id = session.buffers[index];
                trace!(self, "clone {clone} takes buffer {id}");
                let buffer = self.model.buffers.get_mut(&id).expect("a buffer of a session");
                let taken = if is_moved(&session.config, index) { buffer.take() } else { buffer.cloned() };
                assert!(pending.taken.insert(index, taken).is_none(), "a buffer is taken twice for a clone");
            }
            Step::CloneMade { clone, session } => self.model_clone_made(clone, session),
            Step::CloneAbandoned(clone) => {
                let pending = self.model.clones.remove(&clone).expect("a clone that was begun");
                trace!(self, "clone {clone} of session {} is given up", pending.source);
                let Some(source) = self.model.sessions.get(&pending.source) else { return };
                for (index, taken) in pending.taken {
                    let buffer = self.model.buffers.get_mut(&source.buffers[index]);
                    let Some(buffer) = buffer.filter(|_| is_moved(&source.config, index)) else { continue };
                    let mut gone = taken;
                    if buffer.reference.is_untouched() && buffer.takes == gone.takes_behind() {
                        core::mem::swap(buffer, &mut gone);
                    }
                    // The content that replaced it may have been read: the mark comes as early as
                    // it can.
                    for key in buffer.reference.inherit_loss(&gone.reference) {
                        buffer.last_read.remove(&key);
                    }
                }
            }
            _ => {}
        }
    }

    fn model_clone_made(&mut self, clone: u64, id: u64) {
        let pending = self.model.clones.remove(&clone).expect("a clone that was begun");
        let views = self.service.session_views();
        let view = views.into_iter().find(|view| view.id == id);
        let source = &self.model.sessions[&pending.source];
        assert_eq!(pending.taken.len(), source.buffers.len(), "a clone without all buffers");
        self.tally.sessions += 1;
        self.tally.clones += 1;
        // It may have ended in the same step.
        let buffers = view.map_or(Vec::new(), |view| view.buffers);
        let streams = pending.file.is_some() || source.file.is_some();
        let session = SessionModel {
            consumer: Some(index_of(pending.call.client)),
            buffers: buffers.clone(),
            config: source.config.clone(),
            filter: source.filter.clone().filter(|_| !pending.skips_filter),
            enable_call: None,
            clone_call: Some(pending.call),
            created_ns: self.now_ns,
            created_boottime_ns: self.now_ns + self.suspended_ns,
            instances: BTreeMap::new(),
            sequence_ids: source.sequence_ids.clone(),
            keys: source.keys.clone(),
            // In a copy of the source's file the sequences continue; in a new trace they begin.
            first_seen: if streams { source.first_seen.clone() } else { Default::default() },
            invalid_packets: source.invalid_packets,
            file: pending.file,
            may_end: true,
            has_ended: true,
            is_freed: false,
            configs_read: 0,
            uuids_read: 0,
            last_flush_ns: self.now_ns,
            last_clear_ns: self.now_ns,
            last_write_ns: self.now_ns,
            started_ns: None,
            all_started_told: false,
            file_failed: false,
            is_clone: true,
            triggers_read: 0,
            machines_told: Default::default(),
            detach_key: None,
            boost: None,
            awaits_change: None,
        };
        for (id, mut taken) in buffers.into_iter().zip(pending.taken.into_values()) {
            taken.reference.read_only = true;
            let before = self.model.buffers.insert(id, taken);
            assert!(before.is_none(), "isolation: buffer {id} belongs to two sessions");
        }
        trace!(self, "clone {clone} of session {} is session {id}", pending.source);
        self.model.sessions.insert(id, session);
    }

    /// Creates the file for the clone that this call asks for.
    pub(crate) fn clone_adopts(&mut self, call: CallId, file: FileId) {
        let limit = if let Some(pending) = self.model.clones.values_mut().find(|pending| pending.call == call) {
            pending.file = Some(file);
            self.model.sessions.get(&pending.source).and_then(|source| source.config.max_file_size_bytes)
        } else {
            // The clone was made in this very step, or failed.
            let mut sessions = self.model.sessions.values_mut();
            sessions.find(|session| session.clone_call == Some(call)).and_then(|session| {
                session.file = Some(file);
                session.config.max_file_size_bytes
            })
        };
        self.new_file(file, limit);
    }

    /// Checks the answer to CloneSession.
    pub(crate) fn model_cloned(&mut self, index: usize, reply: &Reply) {
        let response = CloneSessionResponse::decode(reply.body.as_bytes()).expect("a response that is a message");
        let is_there = |id: &u64| self.service.session_views().iter().any(|view| view.id == *id && !view.is_freed);
        let made = self.model.sessions.iter().find(|(_, session)| session.clone_call == Some(reply.call));
        if response.success == Some(true) {
            let (id, session) = made.expect("a clone that succeeded is a session");
            // While its file is written, a clone may be detached, and attached by another consumer.
            let is_detached = session.detach_key.is_some();
            assert!(is_detached || session.consumer == Some(index), "isolation: a clone for another consumer");
            assert_eq!(session.file, None, "clone {id} is said to be complete, its file is still open");
        } else {
            let is_left = made.is_some_and(|(id, _)| is_there(id));
            assert!(!is_left, "a clone that failed is still there: {:?}", response.error);
            assert!(response.error.is_some_and(|error| !error.is_empty()), "a clone fails without a word");
        }
        assert!(self.model.clones.values().all(|pending| pending.call != reply.call), "an answer before the end");
    }

    /// Checks that a call of CloneSession is rejected because a later one replaces it.
    pub(crate) fn model_clone_rejected(&self, call: CallId) {
        let mut calls = self.calls.iter();
        let is_replaced = calls.any(|(other, pending)| other.client == call.client && pending.kind == CallKind::Clone);
        assert!(is_replaced, "CloneSession {call:?} is rejected, and no other call took its place");
    }

    /// Begins to copy everything that one file was given so far into another.
    pub(crate) fn copy_file(&mut self, from: FileId, to: FileId) {
        let source = self.files.get(&from).expect("files: a copy of a file that does not exist");
        assert!(!source.is_closed, "files: a copy of a closed file");
        let bytes = source.bytes.len() + source.waiting.iter().map(Vec::len).sum::<usize>();
        let before = self.copies.insert(to, FileCopy { from, bytes });
        assert!(before.is_none(), "files: a file is copied twice");
        let delay_ns = self.rng.below(20 * MS);
        self.after(delay_ns, Event::Copied(to.0));
    }

    pub(crate) fn file_was_copied(&mut self, to: FileId) {
        let copy = self.copies[&to];
        let source = &self.files[&copy.from];
        if !source.has_failed && source.whole_bytes < copy.bytes {
            // Writes are still under way.
            return self.after(MS, Event::Copied(to.0));
        }
        self.copies.remove(&to);
        let has_failed = source.has_failed;
        let bytes = source.bytes[..copy.bytes.min(source.bytes.len())].to_vec();
        let target = self.files.get_mut(&to).expect("files: a copy to a file that does not exist");
        assert!(!target.is_closed && target.bytes.is_empty(), "files: a copy to a file that is in use");
        let result = if has_failed { Err("the source is broken".to_owned()) } else { target.append(&bytes) };
        trace!(self, "file {} is a copy of {} bytes: {result:?}", to.0, bytes.len());
        self.feed(Input::FileCopied { file: to, result });
    }
}

impl BufferModel {
    /// Moves the content out. The next content begins again.
    fn take(&mut self) -> Self {
        let emptied = Self {
            reference: self.reference.emptied(),
            last_read: BTreeMap::new(),
            begins_anew: true,
            takes: self.takes_behind(),
        };
        core::mem::replace(self, emptied)
    }

    /// Returns the number of times that content was taken out, once this content is gone.
    fn takes_behind(&self) -> u64 {
        self.takes + u64::from(!self.reference.is_untouched())
    }

    fn cloned(&self) -> Self {
        Self { reference: self.reference.cloned(), ..self.clone() }
    }
}

fn is_moved(config: &TraceConfig, index: usize) -> bool {
    config.buffers.get(index).is_some_and(|buffer| buffer.transfer_on_clone == Some(true))
}
