//! Limit on the memory of all buffers: three quarters of the memory that there is.

use esatto_service::SystemFacts;

use crate::cgroup;

/// Quarters of the available memory for the buffers of all sessions; the rest is for other
/// programs. The memory is that of the machine, or of this process's control group if that has
/// less.
const MAX_BUFFER_QUARTERS: u64 = 3;

/// Returns how many bytes the buffers of all sessions may have.
pub(crate) fn max_buffer_bytes(system: &SystemFacts) -> u64 {
    buffer_bytes_of(system.ram_bytes, cgroup::memory_limit())
}

/// Returns the same for given amounts of memory in the machine and in the control group.
fn buffer_bytes_of(ram_bytes: Option<u64>, limit_bytes: Option<u64>) -> u64 {
    let bytes = [ram_bytes, limit_bytes].into_iter().flatten().min();
    bytes.map_or(u64::MAX, |bytes| bytes / 4 * MAX_BUFFER_QUARTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_leave_a_quarter_of_the_memory_that_there_is() {
        assert_eq!(buffer_bytes_of(Some(4000), None), 3000);
        assert_eq!(buffer_bytes_of(Some(4000), Some(400)), 300);
        assert_eq!(buffer_bytes_of(Some(4000), Some(9_223_372_036_854_771_712)), 3000);
        assert_eq!((buffer_bytes_of(None, Some(8)), buffer_bytes_of(None, None)), (6, u64::MAX));
    }
}
