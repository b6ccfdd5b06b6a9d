use esatto_shm::{CommitRequest, Options, abi::ChunkFlags};

use crate::rig::{Rig, first_packet, nested_packet, test_packet};

type Summary = Vec<(u32, Vec<(u16, [u8; 4])>, bool)>;

fn patches(commits: &[CommitRequest]) -> Summary {
    commits
        .iter()
        .flat_map(|c| &c.patches)
        .map(|p| {
            let values = p.patches.iter().map(|v| (v.offset, v.data)).collect();
            (p.chunk_id, values, p.has_more_patches)
        })
        .collect()
}

fn value(len: u32) -> [u8; 4] {
    esatto_protozero::wire::redundant_varint4(len)
}

#[test]
fn lengths_open_across_a_boundary_are_patched_in_ascending_order() {
    let rig = Rig::new(16384);
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "first");
    nested_packet(&mut writer, 2, 90);
    writer.flush();
    let commit = rig.commit();
    assert_eq!(commit.moves.len(), 3);
    assert_eq!(patches(&[commit]), [(0, vec![(24, value(9185)), (29, value(9180))], false)]);
    // The slots in memory are zero until the service patches its copy.
    assert_eq!(rig.payload(0)[24..28], [0; 4]);
}

#[test]
fn an_inner_length_waits_for_the_outer_one() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut outer = message.begin(900);
        {
            let mut inner = outer.begin(5);
            inner.bytes(1, &[1; 5000]);
        }
        // The inner length is known, and another chunk is full. But the outer length comes first.
        outer.bytes(1, &[1; 5000]);
        let commits = rig.commits();
        assert_eq!(commits.iter().map(|c| c.moves.len()).sum::<usize>(), 2);
        assert_eq!(patches(&commits), []);
    }
    // 4 + 4 + 2 = 10, and the inner slot 4 + 1 after it.
    let commits = rig.commits();
    assert_eq!(patches(&commits), [(0, vec![(10, value(10011)), (15, value(5003))], false)]);
}

#[test]
fn older_chunks_are_patched_first() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut outer = message.begin(900);
        outer.bytes(1, &[1; 4080]);
        let mut inner = outer.begin(5);
        inner.bytes(1, &[1; 4080]);
    }
    let all = patches(&rig.commits());
    assert_eq!(all.iter().map(|p| (p.0, p.1.len(), p.2)).collect::<Vec<_>>(), [(0, 1, false), (1, 1, false)]);
}

#[test]
fn a_partly_patched_chunk_has_more() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        // Two siblings: the first crosses chunks and ends, then the next begins in the second
        // chunk.
        message.begin(900).bytes(1, &[1; 4080]);
        let mut second = message.begin(900);
        assert_eq!(patches(&rig.commits()), [], "nothing leaves before a boundary");
        second.bytes(1, &[1; 4080]);
        let first = patches(&rig.commits());
        assert_eq!(first, [(0, vec![(10, value(4083))], false)], "with the next chunk");
    }
    let second = patches(&rig.commits());
    assert_eq!((second[0].0, second[0].2), (1, false));
}

#[test]
fn deep_nesting_is_patched_chunk_by_chunk() {
    let rig = Rig::new(65536);
    let mut writer = rig.writer();
    first_packet(&mut writer);
    let mut packet = writer.new_packet();
    let mut message = packet.message();
    fn nest(mut m: esatto_protozero::Message<'_>, depth: usize) {
        if depth == 0 {
            m.bytes(1, &[1; 5000]);
        } else {
            nest(m.begin(1), depth - 1);
        }
    }
    nest(message.begin(1), 800);
    drop(message);
    drop(packet);
    let all = patches(&rig.commits());
    let counts: Vec<_> = all.iter().map(|p| (p.0, p.1.len(), p.2)).collect();
    assert_eq!(counts.iter().map(|c| c.1).sum::<usize>(), 801);
    for (chunk_id, values, _) in &all {
        assert!(values.is_sorted_by_key(|v| v.0), "chunk {chunk_id}");
    }
}

#[test]
fn lengths_of_one_message_are_right_after_patching() {
    for size in [4096, 8192] {
        for strings in 30..50 {
            let page_size = esatto_shm::abi::PageSize::new(size).unwrap();
            let rig = Rig::with_page_size(65536, page_size, Options::default());
            let mut writer = rig.writer();
            nested_packet(&mut writer, 2, strings);
            writer.flush();
            let commit = rig.commit();
            let mut packet = Vec::new();
            for (i, entry) in commit.moves.iter().enumerate() {
                let mut taken = rig.take(entry.page, entry.chunk);
                for p in commit.patches.iter().filter(|p| p.chunk_id == i as u32) {
                    for patch in &p.patches {
                        let at = usize::from(patch.offset);
                        assert_eq!(taken.payload[at..at + 4], [0; 4]);
                        taken.payload[at..at + 4].copy_from_slice(&patch.data);
                    }
                }
                let esatto_shm::Fragment::Data(data) = taken.fragments()[0] else { panic!() };
                packet.extend_from_slice(data);
            }
            let mut fields = esatto_protozero::Fields::new(&packet);
            let event = fields.by_ref().find(|f| f.id == 900).unwrap();
            assert!(fields.next().is_none() && !fields.is_malformed());
            let payload = esatto_protozero::Fields::new(event.as_bytes()).next().unwrap();
            assert_eq!(payload.as_bytes().len(), 102 * strings);
        }
    }
}

fn direct() -> Options {
    let mut options = Options::default();
    options.direct_patching = true;
    options.batch_delay = core::time::Duration::from_secs(10);
    options
}

#[test]
fn a_length_known_before_sending_is_written_in_place() {
    let rig = Rig::with_options(65536, direct());
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "first");
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut event = message.begin(900);
        event.bytes(1, &[1; 5000]);
        assert_eq!(rig.word(0).0, 0x1000_0001, "kept back");
        assert_eq!(rig.header(0).packets.flags().0, 2 | 4);
    }
    assert_eq!(rig.word(0).0, 0x1000_0003);
    assert_eq!(rig.header(0).packets.flags(), ChunkFlags::LAST_CONTINUES);
    assert_eq!(rig.payload(0)[22..26], value(5003));
    let commit = rig.commit();
    assert_eq!(commit.moves.len(), 1);
    assert!(commit.patches.is_empty());
}

#[test]
fn a_length_known_after_sending_is_an_ordinary_patch() {
    let rig = Rig::with_options(65536, direct());
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "first");
    {
        let mut packet = writer.new_packet();
        let mut message = packet.message();
        let mut event = message.begin(900);
        event.bytes(1, &[1; 5000]);
        let commit = rig.commit();
        assert_eq!((commit.moves.len(), commit.patches.len()), (1, 0));
        assert_eq!(rig.word(0).0, 0x1000_0003);
        assert_eq!(rig.header(0).packets.flags().0, 2 | 4);
    }
    assert_eq!(patches(&rig.commits()), [(0, vec![(22, value(5003))], false)]);
}
