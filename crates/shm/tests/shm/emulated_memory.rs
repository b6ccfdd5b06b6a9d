use esatto_shm::{ChunkInfo, Fragment, Fragments, Options, Skip, abi::PageSize};

use crate::rig::{Rig, nested_packet, raw_packet, test_packet};

fn emulated(self_scraping: bool) -> Options {
    let mut options = Options::default();
    options.emulation = true;
    options.self_scraping = self_scraping;
    options
}

#[test]
fn a_chunk_is_sent_whole_and_freed() {
    let rig = Rig::with_options(16384, emulated(false));
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    writer.flush();
    let commit = rig.commit();
    let data = commit.moves[0].data.as_ref().unwrap();
    assert_eq!(data.len(), 4088);
    let (info, payload) = ChunkInfo::from_data(0, 0, data, true).unwrap();
    assert_eq!((info.writer_id, info.chunk_id, info.count), (1, 0, 2));
    assert!(matches!(Fragments::new(payload, 2).next(), Some(Fragment::Data(d)) if d.len() == 13));
    assert_eq!(rig.word(0).0, 0);
    assert_eq!(rig.header(0), Default::default());
}

#[test]
fn large_requests_are_split_with_the_flush_id_in_the_last() {
    let rig = Rig::with_options(1 << 20, emulated(false));
    let mut writer = rig.writer();
    for _ in 0..40 {
        raw_packet(&mut writer, 4072);
    }
    writer.flush();
    rig.acknowledge_flush(4);
    let commits = rig.commits();
    let shape: Vec<_> = commits.iter().map(|c| (c.moves.len(), c.flush_request_id)).collect();
    assert_eq!(shape, [(31, 0), (9, 4)]);
}

#[test]
fn a_needed_patch_follows_the_unpatched_copy() {
    let rig = Rig::with_options(1 << 20, emulated(false));
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "first");
    nested_packet(&mut writer, 2, 90);
    writer.flush();
    let commit = rig.commit();
    assert_eq!((commit.moves.len(), commit.patches.len()), (3, 1));
    let data = commit.moves[0].data.as_ref().unwrap();
    assert_eq!(data[8 + 24..8 + 28], [0; 4]);
}

#[test]
fn unfinished_chunks_are_sent_before_the_acknowledgement() {
    for self_scraping in [false, true] {
        let rig = Rig::with_options(16384, emulated(self_scraping));
        let mut writer = rig.writer();
        test_packet(&mut writer, 1, "one");
        rig.acknowledge_flush(8);
        let commits = rig.commits();
        if !self_scraping {
            assert_eq!(commits.len(), 1);
            continue;
        }
        let [scraped, acknowledged] = &commits[..] else { panic!("{commits:?}") };
        assert_eq!((scraped.flush_request_id, acknowledged.flush_request_id), (0, 8));
        let entry = &scraped.moves[0];
        assert!(entry.incomplete && entry.target_buffer == 1);
        let (info, _) = ChunkInfo::from_data(0, 0, entry.data.as_ref().unwrap(), false).unwrap();
        assert_eq!(info.finished_count(), 1);
        // Later the same chunk is sent again, complete.
        writer.flush();
        let commit = rig.commit();
        assert!(!commit.moves[0].incomplete);
    }
}

#[test]
fn unfinished_chunks_are_sent_at_the_end_of_a_process() {
    let rig = Rig::with_options(16384, emulated(true));
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    rig.arbiter.queue_unfinished();
    let commit = rig.commit();
    assert!(commit.moves[0].incomplete);
    // With shared memory the service scrapes.
    let rig = Rig::with_options(16384, Options::default());
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    rig.arbiter.queue_unfinished();
    assert!(rig.commits().is_empty());
}

#[test]
fn data_of_any_length_is_checked() {
    let whole = [1; 70000];
    for (len, want) in [
        (0, Err(Skip::DataSize { len: 0 })),
        (7, Err(Skip::DataSize { len: 7 })),
        (8, Ok(0)),
        (65535, Ok(65527)),
        (65536, Err(Skip::DataSize { len: 65536 })),
    ] {
        let got = ChunkInfo::from_data(0, 0, &whole[..len], true);
        assert_eq!(got.map(|(_, payload)| payload.len()), want);
    }
    assert_eq!(ChunkInfo::from_data(0, 0, &[0; 100], true).unwrap_err(), Skip::NoWriter);
}

#[test]
fn pages_may_have_any_size_of_the_abi() {
    let rig = Rig::with_page_size(1 << 20, PageSize::new(32768).unwrap(), emulated(false));
    let mut writer = rig.writer();
    test_packet(&mut writer, 1, "one");
    writer.flush();
    assert_eq!(rig.commit().moves[0].data.as_ref().unwrap().len(), 32760);
}
