//! Calls of clients, parsed as far as the service needs.

use esatto_protozero::DecodeError;
use esatto_schema as proto;

use crate::shared_buffer::SharedBuffer;

/// A call on the producer port (`docs/spec/wire-protocol.md §8`).
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants are the methods of the protocol")]
pub enum ProducerCall<'a> {
    InitializeConnection {
        /// The request.
        request: proto::InitializeConnectionRequestReader<'a>,
        /// Memory of the producer itself, which the owner has mapped and checked (seals, size > 0).
        /// Its page size is the hint of the request. The service checks the sizes.
        offered: Option<Box<dyn SharedBuffer>>,
    },
    RegisterDataSource(proto::RegisterDataSourceRequestReader<'a>),
    UpdateDataSource(proto::UpdateDataSourceRequestReader<'a>),
    UnregisterDataSource(proto::UnregisterDataSourceRequestReader<'a>),
    CommitData(proto::CommitDataRequestReader<'a>),
    GetAsyncCommand,
    RegisterTraceWriter(proto::RegisterTraceWriterRequestReader<'a>),
    UnregisterTraceWriter(proto::UnregisterTraceWriterRequestReader<'a>),
    NotifyDataSourceStarted(proto::NotifyDataSourceStartedRequestReader<'a>),
    NotifyDataSourceStopped(proto::NotifyDataSourceStoppedRequestReader<'a>),
    ActivateTriggers(proto::ActivateTriggersRequestReader<'a>),
    Sync,
}

impl<'a> ProducerCall<'a> {
    /// Reads the request of a method. The owner puts the producer's own memory into
    /// `InitializeConnection`.
    ///
    /// # Errors
    ///
    /// The bytes are not a protobuf message. The owner rejects the call.
    pub fn parse(method: proto::producer_port::Method, request: &'a [u8]) -> Result<Self, DecodeError> {
        use proto::producer_port::Method;
        Ok(match method {
            Method::InitializeConnection => Self::InitializeConnection {
                request: proto::InitializeConnectionRequestReader::parse(request)?,
                offered: None,
            },
            Method::RegisterDataSource => {
                Self::RegisterDataSource(proto::RegisterDataSourceRequestReader::parse(request)?)
            }
            Method::UpdateDataSource => Self::UpdateDataSource(proto::UpdateDataSourceRequestReader::parse(request)?),
            Method::UnregisterDataSource => {
                Self::UnregisterDataSource(proto::UnregisterDataSourceRequestReader::parse(request)?)
            }
            Method::CommitData => Self::CommitData(proto::CommitDataRequestReader::parse(request)?),
            Method::GetAsyncCommand => Self::GetAsyncCommand,
            Method::RegisterTraceWriter => {
                Self::RegisterTraceWriter(proto::RegisterTraceWriterRequestReader::parse(request)?)
            }
            Method::UnregisterTraceWriter => {
                Self::UnregisterTraceWriter(proto::UnregisterTraceWriterRequestReader::parse(request)?)
            }
            Method::NotifyDataSourceStarted => {
                Self::NotifyDataSourceStarted(proto::NotifyDataSourceStartedRequestReader::parse(request)?)
            }
            Method::NotifyDataSourceStopped => {
                Self::NotifyDataSourceStopped(proto::NotifyDataSourceStoppedRequestReader::parse(request)?)
            }
            Method::ActivateTriggers => Self::ActivateTriggers(proto::ActivateTriggersRequestReader::parse(request)?),
            Method::Sync => Self::Sync,
        })
    }
}

/// A call on the consumer port (`docs/spec/wire-protocol.md §12`).
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants are the methods of the protocol")]
pub enum ConsumerCall<'a> {
    EnableTracing(proto::EnableTracingRequestReader<'a>),
    DisableTracing,
    ReadBuffers,
    FreeBuffers,
    Flush(proto::FlushRequestReader<'a>),
    StartTracing,
    ChangeTraceConfig(proto::ChangeTraceConfigRequestReader<'a>),
    Detach(proto::DetachRequestReader<'a>),
    Attach(proto::AttachRequestReader<'a>),
    GetTraceStats,
    ObserveEvents(proto::ObserveEventsRequestReader<'a>),
    QueryServiceState(proto::QueryServiceStateRequestReader<'a>),
    QueryCapabilities,
    SaveTraceForBugreport,
    CloneSession(proto::CloneSessionRequestReader<'a>),
}

impl<'a> ConsumerCall<'a> {
    /// Reads the request of a method.
    ///
    /// # Errors
    ///
    /// The bytes are not a protobuf message. The owner rejects the call.
    pub fn parse(method: proto::consumer_port::Method, request: &'a [u8]) -> Result<Self, DecodeError> {
        use proto::consumer_port::Method;
        Ok(match method {
            Method::EnableTracing => Self::EnableTracing(proto::EnableTracingRequestReader::parse(request)?),
            Method::DisableTracing => Self::DisableTracing,
            Method::ReadBuffers => Self::ReadBuffers,
            Method::FreeBuffers => Self::FreeBuffers,
            Method::Flush => Self::Flush(proto::FlushRequestReader::parse(request)?),
            Method::StartTracing => Self::StartTracing,
            Method::ChangeTraceConfig => {
                Self::ChangeTraceConfig(proto::ChangeTraceConfigRequestReader::parse(request)?)
            }
            Method::Detach => Self::Detach(proto::DetachRequestReader::parse(request)?),
            Method::Attach => Self::Attach(proto::AttachRequestReader::parse(request)?),
            Method::GetTraceStats => Self::GetTraceStats,
            Method::ObserveEvents => Self::ObserveEvents(proto::ObserveEventsRequestReader::parse(request)?),
            Method::QueryServiceState => {
                Self::QueryServiceState(proto::QueryServiceStateRequestReader::parse(request)?)
            }
            Method::QueryCapabilities => Self::QueryCapabilities,
            Method::SaveTraceForBugreport => Self::SaveTraceForBugreport,
            Method::CloneSession => Self::CloneSession(proto::CloneSessionRequestReader::parse(request)?),
        })
    }
}

/// A call on the relay port (`docs/spec/wire-protocol.md §16`).
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants are the methods of the protocol")]
pub enum RelayCall<'a> {
    InitRelay(proto::InitRelayRequestReader<'a>),
    SyncClock(proto::SyncClockRequestReader<'a>),
}

impl<'a> RelayCall<'a> {
    /// Reads the request of a method.
    ///
    /// # Errors
    ///
    /// The bytes are not a protobuf message. The owner rejects the call.
    pub fn parse(method: proto::relay_port::Method, request: &'a [u8]) -> Result<Self, DecodeError> {
        use proto::relay_port::Method;
        Ok(match method {
            Method::InitRelay => Self::InitRelay(proto::InitRelayRequestReader::parse(request)?),
            Method::SyncClock => Self::SyncClock(proto::SyncClockRequestReader::parse(request)?),
        })
    }
}
