use esatto_shm::{
    Memory, PrivateRegion, Region, ServiceRegion, Skip, Smb,
    abi::{ChunkHeader, ChunkState, Packets, PageLayout, PageSize, PageWord},
    sync::Ordering,
};
use std::sync::Arc;

const HEADER: ChunkHeader = ChunkHeader { chunk_id: 7, writer_id: 3, packets: Packets(2) };

fn hostile() -> (Arc<PrivateRegion>, ServiceRegion, Smb<Arc<dyn Memory>>) {
    let region = Arc::new(PrivateRegion::new(16384));
    let memory: Arc<dyn Memory> = region.clone();
    let service = ServiceRegion::new(memory.clone(), PageSize::DEFAULT).unwrap();
    (region, service, Smb::new(memory, PageSize::DEFAULT).unwrap())
}

#[test]
fn committing_a_free_chunk_changes_nothing() {
    let (region, service, _) = hostile();
    let mut out = Vec::new();
    assert!(service.take_chunk(0, 0, &mut out).is_err());
    assert!(service.take_chunk(4, 0, &mut out).is_err());
    assert!(service.take_chunk(u32::MAX, u32::MAX, &mut out).is_err());
    let mut bytes = vec![1; 16384];
    region.read_into(0, &mut bytes);
    assert!(bytes.iter().all(|b| *b == 0));
}

#[test]
fn a_layout_changed_while_being_read_is_given_up() {
    for word in [0, 0x2000_0002, 0x5fff_ffff, 0x6000_0002, 0x1000_0003, u32::MAX] {
        let (region, _, smb) = hostile();
        smb.try_partition(0, PageLayout::Div1);
        let chunk = smb.acquire_for_writing(0, 0, HEADER).unwrap();
        smb.complete(chunk).unwrap();
        let chunk = smb.acquire_for_reading(0, 0).unwrap();
        region.atomic_u32(0).store(word, Ordering::Relaxed);
        assert_eq!(smb.free(chunk).unwrap_err(), Skip::Changed { word: PageWord(word) });
        assert_eq!(region.atomic_u32(0).load(Ordering::Relaxed), word);
    }
}

#[test]
fn no_page_word_harms_the_service() {
    let (region, service, _) = hostile();
    let mut out = Vec::new();
    let mut words: Vec<u32> = (0..32).map(|bit| 1 << bit).collect();
    words.extend((0..16).map(|top| top << 28 | 0x0fff_ffff));
    words.extend((0..16).map(|top| top << 28 | 0x0555_5555));
    for word in words {
        for page in 0..4 {
            region.atomic_u32(page * 4096).store(word, Ordering::Relaxed);
        }
        for at in (8..4096).step_by(4) {
            region.atomic_u32(3 * 4096 + at).store(0xffff_ffff, Ordering::Relaxed);
        }
        service.scrape(
            &mut Vec::new(),
            |_| true,
            |info, payload| {
                assert!(info.writer_id != 0 && payload.len() <= 4080);
            },
        );
        for chunk in 0..16 {
            let _ = service.take_chunk(3, chunk, &mut out);
            let _ = service.discard_chunk(2, chunk);
        }
    }
}

#[test]
fn a_chunk_of_writer_0_is_freed_and_not_delivered() {
    let (_, service, smb) = hostile();
    smb.try_partition(0, PageLayout::Div1);
    let header = ChunkHeader { writer_id: 0, ..HEADER };
    let chunk = smb.acquire_for_writing(0, 0, header).unwrap();
    smb.complete(chunk).unwrap();
    assert_eq!(service.take_chunk(0, 0, &mut Vec::new()).unwrap_err(), Skip::NoWriter);
    assert_eq!(smb.page_word(0), PageWord::FREE);
}

#[test]
fn a_discarded_chunk_is_free() {
    let (_, service, smb) = hostile();
    smb.try_partition(0, PageLayout::Div1);
    let chunk = smb.acquire_for_writing(0, 0, HEADER).unwrap();
    assert_eq!(service.discard_chunk(0, 0).unwrap_err(), Skip::WrongState { state: ChunkState::BeingWritten });
    smb.complete(chunk).unwrap();
    service.discard_chunk(0, 0).unwrap();
    assert_eq!(smb.page_word(0), PageWord::FREE);
}

#[cfg(target_os = "linux")]
mod descriptors {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;

