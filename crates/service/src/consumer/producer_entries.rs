//! Entries of `TracingServiceState` about producers and data sources (`docs/spec/service.md §24`).

use esatto_schema::tracing_service_state::Producer as ProducerState;

use crate::encode::{put, put_message};
use crate::producer::Producer;
use crate::producer::data_sources::Registration;

/// Encodes a message field.
pub(crate) fn field(id: u64, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + 8);
    put_message(&mut bytes, id, message);
    bytes
}

/// Encodes a DataSource { ds_descriptor = 1, producer_id = 2 }.
pub(crate) fn told_data_source(registration: &Registration) -> Vec<u8> {
    let mut entry = Vec::with_capacity(registration.descriptor.len() + 16);
    put_message(&mut entry, 1, &registration.descriptor);
    put(&mut entry, 2, registration.producer.0.into());
    entry
}

pub(crate) fn told_producer(producer: &Producer) -> ProducerState {
    ProducerState {
        id: Some(producer.id.0.into()),
        name: Some(producer.name.to_vec().into()),
        uid: Some(producer.peer.uid),
        sdk_version: Some(producer.sdk_version.clone().into()),
        pid: producer.peer.pid,
        machine_id: Some(producer.peer.machine_id).filter(|&id| id != 0),
        machine_name: Some(&producer.machine_name).filter(|name| !name.is_empty()).map(|name| name.clone().into()),
        ..ProducerState::default()
    }
}
