//! Data sources that producers offer (`docs/spec/service.md §3`).

use std::sync::Arc;

use esatto_map::{LargeMap, LargeSet};
use esatto_schema::DataSourceDescriptorReader;

use super::{Producer, Producers};
use crate::api::Peer;
use crate::client_text::{MAX_NAME_BYTES, Name, quoted};
use crate::context::Context;
use crate::fair_share::{Bounds, Pool};
use crate::frame_limits::MAX_DESCRIPTOR_BYTES;
use crate::ids::ProducerId;

/// Data sources that one producer may register. The service does not register more, and the log
/// says so.
const MAX_DATA_SOURCES_PER_PRODUCER: usize = 1024;

/// Bytes of descriptors that a producer may always register: more than the categories of any
/// program.
const DESCRIPTOR_BYTES_PER_PRODUCER: u64 = 16 * 1024;

/// Bytes of descriptors that all producers together may register beyond that.
///
/// A user gets at most half of what is left, and a producer at most half of what is left for its
/// user. The service does not register what exceeds this, and the log says so.
const DESCRIPTOR_BYTES_OF_ALL: u64 = 64 * 1024 * 1024;

const DESCRIPTOR_BYTES: Bounds = Bounds { each: DESCRIPTOR_BYTES_PER_PRODUCER, pool: DESCRIPTOR_BYTES_OF_ALL };

/// Bytes that a registration is charged beside its descriptor.
const REGISTRATION_BYTES: u64 = 256;

/// Number of a registration, never reused, so that the order of numbers is the order of
/// registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RegistrationId(pub(crate) u64);

/// A data source that a producer offers.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) producer: ProducerId,
    pub(crate) name: Name,
    /// The producer's own number for it, 0 = none.
    id: u64,
    /// The descriptor as it came.
    pub(crate) descriptor: Vec<u8>,
}

/// All registrations.
#[derive(Debug, Default)]
pub(crate) struct DataSources {
    /// In the order of registration.
    by_number: LargeMap<RegistrationId, Registration>,
    by_name: LargeMap<Name, LargeSet<(ProducerId, RegistrationId)>>,
    by_producer: LargeSet<(ProducerId, RegistrationId)>,
    /// Registrations with a number of their producer.
    by_id: LargeMap<(ProducerId, u64), RegistrationId>,
    /// Bytes of descriptors that all producers have registered.
    descriptor_bytes: Pool,
    last: u64,
    /// See [`Service::reserve_data_sources`](crate::Service::reserve_data_sources).
    pub(crate) reserved: Reserved,
}

/// Data sources that one process alone may offer on the service's machine.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    pub(crate) names: Vec<Vec<u8>>,
    pub(crate) process: i32,
}

impl Reserved {
    fn is_free_to(&self, peer: &Peer, name: &[u8]) -> bool {
        let is_other = peer.machine_id == 0 && peer.pid.is_some_and(|pid| pid != self.process);
        !is_other || !self.names.iter().any(|reserved| reserved == name)
    }
}

/// The smallest number.
pub(crate) const FIRST: RegistrationId = RegistrationId(0);
const LAST: RegistrationId = RegistrationId(u64::MAX);

impl DataSources {
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Tells whether no descriptor is charged.
    pub(crate) fn are_uncharged(&self) -> bool {
        self.descriptor_bytes.is_empty()
    }

    fn get(&self, id: RegistrationId) -> Option<&Registration> {
        self.by_number.get(&id)
    }

    /// Iterates over the registrations from this number on.
    pub(crate) fn iter_from(&self, id: RegistrationId) -> impl Iterator<Item = (RegistrationId, &Registration)> {
        self.by_number.range(id..).map(|(&id, registration)| (id, registration))
    }

    /// Iterates over the registrations of a producer.
    pub(crate) fn of_producer(&self, producer: ProducerId) -> impl Iterator<Item = &Registration> {
        let numbers = self.by_producer.range((producer, FIRST)..=(producer, LAST));
        numbers.filter_map(|(_, number)| self.by_number.get(number))
    }

