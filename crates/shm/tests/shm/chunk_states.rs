use std::sync::Arc;

use esatto_shm::{
    Memory, PrivateRegion, Skip, Smb,
    abi::{ChunkFlags, ChunkHeader, ChunkState, Packets, PageLayout, PageSize, PageWord},
};

fn smb() -> Smb<Arc<PrivateRegion>> {
    Smb::new(Arc::new(PrivateRegion::new(16384)), PageSize::DEFAULT).unwrap()
}

const HEADER: ChunkHeader = ChunkHeader { chunk_id: 7, writer_id: 3, packets: Packets(2) };

#[test]
fn zeroed_memory_is_all_free_pages() {
    let smb = smb();
    assert_eq!(smb.pages(), 4);
    for page in 0..4 {
        assert_eq!(smb.page_word(page), PageWord::FREE);
    }
}

#[test]
fn a_page_is_partitioned_once() {
    let smb = smb();
    assert!(smb.try_partition(1, PageLayout::Div4));
    assert_eq!(smb.page_word(1).0, 0x3000_0000);
    assert!((0..4).all(|i| smb.page_word(1).state(i) == Some(ChunkState::Free)));
    assert!(!smb.try_partition(1, PageLayout::Div4));
    assert!(!smb.try_partition(1, PageLayout::Div1));
}

#[test]
fn a_chunk_is_acquired_for_writing_once() {
    let smb = smb();
    smb.try_partition(0, PageLayout::Div4);
    let chunk = smb.acquire_for_writing(0, 2, HEADER).unwrap();
    assert_eq!(smb.page_word(0).0, 0x3000_0010);
    assert_eq!(smb.header(&chunk), HEADER);
    assert_eq!((chunk.offset(), chunk.size(), chunk.payload_size()), (0x800, 1020, 1012));
    assert_eq!(
        smb.acquire_for_writing(0, 2, HEADER).unwrap_err(),
        Skip::WrongState { state: ChunkState::BeingWritten }
    );
}

#[test]
fn only_complete_chunks_are_read_and_only_once() {
    let smb = smb();
    smb.try_partition(0, PageLayout::Div1);
    let state = |s| Skip::WrongState { state: s };
    assert_eq!(smb.acquire_for_reading(0, 0).unwrap_err(), state(ChunkState::Free));
    let chunk = smb.acquire_for_writing(0, 0, HEADER).unwrap();
    assert_eq!(smb.acquire_for_reading(0, 0).unwrap_err(), state(ChunkState::BeingWritten));
    smb.complete(chunk).unwrap();
    let _chunk = smb.acquire_for_reading(0, 0).unwrap();
    assert_eq!(smb.acquire_for_reading(0, 0).unwrap_err(), state(ChunkState::BeingRead));
}

#[test]
fn freeing_the_last_chunk_unpartitions_the_page() {
    let smb = smb();
    smb.try_partition(0, PageLayout::Div2);
    let chunks = [0, 1].map(|i| {
        let chunk = smb.acquire_for_writing(0, i, HEADER).unwrap();
        smb.complete(chunk).unwrap();
        smb.acquire_for_reading(0, i).unwrap()
    });
    let [first, second] = chunks;
    let header_at = first.offset();
    smb.free(first).unwrap();
    assert_eq!(smb.page_word(0).0, 0x2000_0008);
    let mut header = [0xff; 8];
    esatto_shm::Region::read_into(smb.region(), header_at, &mut header);
    assert_eq!(header, [0; 8]);
    smb.free(second).unwrap();
    assert_eq!(smb.page_word(0), PageWord::FREE);
}

#[test]
fn chunks_that_do_not_exist_are_not_acquired() {
    let smb = smb();
    let none = |chunk, chunks| Skip::NoSuchChunk { chunk, chunks };
    assert_eq!(smb.acquire_for_writing(0, 0, HEADER).unwrap_err(), none(0, 0));
    smb.try_partition(0, PageLayout::Div14);
    assert_eq!(smb.acquire_for_writing(0, 14, HEADER).unwrap_err(), none(14, 14));
    assert_eq!(smb.acquire_for_writing(0, u32::MAX, HEADER).unwrap_err(), none(u32::MAX, 14));
    assert_eq!(smb.acquire_for_writing(4, 0, HEADER).unwrap_err(), Skip::NoSuchPage { page: 4, pages: 4 });
    for word in [0x6000_0000_u32, 0x7000_0000, 0x8000_0000] {
        let region = PrivateRegion::from_bytes(&{
            let mut bytes = vec![0; 4096];
            bytes[..4].copy_from_slice(&word.to_ne_bytes());
            bytes
        });
        let smb = Smb::new(Arc::new(region), PageSize::DEFAULT).unwrap();
        assert_eq!(smb.acquire_for_writing(0, 0, HEADER).unwrap_err(), none(0, 0));
    }
}

#[test]
fn a_header_has_count_and_flags_in_one_field() {
    let smb = smb();
    smb.try_partition(0, PageLayout::Div1);
    let flags = ChunkFlags::FIRST_CONTINUES.with(ChunkFlags::LAST_CONTINUES);
    let header = ChunkHeader { packets: Packets::new(5, flags), ..HEADER };
    smb.acquire_for_writing(0, 0, header).unwrap();
    let mut bytes = [0; 8];
    esatto_shm::Region::read_into(smb.region(), 8, &mut bytes);
    assert_eq!(bytes, [7, 0, 0, 0, 3, 0, 0x05, 0x0c]);
}

#[test]
fn a_region_without_a_page_is_refused() {
    let region: Arc<dyn Memory> = Arc::new(PrivateRegion::new(4095));
    assert!(Smb::new(region, PageSize::DEFAULT).is_err());
}
