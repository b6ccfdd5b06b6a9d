//! The state that the service must have: which producer may write into which buffer, the content of
//! each buffer, the flushes that each producer owes.

use std::collections::{BTreeMap, BTreeSet};

use esatto_filter::Filter;
use esatto_schema::{CommitDataRequestReader, GetAsyncCommandResponseReader, TraceConfig};
use esatto_service::Step;
use esatto_service::{CallId, FileId, Output, PriorityBoost};

use crate::clones::PendingClone;
use crate::memory::Seen;
use crate::owner::index_of;
use crate::reference::{Incoming, Key, Reference};
use crate::relay::{MachineModel, MachinesTold};
use crate::world::{CallKind, World, trace};

/// A producer as the service must see it.
#[derive(Debug, Default)]
pub struct ProducerModel {
    pub(crate) id: u16,
    pub(crate) is_emulated: bool,
    pub(crate) is_scraped: bool,
    /// True if the service accepts its commits.
    pub(crate) has_memory: bool,
    pub(crate) writers: BTreeMap<u16, u16>,
    /// Writer ids that it gave back.
    pub(crate) retired: BTreeSet<u16>,
    /// Writer ids that it ever registered.
    pub(crate) seen: BTreeSet<u16>,
    pub(crate) allowed: BTreeSet<u16>,
}

/// The writer whose packets a sequence holds.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub(crate) uid: i32,
    pub(crate) pid: Option<i32>,
    pub(crate) machine: u32,
    /// The simulator's number of an honest producer.
    pub(crate) honest: Option<u32>,
}

/// A buffer of a session.
#[derive(Clone, Debug)]
pub struct BufferModel {
    pub(crate) reference: Reference,
    /// Number of the packet that was read last, per sequence.
    pub(crate) last_read: BTreeMap<Key, u32>,
    /// True if a clone took the earlier content, so that it is not missing here.
    pub(crate) begins_anew: bool,
    /// The number of times that clones took its content.
    pub(crate) takes: u64,
}

/// A data source instance.
#[derive(Clone, Debug)]
pub struct Instance {
    pub(crate) producer: usize,
    pub(crate) name: Vec<u8>,
    pub(crate) since_ns: u64,
    pub(crate) was_started: bool,
    pub(crate) start_acked: bool,
    pub(crate) stop_sent_ns: Option<u64>,
    pub(crate) stop_acked: bool,
}

/// A session.
#[derive(Debug)]
pub struct SessionModel {
    pub(crate) consumer: Option<usize>,
    pub(crate) buffers: Vec<u16>,
    pub(crate) config: TraceConfig,
    /// The filter of its packets.
    pub(crate) filter: Option<Filter>,
    pub(crate) enable_call: Option<CallId>,
    /// The call that made it, if it is a clone.
    pub(crate) clone_call: Option<CallId>,
    pub(crate) created_ns: u64,
    pub(crate) created_boottime_ns: u64,
    pub(crate) instances: BTreeMap<u64, Instance>,
    pub(crate) sequence_ids: BTreeMap<Key, u32>,
    pub(crate) keys: BTreeMap<u32, Key>,
    pub(crate) first_seen: BTreeSet<u32>,
    pub(crate) invalid_packets: u64,
    pub(crate) file: Option<FileId>,
    /// True if something happened that ends it.
    pub(crate) may_end: bool,
    pub(crate) has_ended: bool,
    /// True if only the rest of its file is still to be written.
    pub(crate) is_freed: bool,
    pub(crate) configs_read: u32,
    pub(crate) uuids_read: u32,
    pub(crate) last_flush_ns: u64,
    pub(crate) last_clear_ns: u64,
    pub(crate) last_write_ns: u64,
    pub(crate) started_ns: Option<u64>,
    pub(crate) all_started_told: bool,
    /// A write of its file failed.
    pub(crate) file_failed: bool,
    /// True for a clone, into which no producer writes.
    pub(crate) is_clone: bool,
    pub(crate) triggers_read: u64,
    pub(crate) machines_told: MachinesTold,
    pub(crate) detach_key: Option<String>,
    /// The priority that it wants.
    pub(crate) boost: Option<PriorityBoost>,
    /// The change of priority without which it does not begin.
    pub(crate) awaits_change: Option<u64>,
}

