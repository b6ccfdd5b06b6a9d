//! Requests of a session's config: service packets, flushes, starts, stops and written files.

use crate::compare;
use crate::outcome::Rules::V2;
use crate::players::Players;
use esatto_tests::wait_until;
use esatto_tests::wire::{self, Proto};

/// One V2 buffer of 256 KiB and the data source `d`, which no clock snapshot disturbs.
fn config() -> Proto {
    without_builtin().message(20, &Proto::new().int(6, 60_000))
}

fn without_builtin() -> Proto {
    let source = Proto::new().message(1, &Proto::new().bytes(1, "d"));
    Proto::new().message(1, &Proto::new().int(1, 256).int(8, 1)).message(2, &source)
}

fn record(players: &mut Players<'_>, config: &Proto) {
    players.offer(&["d"]);
    players.enable(config);
    let buffer = players.await_start().buffer;
    players.commit(buffer, 1, &[10, 20]);
    players.stop_and_read();
}

/// Switches of `builtin_data_sources`.
macro_rules! switches {
    ($($name:ident: $field:expr),* $(,)?) => {$(
        #[test]
        fn $name() {
            // In the order of their numbers, so that the echo is the same.
            let mut switches = [(6, 60_000), ($field, 1)];
            switches.sort_unstable();
            let switches = switches.iter().fold(Proto::new(), |all, (field, value)| all.int(*field, *value));
            compare(V2, |players| record(players, &without_builtin().message(20, &switches)));
        }
    )*};
}

switches! {
    without_clock_snapshots: 1,
    without_the_config: 2,
    without_system_info: 3,
    without_service_events: 4,
    with_the_realtime_clock: 5,
    without_histograms: 8,
    without_extension_descriptors: 9,
}

#[test]
fn with_everything() {
    compare(V2, |players| record(players, &config()));
}

#[test]
fn an_end_without_a_flush() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config());
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10, 20]);
        assert!(players.consumer.peer.call("DisableTracing", &Proto::new()).success);
        players.ended();
        players.stats();
        players.read();
    });
}

#[test]
fn compression() {
    // COMPRESSION_TYPE_DEFLATE
    compare(V2, |players| record(players, &config().int(24, 1)));
}

#[test]
fn a_filter() {
    // Allows most fields of packets, and only the number of test packets.
    let filter = || -> Result<Vec<u8>, esatto_filter::Error> {
        let mut builder = esatto_filter::Builder::new(esatto_filter::Version::V2);
        builder.nested(1, esatto_filter::MessageId(1))?.end_message();
        builder.pass_range(1..=99)?.nested(900, esatto_filter::MessageId(2))?.end_message();
        builder.pass(2)?.end_message();
        Ok(builder.build()?.bytecode)
    };
    let bytecode = filter().expect("bytecode");
    compare(V2, |players| record(players, &config().message(33, &Proto::new().bytes(2, &bytecode))));
}

#[test]
fn a_deferred_start() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config().int(12, 1));
        let _ = players.await_command(6);
        // Nothing is started, but there is something to read.
        players.read();
        assert!(players.consumer.peer.call("StartTracing", &Proto::new()).success);
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10, 20]);
        players.stop_and_read();
    });
}

#[test]
fn a_duration() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config().int(3, 200));
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10, 20]);
        players.acknowledge_flush();
        players.ended();
        players.stats();
        players.read();
    });
}

#[test]
fn periodic_clearing_of_incremental_state() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config().message(21, &Proto::new().int(1, 50)));
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10]);
        let _ = players.await_command(7);
        players.commit(buffer, 1, &[20]);
        // It comes again and again; the end is not waited for.
        assert!(players.consumer.peer.call("FreeBuffers", &Proto::new()).success);
    });
}

/// A TriggerConfig in this mode, for a trigger called `go`.
fn triggers(mode: u64, stop_delay_ms: u64) -> Proto {
    let trigger = Proto::new().bytes(1, "go").int(3, stop_delay_ms);
    Proto::new().int(1, mode).message(2, &trigger).int(3, 30_000)
}

fn pull_the_trigger(players: &mut Players<'_>) {
    for name in ["stay", "go"] {
        assert!(players.producer.call("ActivateTriggers", &Proto::new().bytes(1, name)).success);
    }
}

#[test]
fn a_trigger_that_starts() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config().message(17, &triggers(1, 100)));
        let _ = players.await_command(6);
        pull_the_trigger(players);
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10, 20]);
        players.acknowledge_flush();
        players.ended();
        players.stats();
        players.read();
    });
}

#[test]
fn a_trigger_that_stops() {
    compare(V2, |players| {
        players.offer(&["d"]);
        players.enable(&config().message(17, &triggers(2, 50)));
        let buffer = players.await_start().buffer;
        players.commit(buffer, 1, &[10, 20]);
        pull_the_trigger(players);
        players.acknowledge_flush();
        players.ended();
        players.stats();
        players.read();
    });
}

/// Writes into a file; the trace when the session has ended.
fn write_into_file(players: &mut Players<'_>, config: &Proto, flushes: usize) {
    players.offer(&["d"]);
    let path = players.harness.path("streamed");
    let path_text = path.to_string_lossy().into_owned();
    players.enable(&config.clone().int(8, 1).bytes(29, path_text));
    let buffer = players.await_start().buffer;
    players.commit(buffer, 1, &[10, 20]);
    players.commit(buffer, 2, &[30]);
    for _ in 0..flushes {
        players.acknowledge_flush();
    }
    players.commit(buffer, 1, &[40]);
    players.stop();
    let trace = wait_until("the file is written", || std::fs::read(&path).ok().filter(|bytes| !bytes.is_empty()));
    players.file(&without_path(&trace));
}

/// The trace without the path in the echo of the config, which is another for each service.
pub(crate) fn without_path(trace: &[u8]) -> Vec<u8> {
    wire::all(trace, 1).into_iter().fold(Proto::new(), |out, packet| out.message(1, &echo_without_path(packet))).0
}

fn echo_without_path(packet: &[u8]) -> Proto {
    let Some(config) = wire::last(packet, 33) else { return Proto(packet.to_vec()) };
    let config = Proto::of(wire::fields(config).into_iter().filter(|(field, _)| *field != 29));
    Proto::of(wire::fields(packet).into_iter().filter(|(field, _)| *field != 33)).message(33, &config)
}

#[test]
fn a_file() {
    compare(V2, |players| write_into_file(players, &config().int(9, 60_000), 0));
}

/// `write_flush_mode`: disabled, before each write, and its default.
#[test]
fn a_file_in_each_flush_mode() {
    for mode in 0..4 {
        compare(V2, |players| write_into_file(players, &config().int(9, 60_000).int(44, mode), 0));
    }
}
