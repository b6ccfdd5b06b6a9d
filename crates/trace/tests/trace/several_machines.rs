//! Traces with packets of other machines. The expected times are those of the official trace
//! processor (v52) for the same bytes, unless a test says otherwise.

use esatto_protozero::Message;
use esatto_schema::track_event::Type;
use esatto_trace::{Summary, Trace};

use crate::common::Maker;

const TIMESTAMP: u32 = 8;
const CLOCK_SNAPSHOT: u32 = 6;
const TRACK_EVENT: u32 = 11;
const SEQUENCE_FLAGS: u32 = 13;
const SYSTEM_INFO: u32 = 45;
const TIMESTAMP_CLOCK_ID: u32 = 58;
const TRACE_PACKET_DEFAULTS: u32 = 59;
const TRACK_DESCRIPTOR: u32 = 60;
const TRUSTED_PID: u32 = 79;
const MACHINE_ID: u32 = 98;
const REMOTE_CLOCK_SYNC: u32 = 107;

const S: u64 = 1_000_000_000;
const BOOTTIME: u32 = 6;
/// The same on all machines, like the track.
const PID: i64 = 10;
const TRACK: u64 = 77;

/// A trace whose machines have sequences of the same number.
struct Machines(Maker);

impl Machines {
    /// The snapshot of the service.
    fn new() -> Self {
        let start = Maker::default().packet(|packet| {
            clocks(&mut packet.begin(CLOCK_SNAPSHOT), &[(BOOTTIME, 100 * S), (3, 90 * S)]);
        });
        Self(start)
    }