/// A flush under way. Its session is 0 if it is unknown.
#[derive(Debug, Default)]
pub struct FlushModel {
    pub(crate) session: u64,
    pub(crate) waiting: BTreeSet<usize>,
    pub(crate) call: Option<CallId>,
    pub(crate) ends_ns: u64,
}

/// The state of all things.
#[derive(Debug, Default)]
pub struct Model {
    pub(crate) producers: BTreeMap<usize, ProducerModel>,
    pub(crate) identities: BTreeMap<u16, Identity>,
    pub(crate) last_producer: u16,
    pub(crate) sessions: BTreeMap<u64, SessionModel>,
    pub(crate) buffers: BTreeMap<u16, BufferModel>,
    pub(crate) flushes: BTreeMap<u64, FlushModel>,
    pub(crate) discarded_chunks: u64,
    pub(crate) discarded_patches: u64,
    /// Chunks that this step overwrites.
    pub(crate) overwritten: u64,
    pub(crate) stamp: (usize, usize, u64),
    /// Handed to the session that this step makes.
    pub(crate) enabling: Option<(CallId, TraceConfig)>,
    pub(crate) hello: Option<Hello>,
    /// The call of CloneSession in this step, and whether it asks to leave out the source's filter.
    pub(crate) cloning: Option<(CallId, bool)>,
    /// Clones under way.
    pub(crate) clones: BTreeMap<u64, PendingClone>,
    /// The flush that this step asks for.
    pub(crate) flushing: Option<(CallId, u32)>,
    /// Calls that may stay without an answer because their session was detached.
    pub(crate) excused: BTreeSet<CallId>,
    /// Sessions whose uncommitted chunks were copied, with the last of them in this step.
    pub(crate) scraped: BTreeSet<u64>,
    /// Sessions of which some memories are still to be scraped.
    pub(crate) scrapes: BTreeMap<u64, ScrapeModel>,
    /// Flushes that all producers have answered, but the service has not.
    pub(crate) completed: Vec<FlushModel>,
    /// Consumers that want to hear that all data sources are started.
    pub(crate) observers: BTreeSet<usize>,
    /// Instances whose session ended, or whose data source was unregistered. Commands for them may
    /// still arrive.
    pub(crate) ghosts: BTreeSet<u64>,
    /// Producers whose memory is being made.
    pub(crate) creating: BTreeSet<usize>,
    /// True if this step sends the commands that waited for memory.
    pub(crate) is_late: bool,
    /// True if this step may report earlier events: it is a call of ObserveEvents, or sends replies
    /// that had to wait.
    pub(crate) tells_of_past: bool,
    /// The priority that was asked for last.
    pub(crate) boost: Option<PriorityBoost>,
    pub(crate) last_change: u64,
    /// The priorities that could not be set.
    pub(crate) priority_failed: bool,
    /// Machines that relays have described.
    pub(crate) machines: BTreeMap<u32, MachineModel>,
    /// Relays that have begun a round.
    pub(crate) pings: BTreeSet<usize>,
    /// Changes of priority that were not answered yet.
    pub(crate) changing: BTreeSet<u64>,
}

/// A scrape that takes several steps.
#[derive(Debug)]
pub struct ScrapeModel {
    /// The producers to scrape, in the order of their ids.
    wanted: Vec<usize>,
    scraped: Vec<usize>,
    steps: u64,
}

/// The properties that a producer declares when it connects.
#[derive(Clone, Copy, Debug)]
pub struct Hello {
    pub(crate) is_scraped: bool,
    pub(crate) honest: Option<u32>,
}

impl World {
    /// Checks everything that happened in the last call of `Service::handle`, in its order, and
    /// then the outputs.
    pub(crate) fn settle(&mut self) {
        let seen = core::mem::take(&mut self.seen);
        self.settle_from(&seen, 0);
    }

