//! Programs that are connected to a service, and what they offer (`docs/spec/service.md` §24).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use core::time::Duration;
use std::time::Instant;

use esatto_ipc::blocking_client::Reply;
use esatto_ipc::{BlockingClient, Error as IpcError};
use esatto_ports::consumer_port::method::QueryServiceState;
use esatto_protozero::Fields;
use esatto_schema::tracing_service_state::{DataSourceReader, ProducerReader};
use esatto_schema::{
    DEPARTED_FIELD, LOCKDOWN_FIELD, QueryServiceStateRequest, QueryServiceStateResponseReader,
    TracingServiceStateReader, UNREACHED, WITHOUT_DATA, departed, lockdown,
};

use crate::failure::Failure;
use crate::service_connection::lost;

/// Longest time until the service has sent its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of programs, data sources and categories that are kept.
const MAX_KEPT_BYTES: usize = 64 << 20;
/// Bytes that a program may always take, so that another one cannot hide it.
const KEPT_BYTES_PER_PROGRAM: usize = 16 << 10;
/// Programs that are kept. A service of ours has fewer connections.
const MAX_PROGRAMS: usize = 10_000;
/// Bytes of one answer. A service of ours sends at most 200 MiB.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Bytes of memory that each kept entry needs beside its texts.
const ENTRY_BYTES: usize = 128;

/// Programs of a service. It collects the answers to several queries, so it also holds programs
/// that have disconnected between them.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    pub(crate) programs: Vec<Program>,
    /// Indexes of those in the last answer.
    connected: HashSet<usize>,
    /// Number of programs, data sources and categories of the last answer that are not kept.
    pub(crate) omitted: usize,
    /// The service has answered.
    pub(crate) is_known: bool,
    /// The service is Esatto's.
    pub(crate) is_esattos: bool,
    /// The service also tells which programs have disconnected since the session began.
    pub(crate) tells_departed: bool,
    /// Version of the service, as it tells it.
    pub(crate) service_version: String,
    /// Lockdown mode of the service, at the last answer.
    pub(crate) lockdown: Option<Lockdown>,
    /// Index of each program by its number, its pid and its name.
    indexes: HashMap<(i32, i32, String), usize>,
    kept_bytes: usize,
    /// The last answer, as far as it has arrived.
    answer: Vec<u8>,
}

/// A producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) pid: i32,
    pub(crate) uid: i32,
    pub(crate) sdk: String,
    /// Name of its machine, or its id; empty if it is that of the service.
    pub(crate) machine: String,
    /// It was not connected at the last answer.
    pub(crate) has_ended: bool,
    /// It has ended, and the session has nothing of it.
    pub(crate) missed: Option<Missed>,
    pub(crate) sources: Vec<Source>,
    /// Index of each data source by its name.
    indexes: HashMap<String, usize>,
    kept_bytes: usize,
}

/// Reason why a session has nothing of a program that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// It had not yet started for the session.
    Unreached,
    /// It had started, but gave no data.
    WithoutData,
}

/// A data source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) categories: Vec<Category>,
    /// Names of the categories.
    names: HashSet<String>,
}

/// A category of track events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Category {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
}

impl Programs {
    /// Asks the service.
    ///
    /// # Errors
    ///
    /// The service is too old for the query, or does not answer it in time.
    pub(crate) fn query(client: &mut BlockingClient) -> Result<Self, Failure> {
        let mut programs = Self::default();
        let request = client.send_message::<QueryServiceState>(&QueryServiceStateRequest::default(), None);
        let request = request.map_err(|error| match error {
            IpcError::NoSuchMethod(_) => {
                Failure::new("cannot list the programs of the service", "it is too old for that")
            }
            error => lost(error),
        })?;
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        while !programs.is_known {
            let left = deadline.saturating_duration_since(Instant::now());
            let reply = match client.wait_reply(request, Some(left)) {
                Ok(reply) if !left.is_zero() => reply,
                Ok(_) | Err(IpcError::Timeout) => {
                    let why = format!("it did not answer within {} s", ANSWER_TIMEOUT.as_secs());
                    return Err(Failure::new("cannot list the programs of the service", why));
                }
                Err(error) => return Err(lost(error)),
            };
            programs.add_part(&reply)?;
        }
        Ok(programs)
    }

