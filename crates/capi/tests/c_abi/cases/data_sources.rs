use esatto_protozero::Fields;
use esatto_schema::TracePacketReader;
use esatto_tests::{Harness, Skip, wait_until, wire};

use crate::run::{Run, Stage};

const FOR_TESTING: u32 = 900;

pub(super) fn one_session_had_its_own_turn(run: &Run) -> Result<(), Skip> {
    assert_eq!(run.texts("second.pftrace"), ["second"]);
    run.assert_clean("second.pftrace", &[])
}

/// `TestEvent { 1: str, 5: payload }`. Each payload has pieces, each of a number of equal bytes.
fn event(bytes: &[u8]) -> (String, Vec<Vec<(u8, usize)>>) {
    let (mut name, mut levels) = (String::new(), Vec::new());
    let mut fields = Fields::new(bytes);
    for field in fields.by_ref() {
        match field.id {
            1 => name = field.as_str().expect("text").to_owned(),
            5 => payload(field.as_bytes(), &mut levels),
            other => panic!("field {other}"),
        }
    }
    assert!(!fields.is_malformed());
    (name, levels)
}

fn payload(bytes: &[u8], levels: &mut Vec<Vec<(u8, usize)>>) {
    let (mut pieces, mut below) = (Vec::new(), None);
    let mut fields = Fields::new(bytes);
    for field in fields.by_ref() {
        let bytes = field.as_bytes();
        match field.id {
            1 => {
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a piece is of one letter");
                pieces.push((bytes[0], bytes.len()));
            }
            2 => below = Some(bytes),
            other => panic!("field {other}"),
        }
    }
    assert!(!fields.is_malformed());
    levels.push(pieces);
    if let Some(below) = below {
        payload(below, levels);
    }
}

pub(super) fn packets_are_whole(run: &Run) -> Result<(), Skip> {
    let mut seen: Vec<_> = run.fields("trace", FOR_TESTING).iter().map(|bytes| event(bytes)).collect();
    let expected = |name: &str, pieces: usize, size: usize, depth: usize| {
        let piece = |level: usize, i: usize| (b'a' + ((level * pieces + i) % 26) as u8, size);
        (name.to_owned(), (0..depth).map(|level| (0..pieces).map(|i| piece(level, i)).collect()).collect())
    };
    let other_thread = seen.iter().position(|(name, _)| name == "another thread").expect("is there");
    assert_eq!(seen.remove(other_thread), expected("another thread", 2, 10, 1));
    // The packets of one thread, in their order.
    assert_eq!(
        seen,
        [
            expected("small", 1, 5, 1),
            expected("large", 40, 1000, 1),
            expected("one large piece", 1, 30000, 1),
            expected("deep", 3, 5000, 8),
            expected("behind", 2, 5, 2),
            expected("last", 1, 1, 1),
        ]
    );
    for packet in run.packets("trace") {
        let reader = TracePacketReader::new(&packet);
        assert_eq!(reader.previous_packet_dropped().filter(|&loss| loss > 1), None);
        if reader.for_testing().is_some() {
            assert!(reader.timestamp().is_some_and(|ts| ts > 0), "the field after a long message");
            assert!(reader.trusted_packet_sequence_id().is_some());
        }
    }
    run.assert_clean("trace", &[])
}

pub(super) fn nothing_else_is_lost(run: &Run) -> Result<(), Skip> {
    for trace in ["trace", "second"] {
        assert_eq!(run.texts(trace), ["after a break", "again", "in the end"]);
    }
    assert_eq!(run.texts("third"), ["after a break"]);
    // One packet was left open.
    run.assert_clean("trace", &["traced_buf_sequence_packet_loss"])
}

pub(super) fn both_are_there(run: &Run) -> Result<(), Skip> {
    assert_eq!(run.texts("trace"), ["flushed", "behind"]);
    run.assert_clean("trace", &[])
}

pub(super) fn a_loss_is_told(run: &Run) -> Result<(), Skip> {
    let packets = run.packets("trace");
    let lost =
        |packet: &&Vec<u8>| TracePacketReader::new(packet).previous_packet_dropped().is_some_and(|loss| loss > 1);
    assert!(packets.iter().any(|packet| lost(&packet)), "somewhere it says that packets are missing");
    assert!(run.texts("trace").iter().any(|text| text == "there is room again"));
    let tolerated = ["traced_buf_trace_writer_packet_loss", "packet_loss", "traced_buf_sequence_packet_loss"];
    run.assert_clean("trace", &tolerated)
}

pub(super) fn each_instance_recorded(run: &Run) -> Result<(), Skip> {
    for trace in ["trace", "second"] {
        assert_eq!(run.texts(trace), ["alive"]);
        run.assert_clean(trace, &[])?;
    }
    Ok(())
}

pub(super) fn what_came_meanwhile_is_there(run: &Run) -> Result<(), Skip> {
    assert_eq!(run.texts("trace"), ["before", "meanwhile"]);
    run.assert_clean("trace", &[])
}

pub(super) fn everything_is_there(run: &Run) -> Result<(), Skip> {
    assert_eq!(run.texts("trace"), ["before", "meanwhile", "after"]);
    // One flush fails, as expected.
    run.assert_clean("trace", &["traced_flushes_failed", "traced_final_flush_failed"])
}

/// The program waits until the test has read the state.
pub(super) fn the_service_has_the_descriptors(harness: &Harness, stage: Stage) {
    if !matches!(stage, Stage::Ours | Stage::Theirs) {
        return;
    }
    let descriptor = |name: &str| {
        let state = harness.state();
        let place = state.data_sources.iter().position(|source| source == name)?;
        Some(state.descriptors[place].clone())
    };
    let version = |descriptor: &[u8]| wire::last(descriptor, 10).map(|program| wire::int(program, 1));
    let updated = || descriptor("c.telling").filter(|descriptor| version(descriptor) == Some(4712));
    let telling = wait_until("the service has the new program", updated);
    assert_eq!(wire::int(&telling, 2), 1);
    let silent = descriptor("c.silent").expect("it came before");
    assert_eq!((version(&silent), wire::int(&silent, 2)), (Some(4711), 0));
    harness.write("go_on", "");
}
