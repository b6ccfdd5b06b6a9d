//! [`BufferExhausted`]: what trace points do when shared memory is full, and what a config means by
//! it.

use esatto_schema::DataSourceConfigReader;
use esatto_schema::data_source_config::BufferExhaustedPolicy as Policy;
use esatto_shm::ExhaustedPolicy;

/// The behaviour of trace points when the memory shared with the service is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferExhausted {
    /// They drop packets until there is room. The next packet marks the loss.
    #[default]
    Drop,
    /// They wait for room, up to 29 seconds, and then drop. If the service makes no room, all
    /// threads together wait 30 seconds, and 0.1 seconds longer for each chunk of memory that it
    /// hands back.
    Stall,
}

impl BufferExhausted {
    pub(crate) const fn policy(self) -> ExhaustedPolicy {
        match self {
            Self::Drop => ExhaustedPolicy::Drop,
            Self::Stall => ExhaustedPolicy::StallThenDrop,
        }
    }

    /// Returns the policy that a config asks for, if it does.
    ///
    /// A library does not abort its host: `STALL_THEN_ABORT` ends in dropping.
    pub(crate) fn of_config(config: &[u8]) -> Option<Self> {
        match DataSourceConfigReader::new(config).buffer_exhausted_policy()? {
            Policy::BUFFER_EXHAUSTED_DROP => Some(Self::Drop),
            Policy::BUFFER_EXHAUSTED_STALL_THEN_ABORT | Policy::BUFFER_EXHAUSTED_STALL_THEN_DROP => Some(Self::Stall),
            _ => None,
        }
    }
}