    /// Takes a part of an answer to QueryServiceState.
    ///
    /// # Errors
    ///
    /// The service rejected the query, or its answer is too long or malformed.
    pub(crate) fn add_part(&mut self, reply: &Reply) -> Result<(), Failure> {
        let failed = |why: &str| Failure::new("cannot list the programs of the service", why);
        if !reply.success {
            return Err(failed("the service refused the query"));
        }
        if let Some(state) = QueryServiceStateResponseReader::new(&reply.body).service_state() {
            self.answer.extend_from_slice(state.as_bytes());
        }
        if self.answer.len() > MAX_ANSWER_BYTES {
            self.answer = Vec::new();
            return Err(failed("its answer has more than 256 MiB"));
        }
        if reply.has_more {
            return Ok(());
        }
        let answer = core::mem::take(&mut self.answer);
        Fields::new(&answer).check().map_err(|_| failed("its answer is malformed"))?;
        self.add(&answer);
        Ok(())
    }

    fn add(&mut self, state: &[u8]) {
        self.lockdown = Lockdown::of(state);
        let encoded = state;
        let state = TracingServiceStateReader::new(encoded);
        (self.is_known, self.omitted) = (true, 0);
        self.is_esattos = state.tracing_service_version().is_some_and(|version| version.starts_with(b"Esatto"));
        self.service_version = text(state.tracing_service_version());
        // A service may use the number of a producer again, so its entries follow it.
        let mut at = HashMap::new();
        for producer in state.producers() {
            let id = producer.id().unwrap_or(0);
            if let Some(index) = self.place(id, Program::of(&producer)) {
                at.entry(id).or_insert(index);
            }
        }
        self.connected = at.values().copied().collect();
        for source in state.data_sources() {
            let index = at.get(&source.producer_id().unwrap_or(0));
            if let Some(program) = index.and_then(|&index| self.programs.get_mut(index)) {
                self.omitted += program.offer(&source, &mut self.kept_bytes);
            }
        }
        for (index, program) in self.programs.iter_mut().enumerate() {
            program.has_ended = !self.connected.contains(&index);
        }
        self.add_departed(encoded);
    }