    /// Checks the events, except the first `at` entries of `seen`, which a commit explains.
    fn settle_from(&mut self, seen: &[Seen], mut at: usize) {
        let mut outputs = Vec::with_capacity(self.outputs.len());
        while let Some(output) = self.outputs.pop() {
            outputs.push(output);
        }
        self.check_work(&outputs, seen);
        self.see_new_sessions(seen);
        self.see_set_ups(&outputs);
        let mut writes = BTreeMap::new();
        let mut scraping = None;
        while let Some(seen_at) = seen.get(at) {
            at += 1;
            let step = match seen_at {
                Seen::Step(step) => *step,
                Seen::Scraped(client, chunk) => {
                    self.model_scraped(*client as usize, chunk, scraping.expect("a scrape is announced"));
                    continue;
                }
                Seen::ScrapeBegins(_) => continue,
                Seen::Took(..) => panic!("a chunk is taken that no commit named"),
            };
            match step {
                Step::Scrape(session) => {
                    scraping = Some(session);
                    if let Some(session) = session {
                        self.model_scrape(session, &seen[at..]);
                    }
                }
                Step::ScrapeBeginsAgain(session) => {
                    self.model.scrapes.remove(&session);
                }
                Step::ScrapeEnds(session) => self.assert_all_are_scraped(session),
                Step::CloneBegins { .. }
                | Step::CloneTakes { .. }
                | Step::CloneMade { .. }
                | Step::CloneAbandoned(_) => self.model_clone(step),
                // The work of it is checked.
                Step::AsksForNames => {}
                Step::Read { session, end } => self.verify_pass(session, end, &outputs, &mut writes),
            }
        }
        for output in outputs {
            self.carry_out(output);
        }
        self.see_gone_sessions();
        self.check_priority();
        self.check_completed();
        self.model.scraped.clear();
        self.model.overwritten = 0;
        self.model.enabling = None;
        self.model.flushing = None;
        if self.tally.inputs % 64 == 0 {
            self.check_periods();
        }
    }

    /// Allows producers that are set up in this step to write: a session that starts and stops in
    /// one step is scraped.
    fn see_set_ups(&mut self, outputs: &[Output]) {
        for output in outputs {
            let Output::Reply(reply) = output else { continue };
            let is_command = self.calls.get(&reply.call).is_some_and(|pending| pending.kind == CallKind::Commands);
            if !is_command {
                continue;
            }
            let setup = GetAsyncCommandResponseReader::new(reply.body.as_bytes()).setup_data_source();
            let Some(config) = setup.and_then(|setup| setup.config()) else { continue };
            // A set-up that waited for memory may come after its session was freed.
            let session = config.tracing_session_id().and_then(|id| self.model.sessions.get(&id));
            let is_known = session.is_some_and(|session| !session.is_freed);
            let producer = self.model.producers.get_mut(&index_of(reply.call.client)).filter(|_| is_known);
            if let Some(producer) = producer {
                producer.allowed.insert(config.target_buffer().unwrap_or(0) as u16);
            }
        }
    }

    /// Checks the chunks and patches of a commit, and then everything that followed from it.
    pub(crate) fn settle_commit(&mut self, index: usize, args: &[u8]) {
        let seen = core::mem::take(&mut self.seen);
        let mut at = 0;
        let Some(producer) = self.model.producers.get(&index).filter(|producer| producer.has_memory) else {
            return self.settle_from(&seen, 0);
        };
        let (id, is_emulated) = (producer.id, producer.is_emulated);
        let request = CommitDataRequestReader::new(args);
        for entry in request.chunks_to_move() {
            let chunk = match (is_emulated, entry.data()) {
                (false, None) => {
                    let Some(Seen::Took(client, taken)) = seen.get(at) else { panic!("a commit is passed over") };
                    at += 1;
                    assert_eq!(*client, index as u64, "a chunk of somebody else is taken");
                    taken.clone()
                }
                // Also of a producer that shares memory.
                (_, Some(data)) if data.len() <= 65535 => by_value(data, !entry.chunk_incomplete().unwrap_or(false)),
                _ => None,
            };
            let Some(chunk) = chunk else { continue };
            let target = u16::try_from(entry.target_buffer().unwrap_or(0)).unwrap_or(0);
            let is_taken = self.model.copy(index, id, target, &chunk, true);
            trace!(self, "commit ({id}, {}) {} to {target}: {is_taken}", chunk.writer, show(&chunk));
            self.model.discarded_chunks += u64::from(!is_taken);
        }
        for entry in request.chunks_to_patch() {
            let count = entry.patches().count();
            let writer = entry.writer_id().filter(|writer| (1..=32767).contains(writer));
            let target = u16::try_from(entry.target_buffer().unwrap_or(0)).unwrap_or(0);
            let buffer = self.model.buffers.get_mut(&target).filter(|_| count <= 1024);
            let (Some(writer), Some(buffer)) = (writer, buffer) else {
                self.model.discarded_patches += count as u64;
                continue;
            };
            let patches: Vec<(u32, [u8; 4])> = entry
                .patches()
                .filter_map(|patch| {
                    Some((patch.offset().unwrap_or(0), patch.data().unwrap_or_default().try_into().ok()?))
                })
                .collect();
            let malformed = count - patches.len();
            self.model.discarded_patches += malformed as u64;
            let more = entry.has_more_patches().unwrap_or(false) || malformed != 0;
            trace!(
                self,
                "patch ({id}, {writer}) #{} in {target}: {patches:?} more {more}",
                entry.chunk_id().unwrap_or(0)
            );
            buffer.reference.patch((id, writer as u16), entry.chunk_id().unwrap_or(0), &patches, more);
        }
        if let Some(flush) = request.flush_request_id().filter(|&id| id != 0) {
            self.acknowledged(index, flush);
        }
        self.settle_from(&seen, at);
    }

