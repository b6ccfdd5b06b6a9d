//! Producers that take part in a session, and the entries of its config that want them
//! (`docs/spec/service.md §6`).

use std::sync::Arc;

use esatto_map::{LargeMap, Set};
use esatto_schema::TraceConfig;

use super::producer_match::{is_on_wanted_machine, passes_name_filters};
use super::{Session, config_check};
use crate::api::SystemFacts;
use crate::client_text::{MAX_NAME_BYTES, Name};
use crate::context::Context;
use crate::fair_share::{Bounds, Pool};
use crate::ids::{BufferId, ProducerId};
use crate::name_pattern::NamePattern;
use crate::producer::Producer;

/// Instances that a producer may always have in a session.
const INSTANCES_PER_PRODUCER: u64 = 16;

/// Instances that all producers together may have in a session beyond that, so that registrations
/// cannot multiply a config without end.
///
/// A user gets at most half of what is left, and a producer at most half of what is left for its
/// user. The log and the trace name the refused data sources, and the statistics count them.
const INSTANCES_OF_ALL: u64 = 16_384;

pub(crate) const INSTANCES: Bounds = Bounds { each: INSTANCES_PER_PRODUCER, pool: INSTANCES_OF_ALL };

/// A producer that a session has asked for data, or could have asked.
#[derive(Debug)]
pub(crate) struct Member {
    /// Number of its instances.
    pub(crate) instances: u64,
    /// Entries of the config whose filters were applied to this producer.
    is_known: Entries,
    /// Entries that want this producer.
    is_wanted: Entries,
    /// The log says that it gets no more instances.
    pub(crate) is_refused: bool,
}

impl Member {
    fn new(entries: usize) -> Self {
        Self { instances: 0, is_known: Entries::new(entries), is_wanted: Entries::new(entries), is_refused: false }
    }

    /// Forgets the results of the filters, because they have changed.
    pub(crate) fn forget_filters(&mut self) {
        self.is_known.clear();
    }
}

/// A set of entries of a config, with a bit for each.
#[derive(Clone, Debug)]
pub(crate) struct Entries(Box<[u64]>);

impl Entries {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)].into())
    }

    fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    fn set(&mut self, at: usize, value: bool) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word = *word & !(1 << (at % 64)) | u64::from(value) << (at % 64);
        }
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Returns the entries that are in the other set, or those that are not.
    fn filtered(&self, other: &Self, wanted: bool) -> Vec<usize> {
        let mut found = Vec::new();
        for (at, (&mine, &theirs)) in self.0.iter().zip(&other.0).enumerate() {
            let mut left = mine & if wanted { theirs } else { !theirs };
            while left != 0 {
                found.push(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
        found
    }

    /// Returns the entries of a config by the names of their data sources.
    pub(crate) fn by_name(config: &TraceConfig) -> LargeMap<Name, Self> {
        let mut by_name: LargeMap<Name, Self> = LargeMap::new();
        let sources = &config.data_sources;
        for (entry, source) in sources.iter().enumerate() {
            let Some(name) = source.config.as_ref().and_then(|config| config.name.as_deref()) else { continue };
            // No data source has a longer name.
            if name.is_empty() || name.len() > MAX_NAME_BYTES {
                continue;
            }
            match by_name.get_mut(name) {
                Some(entries) => entries.set(entry, true),
                None => {
                    let mut entries = Self::new(sources.len());
                    entries.set(entry, true);
                    by_name.insert(name.into(), entries);
                }
            }
        }
        by_name
    }
}

/// The producers that take part in a session.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// Producers that offer a data source of the config. Only they were ever told to write to the
    /// buffers of the session.
    pub(crate) by_producer: LargeMap<ProducerId, Member>,
    /// Other machines whose programs were asked for data, also those that have disconnected. At
    /// most `MAX_MACHINES`.
    pub(crate) machines: Set<u32>,
    /// How often a relay of one of them disconnected while the session recorded.
    pub(crate) relay_ends: u64,
    /// Data sources of machines whose producers disconnected while they recorded.
    pub(crate) ended_sources: u64,
    /// Producers that disconnected before they had started a data source for the session.
    pub(crate) unreached: u64,
    /// Instances of all members.
    pub(crate) pool: Pool,
}

/// The data source entries of a config, in the forms that the service needs.
#[derive(Debug, Default)]
pub(crate) struct ConfigEntries {
    /// The config of each entry as it came, with fields that the schema does not know.
    pub(super) configs: Vec<Vec<u8>>,
    /// The compiled `producer_name_regex_filter` of each entry.
    pub(crate) patterns: Vec<Vec<NamePattern>>,
    /// Entries by the name of their data source.
    by_name: LargeMap<Name, Entries>,
    /// Configs of instances by entry, made when they are needed.
    pub(super) instance_configs: LargeMap<usize, Arc<[u8]>>,
}

impl ConfigEntries {
    pub(crate) fn new(config: &TraceConfig, configs: Vec<Vec<u8>>, patterns: Vec<Vec<NamePattern>>) -> Self {
        Self { configs, patterns, by_name: Entries::by_name(config), instance_configs: LargeMap::new() }
    }
}

impl Session {
    /// Tells whether an entry's filters accept a producer. Applies them once for each pair.
    pub(crate) fn wants(
        &mut self,
        entry: usize,
        producer: &Producer,
        host: &SystemFacts,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(source) = self.config.data_sources.get(entry) else { return false };
        let entries = self.config.data_sources.len();
        let member = self.members.by_producer.get_or_insert_with(producer.id, || Member::new(entries));
        if !member.is_known.contains(entry) {
            let patterns = self.entries.patterns.get(entry).map_or(&[][..], Vec::as_slice);
            cx.charge(source.machine_name_filter.len() + source.producer_name_filter.len() + patterns.len());
            let all_machines = self.config.trace_all_machines.unwrap_or(false);
            let is_wanted = is_on_wanted_machine(source, all_machines, producer, host)
                && passes_name_filters(source, (self.id, patterns), producer, cx);
            member.is_known.set(entry, true);
            member.is_wanted.set(entry, is_wanted);
        }
        member.is_wanted.contains(entry)
    }

    /// Returns the entries of a data source that accept a producer.
    pub(crate) fn wanted_entries(
        &mut self,
        name: &[u8],
        producer: &Producer,
        host: &SystemFacts,
        cx: &mut Context<'_>,
    ) -> Vec<usize> {
        let Some(named) = self.entries.by_name.get(name).cloned() else { return Vec::new() };
        let entries = self.config.data_sources.len();
        let member = self.members.by_producer.get_or_insert_with(producer.id, || Member::new(entries));
        for entry in named.filtered(&member.is_known, false) {
            self.wants(entry, producer, host, cx);
        }
        let wanted = self.members.by_producer.get(&producer.id).map(|member| named.filtered(&member.is_wanted, true));
        cx.charge(named.0.len());
        wanted.unwrap_or_default()
    }

    /// Returns the buffer that an entry's data go to.
    pub(crate) fn target_of(&self, entry: usize) -> Option<BufferId> {
        let source = self.config.data_sources.get(entry)?;
        let index = config_check::target_buffer(&self.config, source.config.as_ref()?)?;
        self.buffers.get(index).copied()
    }
}