    /// Takes the programs that have disconnected since the session began.
    fn add_departed(&mut self, state: &[u8]) {
        let mut current = None;
        for told in Fields::new(state).filter(|field| field.id == DEPARTED_FIELD) {
            self.tells_departed = true;
            for field in Fields::new(told.as_bytes()) {
                match field.id {
                    departed::PRODUCER => {
                        let producer = ProducerReader::new(field.as_bytes());
                        current = self.place(producer.id().unwrap_or(0), Program::of(&producer));
                    }
                    departed::DATA_SOURCE => {
                        let source = DataSourceReader::new(field.as_bytes());
                        if let Some(program) = current.and_then(|index| self.programs.get_mut(index)) {
                            self.omitted += program.offer(&source, &mut self.kept_bytes);
                        }
                    }
                    departed::MISSED => {
                        if let Some(program) = current.and_then(|index| self.programs.get_mut(index)) {
                            program.missed = match field.as_u64() {
                                UNREACHED => Some(Missed::Unreached),
                                WITHOUT_DATA => Some(Missed::WithoutData),
                                _ => None,
                            };
                        }
                    }
                    departed::FORGOTTEN => {
                        self.omitted =
                            self.omitted.saturating_add(usize::try_from(field.as_u64()).unwrap_or(usize::MAX));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the index of a program, or `None` if there is no room for it.
    fn place(&mut self, id: i32, mut program: Program) -> Option<usize> {
        match self.indexes.entry((id, program.pid, program.name.clone())) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(vacant) => {
                let bytes = 2 * program.name.len() + program.sdk.len() + program.machine.len();
                if self.programs.len() == MAX_PROGRAMS || !program.keep(bytes, &mut self.kept_bytes) {
                    self.omitted += 1;
                    return None;
                }
                self.programs.push(program);
                Some(*vacant.insert(self.programs.len() - 1))
            }
        }
    }

    /// Makes an answer for tests.
    #[cfg(test)]
    pub(crate) fn of(programs: Vec<Program>) -> Self {
        Self { connected: (0..programs.len()).collect(), programs, is_known: true, ..Self::default() }
    }

    /// Returns the programs of the last answer.
    pub(crate) fn connected(&self) -> impl Iterator<Item = &Program> {
        self.connected.iter().filter_map(|&index| self.programs.get(index))
    }

    /// Returns the names of all data sources, sorted.
    pub(crate) fn source_names(&self) -> Vec<&str> {
        sorted(self.programs.iter().flat_map(|program| &program.sources).map(|source| source.name.as_str()))
    }
}

/// Lockdown mode: the service serves only programs of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lockdown {
    /// The user whose programs are served.
    pub(crate) uid: i32,
    pub(crate) set_by_uid: i32,
    /// Connections of programs that were refused.
    pub(crate) refused: u64,
}

impl Lockdown {
    fn of(state: &[u8]) -> Option<Self> {
        let told = Fields::new(state).filter(|field| field.id == LOCKDOWN_FIELD).last()?;
        let mut mode = Self::default();
        for field in Fields::new(told.as_bytes()) {
            match field.id {
                lockdown::UID => mode.uid = field.as_i32(),
                lockdown::SET_BY_UID => mode.set_by_uid = field.as_i32(),
                lockdown::REFUSED => mode.refused = field.as_u64(),
                _ => {}
            }
        }
        Some(mode)
    }

    /// Describes the mode and what it left out of `programs`.
    pub(crate) fn in_words(&self, programs: &Programs) -> String {
        let Self { uid, set_by_uid, refused } = *self;
        let left_out = programs.programs.iter().filter(|program| program.uid != uid).count();
        let left_out = if left_out == 0 { String::new() } else { format!(" Left out of those connected: {left_out}.") };
        format!(
            "Lockdown mode is on, set by uid {set_by_uid}: the service records only programs of uid {uid}, and has \
             refused {refused} connection{} of other programs.{left_out} To lift it, record a config with \
             `lockdown_mode: LOCKDOWN_CLEAR`, as root or uid {uid}.",
            if refused == 1 { "" } else { "s" }
        )
    }
}

impl Program {
    fn of(producer: &ProducerReader<'_>) -> Self {
        Self {
            name: text(producer.name()),
            pid: producer.pid().unwrap_or(0),
            uid: producer.uid().unwrap_or(0),
            sdk: text(producer.sdk_version()),
            machine: machine(producer),
            // Those that are connected say so at each answer.
            has_ended: true,
            ..Self::default()
        }
    }

    /// Adds a data source. Returns the number of entries for which there is no room.
    fn offer(&mut self, source: &DataSourceReader<'_>, kept_bytes: &mut usize) -> usize {
        let Some(descriptor) = source.ds_descriptor() else { return 0 };
        let name = text(descriptor.name());
        let index = match self.indexes.get(&name).copied() {
            Some(index) => index,
            None if !self.keep(2 * name.len(), kept_bytes) => return 1,
            None => {
                self.indexes.insert(name.clone(), self.sources.len());
                self.sources.push(Source { name, ..Source::default() });
                self.sources.len() - 1
            }
        };
        let categories = descriptor.track_event_descriptor();
        let mut omitted = 0;
        for category in categories.iter().flat_map(|categories| categories.available_categories()) {
            let name = text(category.name());
            if self.sources[index].names.contains(&name) {
                continue;
            }
            let description = category.description().unwrap_or_default();
            let tags = category.tags().map(|tag| tag.len() + ENTRY_BYTES / 4).sum::<usize>();
            if !self.keep(2 * name.len() + description.len() + tags, kept_bytes) {
                omitted += 1;
                continue;
            }
            let source = &mut self.sources[index];
            source.names.insert(name.clone());
            let tags = category.tags().map(|tag| text(Some(tag))).collect();
            source.categories.push(Category { name, description: text(Some(description)), tags });
        }
        omitted
    }

    /// Charges an entry of this program. Returns false if there is no room for it.
    fn keep(&mut self, text_bytes: usize, all: &mut usize) -> bool {
        let bytes = text_bytes + ENTRY_BYTES;
        if *all + bytes > MAX_KEPT_BYTES && self.kept_bytes + bytes > KEPT_BYTES_PER_PROGRAM {
            return false;
        }
        *all += bytes;
        self.kept_bytes += bytes;
        true
    }

    /// Returns the data source of this name.
    pub(crate) fn source(&self, name: &str) -> Option<&Source> {
        self.indexes.get(name).map(|&index| &self.sources[index])
    }

    /// Makes a program for tests.
    #[cfg(test)]
    pub(crate) fn named(name: &str, sources: Vec<Source>) -> Self {
        let indexes = sources.iter().enumerate().map(|(index, source)| (source.name.clone(), index)).collect();
        Self { name: name.to_owned(), sources, indexes, ..Self::default() }
    }
}

impl Source {
    /// Makes a data source for tests.
    #[cfg(test)]
    pub(crate) fn named(name: &str, categories: Vec<Category>) -> Self {
        Self { name: name.to_owned(), categories, ..Self::default() }
    }
}

/// Returns the names in order, each once.
pub(crate) fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the name of a program's machine, or its id if it has no name.
fn machine(producer: &ProducerReader<'_>) -> String {
    match (text(producer.machine_name()), producer.machine_id().unwrap_or(0)) {
        (name, id) if id != 0 && name.is_empty() => format!("0x{id:08x}"),
        (name, _) => name,
    }
}

pub(crate) fn text(text: Option<&[u8]>) -> String {
    text.map_or_else(String::new, |text| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_protozero::Owned as _;
    use esatto_schema::tracing_service_state::{DataSource, Producer};
    use esatto_schema::{DataSourceDescriptor, TracingServiceState, TrackEventCategory, TrackEventDescriptor};

    fn state(program: &str, id: i32, categories: &[&str]) -> Vec<u8> {
        let category = |name: &&str| TrackEventCategory { name: Some((*name).into()), ..TrackEventCategory::default() };
        let events = TrackEventDescriptor {
            available_categories: categories.iter().map(category).collect(),
            ..TrackEventDescriptor::default()
        };
        let descriptor = DataSourceDescriptor {
            name: Some("track_event".into()),
            track_event_descriptor: Some(events),
            ..DataSourceDescriptor::default()
        };
        TracingServiceState {
            producers: vec![Producer { id: Some(id), name: Some(program.into()), ..Producer::default() }],
            data_sources: vec![DataSource {
                ds_descriptor: Some(descriptor.into()),
                producer_id: Some(id),
                ..DataSource::default()
            }],
            ..TracingServiceState::default()
        }
        .encode()
    }

    #[test]
    fn programs_of_several_answers_are_collected() {
        let mut programs = Programs::default();
        programs.add(&state("a", 1, &["x"]));
        programs.add(&state("a", 1, &["x", "y"]));
        programs.add(&state("b", 2, &["z"]));
        assert_eq!(programs.programs.len(), 2);
        let names = |at: usize| {
            let categories = &programs.programs[at].source("track_event").unwrap().categories;
            categories.iter().map(|category| category.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!((names(0), names(1)), (vec!["x".to_owned(), "y".to_owned()], vec!["z".to_owned()]));
        assert_eq!(programs.source_names(), ["track_event"]);
    }

    #[test]
    fn very_many_categories_are_counted_and_hide_no_other_program() {
        let names: Vec<String> = (0..600_000).map(|number| format!("c{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let states = [state("greedy", 1, &names), state("other", 2, &["x"])];
        let mut programs = Programs::default();
        // To compare each name with all others would take hours.
        for _ in 0..2 {
            programs.add(&states.concat());
            let kept: Vec<usize> =
                programs.programs.iter().map(|program| program.sources[0].categories.len()).collect();
            assert!(kept[0] > 100_000 && kept[0] * ENTRY_BYTES < MAX_KEPT_BYTES && kept[1] == 1, "{kept:?}");
            assert_eq!(programs.omitted, names.len() - kept[0]);
        }
    }

    #[test]
    fn programs_that_come_and_go_do_not_pile_up() {
        let mut programs = Programs::default();
        for id in 0..MAX_PROGRAMS + 10 {
            programs.add(&state("a", i32::try_from(id).unwrap(), &[]));
        }
        assert_eq!((programs.programs.len(), programs.omitted), (MAX_PROGRAMS, 1));
    }

    #[test]
    fn a_service_that_refuses_or_stammers_is_named() {
        let mut programs = Programs::default();
        let request_id = esatto_ipc::RequestId(1);
        let reply = |success, has_more, body| Reply { request_id, method: "x", success, has_more, body };
        let why = |result: Result<(), Failure>| result.unwrap_err().to_string();
        assert!(why(programs.add_part(&reply(false, false, Vec::new()))).contains("refused"));
        // Field 1 of the answer is a state that ends within a field.
        assert!(why(programs.add_part(&reply(true, false, vec![0x0a, 2, 0x0a, 9]))).contains("malformed"));
        assert!(!programs.is_known);
        let part = [&[0x0a, 0x80, 0x80, 0x80, 0x08][..], &vec![0; 16 << 20]].concat();
        let error = (0..17).find_map(|_| programs.add_part(&reply(true, true, part.clone())).err());
        assert!(error.unwrap().to_string().contains("256 MiB"));
    }
}