    /// Checks that a session's scrape begins or continues with the right producers.
    fn model_scrape(&mut self, session: u64, later: &[Seen]) {
        let wanted = self.scraped_for(session);
        let of_this_scrape = later.iter().take_while(|seen| !matches!(seen, Seen::Step(_)));
        let scraped = of_this_scrape.filter_map(|seen| match seen {
            Seen::ScrapeBegins(client) => Some(*client as usize),
            _ => None,
        });
        let scraped: Vec<usize> = scraped.collect();
        let unwanted: Vec<&usize> = scraped.iter().filter(|client| !wanted.contains(client)).collect();
        assert!(unwanted.is_empty(), "producers {unwanted:?} are scraped for session {session}");
        let fresh = ScrapeModel { wanted, scraped: Vec::new(), steps: 0 };
        let scrape = self.model.scrapes.entry(session).or_insert(fresh);
        scrape.steps += 1;
        scrape.scraped.extend(scraped);
    }

    /// Checks that each producer that wants it was scraped once for a session. Producers that
    /// connected or left meanwhile may have been scraped.
    fn assert_all_are_scraped(&mut self, session: u64) {
        let Some(ScrapeModel { wanted, scraped, steps }) = self.model.scrapes.remove(&session) else {
            panic!("a scrape of session {session} ends that never began")
        };
        self.tally.long_scrapes += u64::from(steps > 1);
        self.model.scraped.insert(session);
        let now = self.scraped_for(session);
        let each: BTreeSet<usize> = scraped.iter().copied().collect();
        assert_eq!(each.len(), scraped.len(), "producers are scraped twice for session {session}: {scraped:?}");
        let is_missing = |client: &&usize| now.contains(client) && !each.contains(client);
        let missing: Vec<&usize> = wanted.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "producers {missing:?} are not scraped for session {session}");
        if steps == 1 {
            assert_eq!(scraped, wanted, "the order in which producers are scraped for session {session}");
        }
    }

    /// Returns the producers to scrape for a session, in the order of their ids.
    fn scraped_for(&self, session: u64) -> Vec<usize> {
        let buffers = self.model.sessions.get(&session).map(|session| &session.buffers[..]).unwrap_or_default();
        let is_wanted = |producer: &ProducerModel| {
            let writes_there = buffers.iter().any(|buffer| producer.allowed.contains(buffer));
            producer.is_scraped && producer.has_memory && !producer.is_emulated && writes_there
        };
        let wanted = self.model.producers.iter().filter(|(_, producer)| is_wanted(producer));
        let mut wanted: Vec<(u16, usize)> = wanted.map(|(&client, producer)| (producer.id, client)).collect();
        wanted.sort_unstable();
        wanted.into_iter().map(|(_, client)| client).collect()
    }

    fn model_scraped(&mut self, index: usize, chunk: &Incoming, session: Option<u64>) {
        let Some(producer) = self.model.producers.get(&index) else { return };
        // At the end of a producer, writers that were never registered have its only buffer.
        let is_new = session.is_none() && !producer.seen.contains(&chunk.writer);
        let only = producer.allowed.iter().next().filter(|_| is_new && producer.allowed.len() == 1);
        let registered = producer.writers.get(&chunk.writer);
        let Some(&target) = registered.or(only) else { return };
        let is_free_to_choose = registered.is_none();
        let is_wanted = session.is_none_or(|session| {
            self.model.sessions.get(&session).is_some_and(|session| session.buffers.contains(&target))
        });
        if is_wanted {
            let id = producer.id;
            let is_taken = self.model.copy(index, id, target, chunk, is_free_to_choose);
            trace!(self, "scrape ({id}, {}) {} to {target}: {is_taken}", chunk.writer, show(chunk));
        }
    }

    /// Returns the bytes of a pass, from its replies or from the writes to its file.
    pub(crate) fn pass_output<'o>(
        &self,
        session: u64,
        outputs: &'o [Output],
        writes: &mut BTreeMap<FileId, usize>,
    ) -> Vec<&'o [u8]> {
        let Some(model) = self.model.sessions.get(&session) else { return Vec::new() };
        if let Some(file) = model.file {
            let nth = writes.entry(file).or_default();
            let mut mine = outputs.iter().filter_map(|output| match output {
                Output::WriteFile { file: written, bytes } if *written == file => Some(&bytes[..]),
                _ => None,
            });
            let bytes = mine.nth(*nth);
            *nth += 1;
            return bytes.into_iter().collect();
        }
        let of_reader = |call: &CallId| {
            Some(call.client.0 as usize) == model.consumer
                && self.calls.get(call).is_some_and(|pending| pending.kind == CallKind::Read)
        };
        outputs
            .iter()
            .filter_map(|output| match output {
                Output::Reply(reply) if of_reader(&reply.call) => Some(reply.body.as_bytes()),
                _ => None,
            })
            .collect()
    }
}