    /// Returns the first registration of a name, from this producer and this number on.
    pub(crate) fn next_named(
        &self,
        name: &[u8],
        from: (ProducerId, RegistrationId),
    ) -> Option<(ProducerId, RegistrationId)> {
        self.by_name.get(name)?.range(from..).next().copied()
    }

    /// Returns the shared copy of a name, if there is one.
    pub(crate) fn kept_name(&self, name: &[u8]) -> Option<Name> {
        self.by_name.get_key_value(name).map(|(name, _)| Arc::clone(name))
    }

    /// Returns the first registration of a producer with this name.
    pub(crate) fn first_of(&self, producer: ProducerId, name: &[u8]) -> Option<RegistrationId> {
        let (of, registration) = self.next_named(name, (producer, FIRST))?;
        (of == producer).then_some(registration)
    }

    fn with_id(&self, producer: ProducerId, id: u64) -> Option<RegistrationId> {
        self.by_id.get(&(producer, id)).copied()
    }

    fn add(&mut self, registration: Registration) -> RegistrationId {
        self.last += 1;
        let number = RegistrationId(self.last);
        let (producer, name) = (registration.producer, Arc::clone(&registration.name));
        self.by_name.get_or_default(name).insert((producer, number));
        self.by_producer.insert((producer, number));
        if registration.id != 0 {
            self.by_id.insert((producer, registration.id), number);
        }
        self.by_number.insert(number, registration);
        number
    }

    fn remove(&mut self, number: RegistrationId) -> Option<Registration> {
        let removed = self.by_number.remove(&number)?;
        let producer = removed.producer;
        self.by_producer.remove(&(producer, number));
        if removed.id != 0 {
            self.by_id.remove(&(producer, removed.id));
        }
        if let Some(of_name) = self.by_name.get_mut(&removed.name) {
            of_name.remove(&(producer, number));
            if of_name.is_empty() {
                self.by_name.remove(&removed.name);
            }
        }
        Some(removed)
    }

    /// Removes the registrations of a producer, and returns their number.
    fn remove_all_of(&mut self, producer: ProducerId) -> usize {
        let of_producer: Vec<RegistrationId> =
            self.by_producer.range((producer, FIRST)..=(producer, LAST)).map(|&(_, number)| number).collect();
        for &number in &of_producer {
            self.remove(number);
        }
        of_producer.len()
    }
}

impl Producers {
    /// Registers a data source, and returns its number. If that is not possible, the log says so.
    pub(crate) fn register_data_source(
        &mut self,
        producer_id: ProducerId,
        descriptor: DataSourceDescriptorReader<'_>,
        cx: &mut Context<'_>,
    ) -> Option<RegistrationId> {
        let name = descriptor.name().unwrap_or_default();
        let id = descriptor.id().unwrap_or(0);
        let bytes = descriptor.as_bytes();
        let Self { by_id, data_sources, .. } = self;
        let producer = by_id.get_mut(&producer_id)?;
        producer.is_idle = false;
        if name.is_empty() {
            return None;
        }
        cx.charge(1);
        cx.charge_bytes(bytes.len());
        if let Err(why) = check_descriptor(name, bytes) {
            cx.warn(format!("producer {}: a data source is not registered: {why}", producer.display_name()));
            return None;
        }
        if !data_sources.reserved.is_free_to(&producer.peer, name) {
            cx.debug(format!(
                "producer {}: {} is not registered: process {} offers it",
                producer.display_name(),
                quoted(name),
                data_sources.reserved.process
            ));
            return None;
        }
        if id != 0 && data_sources.with_id(producer_id, id).is_some() {
            cx.warn(format!("producer {}: data source id {id} is registered twice", producer.display_name()));
            return None;
        }
        let size = bytes.len() as u64 + REGISTRATION_BYTES;
        if producer.registrations >= MAX_DATA_SOURCES_PER_PRODUCER
            || !data_sources.descriptor_bytes.take(DESCRIPTOR_BYTES, &producer.peer, producer.descriptor_bytes, size)
        {
            cx.warn(format!(
                "producer {} registers too many data sources: its share is {} with {} bytes of descriptors",
                producer.display_name(),
                producer.registrations,
                producer.descriptor_bytes
            ));
            return None;
        }
        producer.registrations += 1;
        producer.descriptor_bytes += size;
        let name = data_sources.kept_name(name).unwrap_or_else(|| name.into());
        Some(data_sources.add(Registration { producer: producer_id, name, id, descriptor: bytes.to_vec() }))
    }

