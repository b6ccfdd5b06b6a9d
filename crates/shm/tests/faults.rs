//! Memory whose pages are taken away while it is mapped. A read returns an error, and the process
//! continues.
#![cfg(any(target_os = "linux", target_os = "android"))]

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::Arc;

use esatto_shm::{
    HeldPayload, Lost, MappedRegion, Memory, Region, ServiceRegion, Skip, Smb,
    abi::{ChunkHeader, Packets, PageLayout, PageSize},
    faults,
};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

const SIZE: u64 = 64 << 10;
const HEADER: ChunkHeader = ChunkHeader { chunk_id: 7, writer_id: 3, packets: Packets(1) };

/// Memfd that was mapped without checks, with a complete chunk in each of its pages.
struct Victim {
    fd: OwnedFd,
    service: ServiceRegion,
    region: Arc<MappedRegion>,
}

impl Victim {
    fn new() -> Self {
        faults::install();
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, SIZE).unwrap();
        let region = Arc::new(MappedRegion::unchecked(fd.try_clone().unwrap()).unwrap());
        let memory: Arc<dyn Memory> = region.clone();
        let smb = Smb::new(memory.clone(), PageSize::DEFAULT).unwrap();
        for page in 0..smb.pages() {
            assert!(smb.try_partition(page, PageLayout::Div1));
            let chunk = smb.acquire_for_writing(page, 0, HEADER).unwrap();
            smb.complete(chunk).unwrap();
        }
        Self { fd, service: ServiceRegion::new(memory, PageSize::DEFAULT).unwrap(), region }
    }

    fn take(&self, page: u32) -> Result<(), Skip> {
        self.service.take_chunk(page, 0, &mut Vec::new()).map(drop)
    }

    fn truncate(&self) {
        ftruncate(&self.fd, 0).unwrap();
    }
}

#[test]
fn taking_a_chunk_of_lost_memory_is_an_error() {
    let (victim, other) = (Victim::new(), Victim::new());
    let before = faults::survived();
    assert_eq!(victim.take(0), Ok(()));
    victim.truncate();
    assert!(victim.take(1).is_err());
    assert!(victim.region.is_lost());
    assert!(faults::survived() > before);
    // Each further attempt also fails.
    for page in 0..16 {
        assert!(victim.take(page).is_err());
    }
    // Other memory is unchanged.
    assert!(!other.region.is_lost());
    assert_eq!(other.take(1), Ok(()));
}

#[test]
fn a_fault_within_a_copy_is_an_error() {
    let victim = Victim::new();
    let mut out = Vec::new();
    let appended = victim.service.take_chunk_with(1, 0, |_, payload: HeldPayload<'_>| {
        victim.truncate();
        payload.append_to(&mut out)
    });
    assert_eq!(appended, Ok(Err(Lost)));
    assert_eq!(out.len(), 4080);
    let victim = Victim::new();
    let mut out = [1; 100];
    let copied = victim.service.take_chunk_with(1, 0, |_, payload: HeldPayload<'_>| {
        victim.truncate();
        payload.copy_to(&mut out)
    });
    assert_eq!(copied, Ok(Err(Lost)));
    // The chunk that was held is lost, and nothing more is found.
    assert_eq!(
        victim.service.take_chunk(2, 0, &mut Vec::new()).unwrap_err(),
        Skip::NoSuchChunk { chunk: 0, chunks: 0 }
    );
}

#[test]
fn scraping_of_lost_memory_finds_nothing() {
    for (look, expected) in [(1, 0), (2, 3)] {
        let victim = Victim::new();
        let (mut looks, mut found) = (0, 0);
        victim.service.scrape(
            &mut Vec::new(),
            |info| {
                looks += u32::from(info.page == 3);
                if info.page == 3 && looks == look {
                    victim.truncate();
                }
                true
            },
            |_, _| found += 1,
        );
        assert_eq!(found, expected, "lost during look {look}");
        assert!(victim.region.is_lost());
    }
}

#[test]
fn a_lost_mapping_is_unmapped_and_the_next_one_is_whole() {
    for _ in 0..3 {
        let victim = Victim::new();
        assert!(!victim.region.is_lost());
        victim.truncate();
        assert!(victim.take(0).is_err());
    }
}

/// A fault outside of the mapped regions ends the process, as without the handler.
#[test]
fn faults_elsewhere_are_passed_on() {
    if std::env::var_os("ESATTO_FAULT_ELSEWHERE").is_some() {
        let victim = Victim::new();
        // A second mapping, which is not in the list.
        let (size, access) = (SIZE as usize, libc::PROT_READ);
        // SAFETY: a new mapping changes no memory of this process.
        let other = unsafe {
            libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, victim.fd.as_raw_fd(), 0).cast::<u8>()
        };
        assert_ne!(other.addr(), usize::MAX);
        victim.truncate();
        // SAFETY: it is mapped; the test wants the access to fault.
        let byte = unsafe { other.read_volatile() };
        unreachable!("read {byte}");
    }
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new(this);
    child.args(["--exact", "faults_elsewhere_are_passed_on"]).env("ESATTO_FAULT_ELSEWHERE", "1");
    let status = child.output().unwrap().status;
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}
