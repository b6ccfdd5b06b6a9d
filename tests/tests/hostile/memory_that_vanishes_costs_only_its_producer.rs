//! A producer's shared memory may lose its pages while the service reads it. The service refuses
//! memory that allows it, and survives unforeseen cases (`docs/spec/shared-memory.md` §2, §19).

use esatto_tests::bystander;
use esatto_tests::raw::{self, ONE_COMPLETE, RawChunk, RawConsumer, RawProducer, moved, packet};
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, Program};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);
const HUGE_PAGE: u64 = 2 << 20;
const SETTING: &str = "/proc/sys/vm/nr_hugepages";

/// A producer that brings memory along, and whether the service adopted that.
fn offer(harness: &Harness, memory: BorrowedFd<'_>) -> (RawProducer, bool) {
    // Pages of 4 KiB; with scraping, and with its own memory.
    let introduction = Proto::new().int(1, 4096).bytes(3, "attacker").int(4, 1).int(6, 1);
    let mut producer = RawProducer::introduce(Peer::producer(harness), &introduction, &[memory]);
    let adopted = wire::int(&producer.answer, 1) != 0;
    producer.set_memory(memory.try_clone_to_owned().expect("a descriptor"));
    assert!(producer.peer.call("Sync", &Proto::new()).success);
    (producer, adopted)
}

/// Some huge pages, as a machine may have them that runs a database.
struct HugePages {
    before: String,
}

impl HugePages {
    fn configure() -> Self {
        let before = std::fs::read_to_string(SETTING).unwrap_or_default();
        if let Err(error) = std::fs::write(SETTING, "4") {
            eprintln!("no huge pages ({error}): only that they are refused is tested");
        }
        Self { before }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let _ = std::fs::write(SETTING, &self.before);
    }
}

fn huge(bytes: u64) -> OwnedFd {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB;
    let memory = memfd_create("smb", flags).expect("a memfd of huge pages");
    ftruncate(&memory, bytes).expect("a size");
    memory
}

/// Seals do not keep anybody from punching a hole; the page that was there is free for others then.
#[test]
fn a_memfd_of_huge_pages_is_refused() {
    let _pages = HugePages::configure();
    bystander::watch(|harness, service, _| {
        let memory = huge(HUGE_PAGE);
        fcntl_add_seals(&memory, SEALS).expect("seals");
        let (mut producer, adopted) = offer(harness, memory.as_fd());
        if adopted {
            fallocate(&memory, FallocateFlags::empty(), 0, HUGE_PAGE).expect("a page");
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&memory, hole, 0, HUGE_PAGE).expect("a hole");
            // All others.
            let rest = huge(64 * HUGE_PAGE);
            for page in 0..64 {
                let _ = fallocate(&rest, FallocateFlags::empty(), page * HUGE_PAGE, HUGE_PAGE);
            }
            let (_, frame) = producer.peer.call_frame("CommitData", &Proto::new().message(1, &moved(0, 0, 1)));
            producer.peer.send(&frame);
            let _ = producer.peer.read();
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(service.is_running(), "the service died of it");
        }
        assert!(!adopted, "memory of huge pages is adopted");
        service.wait_for_log("is not made of ordinary pages");
    });
}

/// Makes the service believe that all memory is sealed. It stands for a way to take pages away that
/// the checks do not know.
fn blind(harness: &Harness, command: &mut Command) {
    let source = r#"
        #include <stdarg.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int fcntl(int fd, int command, ...) {
            va_list rest;
            va_start(rest, command);
            long argument = va_arg(rest, long);
            va_end(rest);
            const int get_seals = 1034, all_seals = 7;
            return command == get_seals ? all_seals : (int)syscall(SYS_fcntl, fd, command, argument);
        }
    "#;
    let (source, library): (PathBuf, PathBuf) = (harness.write("blind.c", source), harness.path("blind.so"));
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(built.expect("a C compiler").success());
    command.env("LD_PRELOAD", library);
}

/// A producer whose memory can be taken away, with a session that scrapes it.
fn start_victim(harness: &Harness) -> (RawProducer, RawConsumer, u64) {
    let memory = memfd_create("smb", MemfdFlags::CLOEXEC).expect("a memfd");
    ftruncate(&memory, 16 << 10).expect("a size");
    let (mut producer, adopted) = offer(harness, memory.as_fd());
    assert!(adopted, "the service is not blind");
    producer.offer("attacked");
    let mut consumer = RawConsumer::connect(harness);
    consumer.enable(&raw::config(1024, &["attacked"]));
    let buffer = producer.await_start().buffer;
    assert!(producer.call("RegisterTraceWriter", &Proto::new().int(1, 1).int(2, buffer)).success);
    for page in 0..4 {
        let chunk = RawChunk::new(1, page, &[packet(page.into(), "attacker")]);
        producer.put(page as usize, ONE_COMPLETE, &chunk);
    }
    let first = Proto::new().message(1, &moved(0, 0, buffer));
    assert!(producer.commit(&first).success);
    (producer, consumer, buffer)
}

fn expect_disconnection(service: &mut Program, producer: &mut RawProducer, before: usize) {
    while producer.peer.read().is_some() {}
    assert!(service.is_running(), "the service died of it");
    let lines = service.log().matches("the pages of the shared memory were taken away").count();
    assert_eq!(lines, before + 1, "the log says it once for each producer");
}

#[test]
fn a_fault_in_its_memory_disconnects_a_producer() {
    bystander::watch_with(blind, |harness, service, _| {
        // While a commit is copied.
        let (mut producer, mut consumer, buffer) = start_victim(harness);
        ftruncate(producer.memory(), 0).expect("nothing keeps it");
        let entries = (0..4).fold(Proto::new(), |request, page| request.message(1, &moved(page, 0, buffer)));
        let (_, frame) = producer.peer.call_frame("CommitData", &entries);
        producer.peer.send(&frame);
        expect_disconnection(service, &mut producer, 0);
        // Packets that came before stay.
        consumer.disable();
        assert_eq!(consumer.read_texts(), [(0, "attacker".to_owned())]);

        // While a flush looks for chunks.
        let (mut producer, mut consumer, _) = start_victim(harness);
        ftruncate(producer.memory(), 0).expect("nothing keeps it");
        let flush = consumer.flush(0);
        let id = producer.await_flush();
        let acknowledgement = Proto::new().int(3, id);
        let (_, frame) = producer.peer.call_frame("CommitData", &acknowledgement);
        producer.peer.send(&frame);
        assert!(consumer.peer.reply_to(flush).success);
        expect_disconnection(service, &mut producer, 1);
    });
}