    /// Returns a registration, and its producer.
    pub(crate) fn registration_mut(&mut self, id: RegistrationId) -> Option<(&Registration, &mut Producer)> {
        let registration = self.data_sources.get(id)?;
        Some((registration, self.by_id.get_mut(&registration.producer)?))
    }

    /// Replaces the descriptor of a data source.
    pub(crate) fn update_data_source(
        &mut self,
        producer_id: ProducerId,
        descriptor: DataSourceDescriptorReader<'_>,
        cx: &mut Context<'_>,
    ) {
        let name = descriptor.name().unwrap_or_default();
        let id = descriptor.id().unwrap_or(0);
        let bytes = descriptor.as_bytes();
        let Self { by_id, data_sources, .. } = self;
        let Some(producer) = by_id.get_mut(&producer_id) else { return };
        cx.charge(1);
        cx.charge_bytes(bytes.len());
        let found = if id == 0 { None } else { data_sources.with_id(producer_id, id) };
        let found = found.and_then(|found| data_sources.by_number.get_mut(&found));
        let Some(registration) = found.filter(|registration| *registration.name == *name) else {
            cx.warn(format!("producer {} updates a data source it did not register", producer.display_name()));
            return;
        };
        if let Err(why) = check_descriptor(name, bytes) {
            return cx.warn(format!("producer {}: a data source is not updated: {why}", producer.display_name()));
        }
        let (before, after) = (registration.descriptor.len() as u64, bytes.len() as u64);
        let (peer, pool) = (&producer.peer, &mut data_sources.descriptor_bytes);
        if after > before {
            if !pool.take(DESCRIPTOR_BYTES, peer, producer.descriptor_bytes, after - before) {
                cx.warn(format!(
                    "producer {}: a data source is not updated: the descriptors exceed the producer's share",
                    producer.display_name()
                ));
                return;
            }
        } else {
            pool.give_back(DESCRIPTOR_BYTES, peer, producer.descriptor_bytes, before - after);
        }
        producer.descriptor_bytes = producer.descriptor_bytes - before + after;
        registration.descriptor = bytes.to_vec();
    }

    /// Removes a registration.
    pub(crate) fn unregister(&mut self, registration: RegistrationId) {
        let Self { by_id, data_sources, .. } = self;
        let Some(removed) = data_sources.remove(registration) else { return };
        if let Some(producer) = by_id.get_mut(&removed.producer) {
            let size = removed.descriptor.len() as u64 + REGISTRATION_BYTES;
            data_sources.descriptor_bytes.give_back(DESCRIPTOR_BYTES, &producer.peer, producer.descriptor_bytes, size);
            producer.descriptor_bytes -= size;
            producer.registrations -= 1;
        }
    }

    /// Removes all registrations of a producer.
    pub(super) fn unregister_all(&mut self, producer_id: ProducerId, cx: &mut Context<'_>) {
        let Self { by_id, data_sources, .. } = self;
        cx.charge(data_sources.remove_all_of(producer_id));
        if let Some(producer) = by_id.get_mut(&producer_id) {
            let size = core::mem::take(&mut producer.descriptor_bytes);
            producer.registrations = 0;
            data_sources.descriptor_bytes.give_back(DESCRIPTOR_BYTES, &producer.peer, size, size);
        }
    }
}

/// Checks whether a data source can be registered.
///
/// # Errors
///
/// The reason for the log.
fn check_descriptor(name: &[u8], bytes: &[u8]) -> Result<(), String> {
    if name.len() > MAX_NAME_BYTES {
        return Err(format!("its name has {} bytes, at most {MAX_NAME_BYTES} are possible", name.len()));
    }
    if bytes.len() > MAX_DESCRIPTOR_BYTES {
        return Err(format!(
            "its descriptor has {} bytes, at most {MAX_DESCRIPTOR_BYTES} fit into a reply to QueryServiceState",
            bytes.len()
        ));
    }
    Ok(())
}
