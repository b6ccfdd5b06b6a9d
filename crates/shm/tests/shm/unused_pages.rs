//! The search for chunks must not use up memory: reading a page of a file that was never written
//! allocates it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use esatto_shm::{
    MappedRegion, Memory, ServiceRegion, Smb,
    abi::{ChunkHeader, Packets, PageLayout, PageSize},
};

const SIZE: usize = 8 << 20;
const HEADER: ChunkHeader = ChunkHeader { chunk_id: 7, writer_id: 3, packets: Packets(1) };

/// Makes the memory of a producer that has not written anything, and the service's view of it.
fn idle() -> (Arc<MappedRegion>, ServiceRegion, Smb<Arc<dyn Memory>>) {
    let region = Arc::new(MappedRegion::create(SIZE).unwrap());
    let memory: Arc<dyn Memory> = region.clone();
    let service = ServiceRegion::new(memory.clone(), PageSize::DEFAULT).unwrap();
    (region, service, Smb::new(memory, PageSize::DEFAULT).unwrap())
}

fn allocated(fd: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(fd).unwrap().st_blocks as u64 * 512
}

fn scraped(service: &ServiceRegion) -> Vec<u32> {
    let mut pages = Vec::new();
    service.scrape(&mut Vec::new(), |_| true, |info, _| pages.push(info.page));
    pages
}

#[test]
fn scraping_an_idle_producer_allocates_nothing() {
    let (region, service, _) = idle();
    assert_eq!(scraped(&service), []);
    assert_eq!(allocated(region.fd()), 0);
}

#[test]
fn commits_of_pages_that_were_never_used_allocate_nothing() {
    let (region, service, _) = idle();
    for page in 0..service.pages() {
        assert!(service.take_chunk(page, 0, &mut Vec::new()).is_err());
        assert!(service.discard_chunk(page, 0).is_err());
        service.expect_chunk(page);
    }
    assert_eq!(allocated(region.fd()), 0);
}

#[test]
fn scraping_finds_chunks_among_pages_that_were_never_used() {
    let (region, service, smb) = idle();
    assert_eq!(scraped(&service), []);
    let write = |page| {
        assert!(smb.try_partition(page, PageLayout::Div1));
        let chunk = smb.acquire_for_writing(page, 0, HEADER).unwrap();
        smb.complete(chunk).unwrap();
    };
    write(2047);
    write(5);
    assert_eq!(scraped(&service), [5, 2047]);
    service.take_chunk(5, 0, &mut Vec::new()).unwrap();
    // A page that was used once is read again.
    write(5);
    assert_eq!(scraped(&service), [5, 2047]);
    assert_eq!(allocated(region.fd()), 2 * 4096);
}
