//! Machines of a trace, and by how much their clocks are ahead of those of the host
//! (`docs/spec/service.md` §16).

use std::collections::BTreeMap;

use esatto_protozero::Fields;
use esatto_schema::{clock_snapshot, remote_clock_sync};

use crate::clock_conversion::BOOTTIME;
use crate::service_report::SystemInfo;

/// The machine of the service.
pub(crate) const HOST: u32 = 0;

/// Two exchanges are a round if the guest's clock advanced by less than this between them.
const ROUND_NS: u64 = 30_000_000_000;

/// Facts about machines other than the host, from the packets that describe them.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    others: BTreeMap<u32, Machine>,
}

#[derive(Debug, Default)]
struct Machine {
    system: Option<SystemInfo>,
    /// By how many nanoseconds a clock is ahead of that of the host, by the id of the clock.
    ahead: BTreeMap<u32, i64>,
}

/// Values of clocks at one moment: ids and ticks.
pub(crate) type ClockValues = Vec<(u32, u64)>;

/// Values of a clock on both sides of an exchange; 0 if a side did not send one.
#[derive(Clone, Copy, Default)]
struct Exchange {
    host: u64,
    guest: u64,
}

impl Machines {
    pub(crate) fn set_system(&mut self, machine: u32, system: SystemInfo) {
        self.others.entry(machine).or_default().system = Some(system);
    }

    pub(crate) fn system(&self, machine: u32) -> Option<&SystemInfo> {
        self.others.get(&machine)?.system.as_ref()
    }

    /// Returns by how much a clock of a machine is ahead of that of the host, if that is known.
    pub(crate) fn ahead(&self, machine: u32, clock: u32) -> Option<i64> {
        if machine == HOST { Some(0) } else { self.others.get(&machine)?.ahead.get(&clock).copied() }
    }

    /// Reads a `RemoteClockSync`. Returns the values of the guest's clocks in each exchange.
    pub(crate) fn add_clock_sync(&mut self, machine: u32, bytes: &[u8]) -> Vec<ClockValues> {
        use remote_clock_sync::{field, synced_clocks::field as side};
        let mut guests = Vec::new();
        let mut exchanges: Vec<BTreeMap<u32, Exchange>> = Vec::new();
        for f in Fields::new(bytes).filter(|f| f.id == field::SYNCED_CLOCKS) {
            let mut exchange: BTreeMap<u32, Exchange> = BTreeMap::new();
            let mut guest = Vec::new();
            for f in Fields::new(f.as_bytes()) {
                match f.id {
                    side::HOST_CLOCKS => {
                        for (id, ticks) in clock_values(f.as_bytes()) {
                            exchange.entry(id).or_default().host = ticks;
                        }
                    }
                    side::CLIENT_CLOCKS => {
                        guest = clock_values(f.as_bytes());
                        for &(id, ticks) in &guest {
                            exchange.entry(id).or_default().guest = ticks;
                        }
                    }
                    _ => {}
                }
            }
            exchanges.push(exchange);
            guests.push(guest);
        }
        self.others.entry(machine).or_default().ahead.extend(offsets(&exchanges));
        guests
    }
}

/// Returns by how much each clock of the guest is ahead: the average over all rounds.
///
/// In a round, the clocks are read on the guest, the host, the guest and the host. The first three
/// readings give an estimate, and so do the last three.
fn offsets(exchanges: &[BTreeMap<u32, Exchange>]) -> BTreeMap<u32, i64> {
    let mut sums: BTreeMap<u32, (i128, i128)> = BTreeMap::new();
    let boottime = |exchange: &BTreeMap<u32, Exchange>| exchange.get(&BOOTTIME).map_or(0, |values| values.guest);
    for pair in exchanges.windows(2) {
        let [ping, update] = pair else { continue };
        if boottime(update).wrapping_sub(boottime(ping)) >= ROUND_NS {
            continue;
        }
        for (&id, first) in ping {
            let second = update.get(&id).copied().unwrap_or_default();
            let values = [first.guest, first.host, second.guest, second.host];
            if values.contains(&0) {
                continue;
            }
            let [guest1, host1, guest2, host2] = values.map(i128::from);
            let (sum, number) = sums.entry(id).or_default();
            *sum += (guest1 + guest2) / 2 - host1;
            *sum += guest2 - (host1 + host2) / 2;
            *number += 2;
        }
    }
    let average = |(id, (sum, number)): (u32, (i128, i128))| Some((id, i64::try_from(sum / number).ok()?));
    sums.into_iter().filter_map(average).collect()
}

/// Reads the clocks of a `ClockSnapshot` that a relay or its service took.
fn clock_values(bytes: &[u8]) -> ClockValues {
    use clock_snapshot::{clock::field as clock_field, field};
    let clock = |bytes: &[u8]| {
        let (mut id, mut ticks) = (0, 0);
        for f in Fields::new(bytes) {
            match f.id {
                clock_field::CLOCK_ID => id = f.as_u32(),
                clock_field::TIMESTAMP => ticks = f.as_u64(),
                _ => {}
            }
        }
        (id, ticks)
    };
    Fields::new(bytes).filter(|f| f.id == field::CLOCKS).map(|f| clock(f.as_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(guest: u64, host: u64) -> BTreeMap<u32, Exchange> {
        BTreeMap::from([(BOOTTIME, Exchange { host, guest })])
    }

    #[test]
    fn the_offset_is_the_average_of_all_rounds() {
        const S: u64 = 1_000_000_000;
        let round = |guest: u64, host: u64| [exchange(guest, host + 100), exchange(guest + 300, host + 500)];
        let one = round(1_100 * S, 100 * S);
        // (0 + 300) / 2 - 100 and 300 - (100 + 500) / 2, and 1000 seconds.
        assert_eq!(offsets(&one), BTreeMap::from([(BOOTTIME, 1_000_000_000_025)]));
        let two = [one, round(1_131 * S, 131 * S + 50)].concat();
        assert_eq!(offsets(&two), BTreeMap::from([(BOOTTIME, 1_000_000_000_000)]));
    }

    #[test]
    fn exchanges_that_are_no_round_tell_nothing() {
        const S: u64 = 1_000_000_000;
        assert_eq!(offsets(&[exchange(5 * S, S)]), BTreeMap::new());
        assert_eq!(offsets(&[exchange(5 * S, S), exchange(35 * S, 31 * S)]), BTreeMap::new(), "30 s apart");
        assert_eq!(offsets(&[exchange(5 * S, S), exchange(4 * S, 2 * S)]), BTreeMap::new(), "backwards");
        assert_eq!(offsets(&[exchange(5 * S, 0), exchange(6 * S, 2 * S)]), BTreeMap::new(), "one side only");
        assert_eq!(offsets(&[exchange(u64::MAX, 1), exchange(u64::MAX, 1)]), BTreeMap::new(), "beyond 63 bits");
    }
}
