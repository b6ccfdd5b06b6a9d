//! `docs/spec/wire-protocol.md` §22: the duties of a service, row by row, over real sockets. Our
//! service is tested, and Perfetto's as a control.
//!
//! Duties of a client, and rows that cannot be seen from outside, are tested
//! [elsewhere](ELSEWHERE).

mod consumers;
mod frames;
mod producers;

use std::path::Path;

use esatto_tests::raw::{self, RawConsumer, RawProducer};
use esatto_tests::{Harness, Implementation, wait_until};

use consumers::*;
use frames::*;
use producers::*;

/// Rows that other tests are about: the row, their file, their name.
const ELSEWHERE: [(u32, &str, &str); 9] = [
    (35, "crates/service/tests/service/sessions.rs", "a_session_can_be_detached_and_attached"),
    (39, "crates/ipc/tests/ipc/clients_tolerate_odd_services.rs", "ids_are_taken_from_the_list"),
    (
        40,
        "crates/ipc/tests/ipc/clients_tolerate_odd_services.rs",
        "a_method_the_service_lacks_sends_nothing_and_uses_no_id",
    ),
    (41, "tests/tests/old_peers/old_services.rs", "a_producer_of_a_service_of_2018"),
    (42, "tests/tests/old_peers/old_services.rs", "a_producer_of_a_service_that_says_more_than_is_known"),
    (43, "crates/ipc/tests/ipc/clients_tolerate_odd_services.rs", "unexpected_replies_are_ignored"),
    (44, "crates/ipc/tests/ipc/captures_decode_in_pieces_of_any_size.rs", "all_at_once"),
    (45, "crates/ipc/tests/ipc/frames_are_bounded.rs", "lengths_of_four_bytes_are_accepted"),
    (50, "tests/tests/old_peers/old_services.rs", "a_producer_of_a_service_with_numbers_of_its_own"),
];

/// Makes each row a test with our service and one with Perfetto's, or with ours alone where
/// Perfetto's is known to differ.
macro_rules! rows {
    ($($name:ident: $implementations:ident),* $(,)?) => {
        const ROWS: &[&str] = &[$(stringify!($name)),*];

        $(mod $name {
            rows!(@ $implementations $name);
        })*
    };
    (@ both $name:ident) => {
        esatto_tests::for_each_service!(row);

        fn row(implementation: esatto_tests::Implementation) -> Result<(), esatto_tests::Skip> {
            super::run(implementation, super::$name);
            Ok(())
        }
    };
    (@ ours $name:ident) => {
        #[test]
        fn ours() {
            super::run(esatto_tests::Implementation::Ours, super::$name);
        }
    };
}

rows! {
    row_22_01_frames_byte_by_byte: both,
    row_22_02_a_frame_of_131072_bytes: both,
    row_22_03_a_frame_of_one_byte_more: both,
    row_22_04_an_empty_frame: both,
    row_22_05_a_frame_that_is_no_protobuf: both,
    row_22_06_bind_of_an_unknown_name: both,
    row_22_07_bind_twice: both,
    row_22_08_method_99_with_drop_reply: both,
    row_22_09_a_method_before_initialize_connection: both,
    row_22_10_the_same_with_drop_reply: both,
    row_22_11_a_frame_with_padding_only: both,
    row_22_12_what_only_a_service_may_send: both,
    row_22_13_an_identity_on_a_unix_socket: both,
    row_22_14_two_identities_over_tcp: both,
    row_22_15_tcp_without_an_identity: both,
    row_22_16_the_hash_of_a_machine_hint: both,
    row_22_17_initialize_connection_twice: both,
    row_22_18_offered_memory_of_bad_sizes: both,
    row_22_19_offered_memory_that_is_good: both,
    row_22_20_offered_memory_without_seals: both,
    row_22_21_get_async_command_late: both,
    row_22_22_two_get_async_command: both,
    row_22_23_a_commit_before_setup_tracing: both,
    row_22_24_a_commit_before_register_trace_writer: both,
    row_22_25_one_acknowledgement_of_three_flushes: both,
    row_22_26_enable_tracing_refused: both,
    row_22_27_enable_tracing_while_running: both,
    row_22_28_flush_without_session: both,
    row_22_29_flush_before_start: both,
    row_22_30_flush_without_instances: both,
    row_22_31_read_buffers_without_session: both,
    row_22_32_a_packet_of_300_kb: both,
    row_22_33_observe_events_and_no_more: both,
    row_22_34_detach_and_attach: both,
    row_22_36_the_end_of_an_attached_session: both,
    row_22_37_a_state_larger_than_a_frame: both,
    row_22_38_clone_session_without_selector: both,
    row_22_46_free_buffers_of_a_running_session: both,
    row_22_47_free_buffers_while_reading: ours,
    row_22_48_attach_with_an_empty_key: ours,
    row_22_49_the_duration_of_a_session_that_a_trigger_stops: both,
}

fn run(implementation: Implementation, row: fn(&Harness, u16)) {
    let harness = Harness::new();
    let (mut service, port) = harness.service_with_tcp(implementation, |_| ());
    row(&harness, port);
    assert!(service.is_running(), "the service died of it");
    wait_until("nothing is left", || (harness.state().sessions == 0).then_some(()));
}

#[test]
fn every_row_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let spec = std::fs::read_to_string(root.join("docs/spec/wire-protocol.md")).expect("the spec");
    let (_, checklist) = spec.split_once("## 22. Checklist").expect("the section");
    let checklist = checklist.split_once("\n## ").map_or(checklist, |(checklist, _)| checklist);
    let rows = checklist.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse::<u32>().ok());
    let mut count = 0;
    for row in rows {
        count += 1;
        let here = ROWS.iter().any(|name| name.starts_with(&format!("row_22_{row:02}_")));
        let elsewhere = ELSEWHERE.iter().filter(|(number, ..)| *number == row).any(|(_, file, test)| {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            text.contains(&format!("fn {test}("))
        });
        assert!(here || elsewhere, "row {row} has no test");
    }
    assert_eq!(count, 50);
}

/// A session that records one producer.
fn session(harness: &Harness) -> (RawProducer, RawConsumer, u64) {
    let mut producer = RawProducer::connect(harness, "producer");
    producer.offer("recorded");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(2048, &["recorded"]));
    let buffer = producer.await_start().buffer;
    (producer, consumer, buffer)
}
