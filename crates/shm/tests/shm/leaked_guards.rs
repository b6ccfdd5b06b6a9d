use esatto_shm::{Fragment, abi::DROP_MARKER_BYTES};

use crate::rig::{Rig, test_packet};

/// First field of the packet after a leak: `previous_packet_dropped` with PRESENT and writer abort.
const LOSS: [u8; 4] = [0xd0, 0x02, 0x81, 0x01];

#[test]
fn a_packet_with_a_leaked_message_is_taken_back() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut nested = message.begin(900);
        nested.bytes(1, b"half a");
        core::mem::forget(nested);
        message.varint(8, 2);
    }
    assert_eq!(writer.abandoned_count(), 1);
    test_packet(&mut writer, 3, "three");
    writer.flush();
    let taken = rig.drain().remove(0);
    assert_eq!(taken.sizes(), [13, 12 + 4, 0]);
    let Fragment::Data(data) = taken.fragments()[1] else { panic!() };
    assert_eq!(data[..6], [LOSS[0], LOSS[1], LOSS[2], LOSS[3], 0x40, 3]);
}

#[test]
fn a_leaked_root_message_voids_the_packet() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        message.varint(8, 1);
        core::mem::forget(message);
    }
    assert_eq!(writer.abandoned_count(), 1);
    test_packet(&mut writer, 2, "two");
    writer.flush();
    let taken = rig.drain().remove(0);
    let fragments = taken.fragments();
    assert_eq!(fragments.len(), 2);
    let Fragment::Data(data) = fragments[0] else { panic!() };
    assert_eq!(data[..4], LOSS);
    assert_eq!(data[4..9], [0xb8, 5, 1, 0x40, 2], "still the first of its sequence");
}

#[test]
fn a_leaked_packet_is_taken_back_by_the_next_one_or_a_flush() {
    for flush in [false, true] {
        let rig = Rig::new(16384);
        let mut writer = rig.writer();
        test_packet(&mut writer, 1, "one");
        let mut packet = writer.new_packet();
        packet.message().varint(8, 2);
        core::mem::forget(packet);
        if flush {
            writer.flush();
        }
        test_packet(&mut writer, 3, "three");
        assert_eq!(writer.abandoned_count(), 1);
        writer.flush();
        let sizes: Vec<_> = rig.drain().iter().map(|t| t.sizes()).collect();
        let want: &[Vec<usize>] = if flush { &[vec![13, 0], vec![16, 0]] } else { &[vec![13, 16, 0]] };
        assert_eq!(sizes, want);
    }
}

#[test]
fn a_leak_in_a_later_chunk_ends_in_the_drop_marker() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut nested = message.begin(900);
        nested.bytes(1, &[7; 5000]);
        core::mem::forget(nested);
    }
    test_packet(&mut writer, 3, "three");
    writer.flush();
    let commits = rig.commits();
    let patches: Vec<_> = commits.iter().flat_map(|c| &c.patches).collect();
    assert_eq!(patches.len(), 1, "the service does not wait for ever");
    assert_eq!(patches[0].patches[0].data, [0x80, 0x80, 0x80, 0x00]);
    assert!(!patches[0].has_more_patches);
    let second = rig.take(1, 0);
    assert_eq!((second.info.flags.0, second.info.count), (1, 1));
    assert_eq!(second.payload[..4], DROP_MARKER_BYTES);
    let third = rig.take(2, 0);
    assert_eq!((third.info.flags.0, third.sizes()), (0, vec![12 + 4, 0]));
    let Fragment::Data(data) = third.fragments()[0] else { panic!() };
    assert_eq!(data[..4], LOSS);
}

#[test]
fn a_leak_while_dropping_changes_nothing() {
    let rig = Rig::new(4096);
    let mut writer = rig.writer();
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut nested = message.begin(900);
        nested.bytes(1, &[7; 5000]);
        core::mem::forget(nested);
    }
    assert_eq!((writer.abandoned_count(), writer.drop_count()), (0, 1));
    rig.drain();
    test_packet(&mut writer, 3, "three");
    writer.flush();
    assert_eq!(rig.drain()[0].info.count, 2);
}