impl Model {
    /// Removes a session that was freed, except for a file that is not complete.
    pub(crate) fn free(&mut self, id: u64) {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.is_freed) else { return };
        session.is_freed = true;
        self.scrapes.remove(&id);
        (session.consumer, session.detach_key) = (None, None);
        (session.boost, session.awaits_change) = (None, None);
        session.may_end = true;
        self.ghosts.extend(core::mem::take(&mut session.instances).into_keys());
        for buffer in &session.buffers {
            for producer in self.producers.values_mut() {
                // Writers that are registered for other buffers keep their registration.
                if producer.allowed.remove(buffer) {
                    producer.writers.retain(|_, target| target != buffer);
                }
            }
        }
        self.flushes.retain(|_, flush| flush.session != id);
    }

    /// Routes a chunk. Returns false if its producer may not write into the target.
    fn copy(&mut self, client: usize, id: u16, target: u16, chunk: &Incoming, committed: bool) -> bool {
        let Some(producer) = self.producers.get(&client) else { return false };
        let is_writer = chunk.writer != 0;
        let registered = producer.writers.get(&chunk.writer);
        let is_target = match registered {
            Some(registered) => *registered == target,
            None => committed,
        };
        let Some(buffer) = self.buffers.get_mut(&target) else { return false };
        if !is_writer || !is_target || !producer.allowed.contains(&target) {
            return false;
        }
        let before = buffer.reference.left;
        buffer.reference.copy(id, chunk);
        self.overwritten += buffer.reference.left - before;
        true
    }
}

/// Formats a chunk for the event log.
fn show(chunk: &Incoming) -> String {
    let half = if chunk.complete { "" } else { "?" };
    format!("#{}{half} [{} packets, flags {}, {} bytes]", chunk.chunk_id, chunk.count, chunk.flags, chunk.payload.len())
}

fn by_value(data: &[u8], complete: bool) -> Option<Incoming> {
    let (head, payload) = data.split_first_chunk::<8>()?;
    let packets = u16::from_le_bytes([head[6], head[7]]);
    Some(Incoming {
        chunk_id: u32::from_le_bytes([head[0], head[1], head[2], head[3]]),
        writer: u16::from_le_bytes([head[4], head[5]]),
        count: packets & 0x3ff,
        flags: (packets >> 10 & 7) as u8,
        complete,
        payload: payload.to_vec(),
    })
}
