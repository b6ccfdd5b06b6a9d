//! Our probes with services that lack later methods and commands.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::fake::{FakeProducerPort, PRODUCER_METHODS, first};
use esatto_tests::wire::{self, Proto};
use esatto_tests::{Harness, Signal, beside_this_test, skip};
use std::os::unix::net::UnixListener;

/// Numbers of the instances of data sources.
const FTRACE: u64 = 1;
const PROCESS_STATS: u64 = 2;
const SYS_STATS: u64 = 3;

/// Behaviour of a service of a certain age.
struct Age {
    /// Methods that it has, of [`PRODUCER_METHODS`].
    methods: usize,
    /// The answer to InitializeConnection.
    introduction: Proto,
    /// True if it sends setup_data_source before start_data_source.
    sets_up: bool,
}

#[test]
fn one_of_2018_without_set_ups_and_acknowledgements() {
    skip(|| is_served(&Age { methods: 5, introduction: Proto::new(), sets_up: false }));
}

/// As `tests/captures/old-service-basic` has it.
#[test]
fn version_15_without_updates_and_emulated_memory() {
    let introduction = Proto::new().int(1, 0).int(2, 1);
    skip(|| is_served(&Age { methods: 11, introduction, sets_up: true }));
}

fn config(name: &str, field: u32, config: &Proto) -> Proto {
    Proto::new().bytes(1, name).int(2, 1).int(4, 1).message(field, config)
}

fn is_served(age: &Age) -> Result<(), esatto_tests::Skip> {
    let _turn = tracefs()?;
    let instance = Instance::new("old");
    let events = ["sched/sched_switch", "task/task_rename"];
    let ftrace = events.iter().fold(Proto::new().bytes(25, instance.name()), |ftrace, event| ftrace.bytes(1, event));
    let configs = [
        (FTRACE, config("linux.ftrace", 100, &ftrace)),
        (PROCESS_STATS, config("linux.process_stats", 103, &Proto::new().int(2, 1))),
        (SYS_STATS, config("linux.sys_stats", 104, &Proto::new().int(1, 100))),
    ];

    let harness = Harness::new();
    let listener = UnixListener::bind(harness.producer_socket()).expect("a socket");
    let mut probes = harness.start("traced_probes", &mut harness.command(beside_this_test("traced_probes")));
    let methods = first(age.methods, &PRODUCER_METHODS);
    let mut port = FakeProducerPort::accept(&listener, &methods, age.introduction.clone());
    port.serve_until("RegisterDataSource", configs.len());
    // A command that does not exist yet, and a flush of unknown instances.
    port.serve_until("GetAsyncCommand", 1);
    port.command(15, &Proto::new().int(1, 7).bytes(2, "from the future"));
    port.command(5, &Proto::new().int(1, 4711).int(2, 1));
    port.setup_tracing();
    for (id, config) in &configs {
        let instance = Proto::new().int(1, *id).message(2, config);
        if age.sets_up {
            port.command(6, &instance);
        }
        port.command(1, &instance);
    }
    if methods.iter().any(|(_, name)| *name == "NotifyDataSourceStarted") {
        port.serve_until("NotifyDataSourceStarted", configs.len());
    }
    instance.wait_until_on("task/task_rename");
    crate::rename("old service");
    // Without acknowledgements, a flush may come before the first poll.
    let flush = configs.iter().fold(Proto::new(), |flush, (id, _)| flush.int(1, *id));
    let of = |port: &FakeProducerPort, field| -> Vec<Vec<u8>> {
        port.packets().into_iter().filter(|packet| wire::last(packet, field).is_some()).collect()
    };
    for request in 2.. {
        port.command(5, &flush.clone().int(2, request));
        while !port.flushed.contains(&request) {
            assert!(port.serve(), "the probes go: {:?}", port.service.calls);
        }
        assert_eq!(port.flushed, (1..=request).collect::<Vec<_>>(), "each flush is acknowledged");
        if !of(&port, 7).is_empty() {
            break;
        }
        assert!(request < 1000, "sys_stats");
    }

    for (id, _) in &configs {
        port.command(2, &Proto::new().int(1, *id));
    }
    esatto_tests::wait_until("tracefs is as before", || instance.read("set_event").is_empty().then_some(()));
    probes.signal(Signal::TERM);
    while port.serve() {}
    port.scrape();
    probes.wait_ok();
    assert!(port.service.calls.iter().all(|call| PRODUCER_METHODS[..age.methods].contains(call)));

    for (field, name) in [(1, "ftrace_events"), (2, "process_tree"), (7, "sys_stats"), (34, "ftrace_stats")] {
        assert!(!of(&port, field).is_empty(), "{name} among {} packets", port.packets().len());
    }
    let has_name = |packet: &Vec<u8>| packet.windows(11).any(|part| part == b"old service");
    assert!(of(&port, 1).iter().any(has_name), "the event is there");
    Ok(())
}