    fn packet(self, machine: u64, fill: impl FnOnce(&mut Message<'_>)) -> Self {
        Self(self.0.packet(|packet| {
            if machine != 0 {
                packet.varint(MACHINE_ID, machine);
            }
            packet.int(TRUSTED_PID, PID);
            fill(packet);
        }))
    }

    /// Starts a sequence as the SDK does, with the clock 64.
    fn sequence(self, machine: u64, boottime: u64) -> Self {
        self.packet(machine, |packet| {
            packet.varint(SEQUENCE_FLAGS, 1);
            packet.varint(TIMESTAMP, 0);
            let mut snapshot = packet.begin(CLOCK_SNAPSHOT);
            clocks(&mut snapshot, &[(BOOTTIME, boottime)]);
            let mut own = snapshot.begin(1);
            own.varint(1, 64);
            own.varint(2, boottime);
            own.varint(3, 1);
            drop(own);
            drop(snapshot);
            let mut defaults = packet.begin(TRACE_PACKET_DEFAULTS);
            defaults.varint(TIMESTAMP_CLOCK_ID, 64);
            defaults.begin(11).varint(11, TRACK);
        })
        .packet(machine, |packet| {
            packet.varint(SEQUENCE_FLAGS, 2);
            let mut track = packet.begin(TRACK_DESCRIPTOR);
            track.varint(1, TRACK);
            let mut process = track.begin(3);
            process.int(1, PID);
            process.string(6, &format!("program of {machine}"));
        })
    }

    fn event(self, machine: u64, delta: u64, kind: Type, name: &str, flow: Option<u64>) -> Self {
        self.packet(machine, |packet| {
            packet.varint(SEQUENCE_FLAGS, 2);
            packet.varint(TIMESTAMP, delta);
            let mut event = packet.begin(TRACK_EVENT);
            event.int(9, kind.0.into());
            if !name.is_empty() {
                event.string(23, name);
            }
            if let Some(flow) = flow {
                event.fixed64(47, flow);
            }
        })
    }

    fn slice(self, machine: u64, delta: u64, name: &str, duration: u64) -> Self {
        let begun = self.event(machine, delta, Type::TYPE_SLICE_BEGIN, name, None);
        begun.event(machine, duration, Type::TYPE_SLICE_END, "", None)
    }

    /// One round, in which the guest's clock is about `ahead` seconds ahead of the host's.
    fn sync(self, machine: u64, ahead: u64) -> Self {
        let host = 100 * S;
        let rounds = [(host + ahead * S, host + 100), (host + ahead * S + 300, host + 500)];
        self.packet(machine, |packet| {
            let mut sync = packet.begin(REMOTE_CLOCK_SYNC);
            for (guest, host) in rounds {
                let mut exchange = sync.begin(1);
                clocks(&mut exchange.begin(2), &[(BOOTTIME, guest), (3, guest - 7)]);
                clocks(&mut exchange.begin(3), &[(BOOTTIME, host), (3, host - 9)]);
            }
        })
    }

    fn system(self, machine: u64, name: &str) -> Self {
        self.packet(machine, |packet| {
            let mut info = packet.begin(SYSTEM_INFO);
            info.begin(1).string(1, "Linux");
            info.string(17, name);
        })
    }

    fn trace(&self) -> Trace {
        self.0.trace()
    }

    fn summary(&self) -> Summary {
        self.0.summary()
    }

    /// Machine, time and name of each slice.
    fn slices(&self) -> Vec<(u32, i64, String)> {
        let slices = self.trace().slices;
        slices.into_iter().map(|slice| (slice.machine_id, slice.ts_ns, slice.name.unwrap_or_default())).collect()
    }
}

fn clocks(snapshot: &mut Message<'_>, clocks: &[(u32, u64)]) {
    for &(id, ticks) in clocks {
        let mut clock = snapshot.begin(1);
        clock.varint(1, id.into());
        clock.varint(2, ticks);
    }
}

/// The host and two guests, whose clocks are 1000 s and 2000 s ahead.
fn three() -> Machines {
    let machines = Machines::new().sync(5, 1000).sync(6, 2000);
    let machines = machines.sequence(0, 101 * S).sequence(5, 1101 * S).sequence(6, 2101 * S);
    machines.slice(0, 5, "here", 5).slice(5, 7, "there", 50).slice(6, 9, "yonder", 500)
}

#[test]
fn each_machine_has_its_own_clocks_and_processes() {
    let expected = [
        (5, 101_000_000_007 - 25, "there".to_owned()),
        (6, 101_000_000_009 - 25, "yonder".to_owned()),
        (0, 101_000_000_005, "here".to_owned()),
    ];
    assert_eq!(three().slices(), expected);
    let trace = three().trace();
    assert!(trace.problems.is_empty(), "{:?}", trace.problems);
    assert_eq!(trace.slices[0].duration_ns, Some(50));

    let summary = three().summary();
    let processes = summary.processes.iter();
    let processes: Vec<_> = processes
        .map(|p| (p.machine_id, p.pid, p.name.as_deref().unwrap_or(""), p.slices, p.first_packet_ns))
        .collect();
    let expected = [
        (0, PID, "program of 0", 1, Some(101_000_000_005)),
        (5, PID, "program of 5", 1, Some(101_000_000_007 - 25)),
        (6, PID, "program of 6", 1, Some(101_000_000_009 - 25)),
    ];
    assert_eq!(processes, expected);
    let ahead: Vec<_> = summary.machines.iter().map(|machine| machine.ahead_ns).collect();
    assert_eq!(ahead, [Some(0), Some(1_000_000_000_025), Some(2_000_000_000_025)]);
    assert_eq!(summary.bounds_ns, Some((100_999_999_982, 101_000_000_484)));
    assert_eq!(summary.tracks.len(), 3);
}

#[test]
fn flows_of_equal_numbers_stay_on_their_machine() {
    let machines = Machines::new().sync(5, 1000).sequence(0, 101 * S).sequence(5, 1101 * S);
    let machines = machines
        .event(0, 5, Type::TYPE_INSTANT, "a", Some(9))
        .event(5, 7, Type::TYPE_INSTANT, "b", Some(9))
        .event(5, 7, Type::TYPE_INSTANT, "c", Some(9));
    let trace = machines.trace();
    let flows = trace.flows.iter().map(|flow| [flow.from, flow.to].map(|at| trace.slices[at].name.clone().unwrap()));
    assert_eq!(flows.collect::<Vec<_>>(), [["b", "c"].map(str::to_owned)]);
}

#[test]
fn a_machine_without_clock_sync_keeps_its_times_and_is_reported() {
    let machines = Machines::new().sequence(0, 101 * S).sequence(5, 1101 * S);
    let machines = machines.slice(0, 5, "here", 5).slice(5, 7, "there", 50);
    let expected = [(0, 101_000_000_005, "here".to_owned()), (5, 1_101_000_000_007, "there".to_owned())];
    assert_eq!(machines.slices(), expected);
    let summary = machines.summary();
    assert_eq!(summary.problems["machines_without_clock_sync"], 1);
    assert_eq!(summary.machines[1].ahead_ns, None);
    assert!(summary.to_string().contains("no RemoteClockSync: times of its own clock\n"), "{summary}");

    let alone = Machines(Maker::default()).sequence(5, 1101 * S).slice(5, 7, "there", 50);
    assert_eq!(alone.slices(), expected[1..]);
    assert!(alone.trace().problems.is_empty(), "there is no other clock");
}

/// The trace processor converts only the events after the sync.
#[test]
fn a_late_clock_sync_holds_for_earlier_events() {
    let machines = Machines::new().sequence(5, 1101 * S).slice(5, 7, "early", 50).sync(5, 1000);
    assert_eq!(machines.slices(), [(5, 100_999_999_982, "early".to_owned())]);
    assert_eq!(machines.summary().processes[0].first_packet_ns, Some(100_999_999_982));
}

/// The trace processor v52 takes them for times of the host.
#[test]
fn timestamps_without_a_clock_are_those_of_the_machine() {
    let machines = Machines::new().sync(5, 1000).packet(5, |packet| {
        packet.varint(TIMESTAMP, 1102 * S);
        packet.begin(TRACK_EVENT).int(9, 3);
    });
    assert_eq!(machines.slices(), [(5, 101_999_999_975, String::new())]);
}

#[test]
fn a_clock_that_only_the_relay_read_is_converted() {
    let machines = Machines::new().sync(5, 1000).packet(5, |packet| {
        packet.varint(TIMESTAMP, 1102 * S - 7);
        packet.varint(TIMESTAMP_CLOCK_ID, 3);
        packet.begin(TRACK_EVENT).int(9, 3);
    });
    assert_eq!(machines.slices(), [(5, 101_999_999_975, String::new())]);
}

#[test]
fn machines_are_shown_by_name() {
    let named = three().system(0, "").system(5, "guest1").system(6, "");
    let summary = named.summary();
    let text = summary.to_string();
    for row in [
        "Machines (3)\n  machine  id  system  clocks ahead by  packets\n",
        "  host      0  Linux                          6\n",
        "  guest1    5  Linux        1000.000 s        6\n",
        "  6         6  Linux        2000.000 s        6\n",
        "  guest1    10       program of 5       1\n",
        "  guest1    10  program of 5                              0 ns\n",
    ] {
        assert!(text.contains(row), "{row:?} is not in\n{text}");
    }
    let json = summary.to_json();
    assert_eq!(json["machines"][1]["name"], "guest1");
    assert_eq!(json["machines"][1]["ahead_ns"], 1_000_000_000_025_i64);
    assert!(json["machines"][2]["name"].is_null());
    assert_eq!(json["system"], json["machines"][0]["system"], "of the host");

    let shared = three().system(5, "guest").system(6, "guest").summary().to_string();
    assert!(shared.contains("  5 guest   10 ") && shared.contains("  6 guest   10 "), "{shared}");
    let alone = Machines::new().sequence(0, 101 * S).slice(0, 5, "here", 5).summary().to_string();
    assert!(!alone.contains("machine") && !alone.contains("Machines"), "{alone}");
}