    use esatto_shm::{Error, MappedRegion, Memory, Region, sync::Ordering};
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};

    const ALL: SealFlags = SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW);

    fn memfd(size: u64, seals: SealFlags) -> OwnedFd {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, size).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        fd
    }

    fn refused(fd: OwnedFd, page_size: usize) -> Error {
        MappedRegion::from_producer(fd, page_size).unwrap_err()
    }

    #[test]
    fn each_side_accepts_the_memory_of_the_other() {
        let made = MappedRegion::create(16384).unwrap();
        assert_eq!(fcntl_get_seals(made.fd()).unwrap(), ALL);
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&made.fd()));
        let name = std::fs::read_link(link).unwrap();
        assert!(name.to_str().unwrap().starts_with("/memfd:perfetto_shmem"));
        let fd = made.fd().try_clone_to_owned().unwrap();
        let (adopted, geometry) = MappedRegion::from_producer(fd, 4096).unwrap();
        assert_eq!((geometry.size, geometry.pages(), adopted.size()), (16384, 4, 16384));
        made.atomic_u32(4096).store(0x1234_5678, Ordering::Relaxed);
        assert_eq!(adopted.atomic_u32(4096).load(Ordering::Relaxed), 0x1234_5678);
        let fd = made.fd().try_clone_to_owned().unwrap();
        let mapped = MappedRegion::from_service(fd).unwrap();
        assert_eq!(mapped.atomic_u32(4096).load(Ordering::Relaxed), 0x1234_5678);
    }

    #[test]
    fn memory_without_the_seals_is_refused() {
        for seals in [
            SealFlags::empty(),
            SealFlags::SHRINK,
            SealFlags::SHRINK | SealFlags::GROW,
            SealFlags::SEAL | SealFlags::GROW,
        ] {
            let missing = ALL.difference(seals).bits();
            assert_eq!(refused(memfd(16384, seals), 4096), Error::MissingSeals { seals: seals.bits(), missing });
        }
    }

    #[test]
    fn memory_sealed_against_writing_is_refused() {
        for extra in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
            let seals = ALL | extra;
            let error = refused(memfd(16384, seals), 4096);
            assert_eq!(error, Error::WriteSealed { seals: seals.bits() });
        }
    }

    #[test]
    fn memory_of_the_wrong_size_is_refused() {
        for (size, page_size) in [(0, 4096), (10240, 4096), (4096, 8192), (64 << 20, 4096)] {
            assert!(matches!(refused(memfd(size, ALL), page_size), Error::Size { .. }), "{size}");
        }
        for page_size in [0, 12288, 65536, 4095] {
            let error = refused(memfd(1 << 20, ALL), page_size);
            assert_eq!(error, Error::PageSize { bytes: page_size });
        }
        assert!(matches!(MappedRegion::from_service(memfd(0, ALL)).unwrap_err(), Error::Size { bytes: 0, .. }));
    }

    /// Tells `cargo xtask test` that the test of this thread cannot run here.
    fn skip(reason: &str) {
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        eprintln!("SKIP {name}: {reason}");
        if let Some(file) = std::env::var_os("ESATTO_SKIPS") {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
            file.and_then(|mut file| writeln!(file, "{name}\t{reason}")).expect("the skip is noted");
        }
    }

    /// Holes that are punched into it take its pages away in spite of its seals.
    #[test]
    fn memory_of_huge_pages_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        let Ok(huge) = memfd_create("test", flags) else {
            return skip("no huge pages");
        };
        ftruncate(&huge, 2 << 20).unwrap();
        fcntl_add_seals(&huge, ALL).unwrap();
        let error = refused(huge.try_clone().unwrap(), 4096);
        assert!(matches!(error, Error::NotPlainMemory { .. }), "{error}");
        let error = MappedRegion::from_service(huge).unwrap_err();
        assert!(matches!(error, Error::NotPlainMemory { .. }), "{error}");
    }

    /// A process that poses as the service could take its pages away.
    #[test]
    fn memory_of_a_service_also_needs_the_seals() {
        let error = MappedRegion::from_service(memfd(16384, SealFlags::SEAL | SealFlags::GROW)).unwrap_err();
        assert_eq!(error, Error::MissingSeals { seals: 5, missing: 2 });
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(MappedRegion::from_service(null.into()), Err(Error::NotMemfd { .. })));
    }

    #[test]
    fn a_file_that_is_no_memfd_is_refused() {
        let (pipe, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(matches!(refused(pipe.into(), 4096), Error::NotMemfd { .. }));
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(refused(null.into(), 4096), Error::NotMemfd { .. }));
    }

    #[test]
    fn errors_name_the_wrong_value() {
        let error = refused(memfd(16384, SealFlags::SHRINK), 4096).to_string();
        assert_eq!(error, "shared memory has seals 0x2 and lacks 0x5");
    }
}
