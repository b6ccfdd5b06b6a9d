//! Counts the packets of a recording that readers cannot use, because the state that they need was
//! lost.

use std::collections::HashMap;

use esatto_schema::TraceConfig;

/// Flags of a packet (`TracePacket.sequence_flags`).
pub(crate) const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;

/// Sequences whose state is known. Packets of further ones count as readable.
const MAX_SEQUENCES: usize = 100_000;

/// A ring loses the packets before its first state. Up to this part of all, that is normal.
const NORMAL_PART_OF_RING: u64 = 5;

/// Fields of a packet that tell if it can be read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketMarks {
    pub(crate) machine: u32,
    pub(crate) sequence: u32,
    pub(crate) flags: u32,
    pub(crate) is_after_loss: bool,
    /// The program lost packets before it, because its shared memory was full.
    pub(crate) is_after_full_memory: bool,
}

/// Number of packets that readers cannot use.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnreadablePackets {
    /// All packets.
    pub(crate) packets: u64,
    /// Those that need a state that was lost.
    pub(crate) unreadable: u64,
    /// Places where a program lost packets, because its shared memory was full.
    pub(crate) gaps: u64,
    /// Some of these has an event of a program.
    pub(crate) have_events: bool,
    /// By machine and number of a sequence: true if readers know its state.
    states: HashMap<(u32, u32), bool>,
}

impl UnreadablePackets {
    /// Counts a packet. Returns whether it can be read.
    pub(crate) fn add(&mut self, marks: PacketMarks) -> bool {
        self.packets += 1;
        self.gaps += u64::from(marks.is_after_full_memory);
        if marks.flags == 0 && !marks.is_after_loss {
            return true;
        }
        let key = (marks.machine, marks.sequence);
        if self.states.len() >= MAX_SEQUENCES && !self.states.contains_key(&key) {
            return true;
        }
        let is_known = self.states.entry(key).or_default();
        if marks.flags & STATE_CLEARED != 0 {
            *is_known = true;
        } else if marks.is_after_loss {
            *is_known = false;
        }
        let is_readable = marks.flags & NEEDS_STATE == 0 || *is_known;
        self.unreadable += u64::from(!is_readable);
        is_readable
    }

    /// Returns how many packets cannot be read, and what would help, if that is worth a line.
    pub(crate) fn in_words(&self, config: &TraceConfig, is_ring: bool) -> Option<String> {
        let is_normal = is_ring && self.unreadable <= self.packets / NORMAL_PART_OF_RING;
        if self.unreadable == 0 || is_normal {
            return None;
        }
        let Self { packets, unreadable, .. } = self;
        Some(format!(
            "{unreadable} of {packets} packets cannot be read, because names and other state that they need were lost. {}",
            remedy(config)
        ))
    }

    /// Returns why there is no event, if there are events and none of them can be read.
    pub(crate) fn why_none(&self, config: &TraceConfig) -> Option<String> {
        self.have_events.then(|| {
            format!(
                "No event can be read: {} of {} packets need names and other state that were lost. {}",
                self.unreadable,
                self.packets,
                remedy(config)
            )
        })
    }
}

/// Returns what loses less.
fn remedy(config: &TraceConfig) -> String {
    let clears = config.incremental_state_config.as_ref().and_then(|clears| clears.clear_period_ms);
    let larger = match &config.buffers[..] {
        [buffer] => {
            let kb = u64::from(buffer.size_kb.unwrap_or(0)).saturating_mul(4);
            format!("A larger buffer keeps more: `size_kb: {kb}`.")
        }
        _ => "Larger buffers keep more.".to_owned(),
    };
    // A period is too long for programs that overwrite the buffer in less time.
    match clears.unwrap_or(0) {
        0 => format!(
            "{larger} With `incremental_state_config {{ clear_period_ms: 1000 }}` programs send this state again each second."
        ),
        _ => larger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(sequence: u32, flags: u32, is_after_loss: bool) -> PacketMarks {
        PacketMarks { sequence, flags, is_after_loss, ..PacketMarks::default() }
    }

    #[test]
    fn packets_need_a_state_after_the_last_loss() {
        let mut packets = UnreadablePackets::default();
        assert!(packets.add(marks(2, 0, false)), "it needs no state");
        assert!(!packets.add(marks(2, NEEDS_STATE, false)), "its state is not in the trace");
        assert!(packets.add(marks(2, STATE_CLEARED, true)));
        assert!(packets.add(marks(2, NEEDS_STATE, false)));
        assert!(!packets.add(marks(3, NEEDS_STATE, false)), "another sequence");
        assert!(!packets.add(marks(2, NEEDS_STATE, true)));
        assert!(!packets.add(marks(2, NEEDS_STATE, false)), "until the next state");
        assert!(packets.add(marks(2, STATE_CLEARED | NEEDS_STATE, false)));
        assert_eq!((packets.packets, packets.unreadable), (8, 4));
    }

    #[test]
    fn a_ring_may_lose_its_begin() {
        let mut packets = UnreadablePackets { packets: 100, unreadable: 20, ..UnreadablePackets::default() };
        let config = TraceConfig::default();
        assert_eq!(packets.in_words(&config, true), None);
        assert!(packets.in_words(&config, false).is_some_and(|line| line.starts_with("20 of 100 packets")));
        packets.unreadable = 21;
        assert!(packets.in_words(&config, true).is_some());
        packets.unreadable = 0;
        assert_eq!(packets.in_words(&config, false), None);
    }
}
