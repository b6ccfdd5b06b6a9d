//! Models of the service reading chunks that are still being written (§16).

use esatto_shm::{Skip, abi::PageLayout};
use loom::thread;

use crate::{SharedSmb, announce_count, check, fill, header, mark, service, smb, take_filled, write_fragment};

/// Writes two fragments as a writer does: a count is announced when the fragment before the last is
/// in place.
fn write_two(smb: &SharedSmb, index: u32, writer_id: u16) {
    smb.try_partition(0, PageLayout::Div2);
    let chunk = smb.acquire_for_writing(0, index, header(writer_id, 9, 0)).unwrap();
    announce_count(smb, &chunk, 1);
    write_fragment(smb, &chunk, 0, mark(writer_id, 1));
    announce_count(smb, &chunk, 2);
    write_fragment(smb, &chunk, 2, mark(writer_id, 2));
    announce_count(smb, &chunk, 3);
}

/// Scrapes, and asserts that the result is the finished part of the fragments of [`write_two`].
fn scrape_two(smb: &SharedSmb) {
    service(smb).scrape(
        &mut Vec::new(),
        |_| true,
        |info, payload| {
            assert_eq!((info.chunk_id, info.complete), (9, false));
            let [one, two] = [1, 2].map(|n| mark(info.writer_id, n));
            match info.finished_count() {
                1 => assert_eq!(payload[..4], [1, one, 0, 0]),
                2 => assert_eq!(payload[..4], [1, one, 1, two]),
                n => panic!("{n} fragments"),
            }
        },
    );
}

pub(crate) fn sees_only_finished_fragments() {
    check(3, || {
        let smb = smb(PageLayout::Div2);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || write_two(&smb, 0, 5))
        };
        scrape_two(&smb);
        writer.join().unwrap();
    });
}

/// The last fragment of a chunk is announced before it is in place. Only the page word says that it
/// is complete.
pub(crate) fn sees_all_of_a_complete_chunk() {
    check(3, || {
        let smb = smb(PageLayout::Div1);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || fill(&smb, PageLayout::Div1, 5, 1).unwrap())
        };
        let service = service(&smb);
        service.scrape(
            &mut Vec::new(),
            |_| true,
            |info, payload| {
                assert_eq!((info.writer_id, info.chunk_id, info.count, info.complete), (5, 1, 1, true));
                assert_eq!(payload[..2], [1, mark(5, 1)]);
            },
        );
        writer.join().unwrap();
        // The chunk is unchanged.
        assert_eq!(take_filled(&service, 0), Some((5, 1)));
    });
}

/// A writer begins its next chunk before it completes the last one, as Perfetto's writers do. The
/// page word that a look loads may be older than the content of the next chunk.
pub(crate) fn sees_no_chunk_without_the_one_before() {
    check(3, || {
        let smb = smb(PageLayout::Div2);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || {
                smb.try_partition(0, PageLayout::Div2);
                let first = smb.acquire_for_writing(0, 0, header(5, 1, 1)).unwrap();
                let second = smb.acquire_for_writing(0, 1, header(5, 2, 1)).unwrap();
                smb.complete(first).unwrap();
                write_fragment(&smb, &second, 0, mark(5, 2));
                announce_count(&smb, &second, 2);
            })
        };
        let mut found = Vec::new();
        service(&smb).scrape(&mut Vec::new(), |_| true, |info, _| found.push(info.chunk_id));
        assert!([&[][..], &[1], &[1, 2]].contains(&&found[..]), "{found:?}");
        writer.join().unwrap();
    });
}

pub(crate) fn sees_each_writers_own_fragments() {
    check(2, || {
        let smb = smb(PageLayout::Div2);
        let writers = [0, 1].map(|index| {
            let smb = smb.clone();
            thread::spawn(move || write_two(&smb, index, 1 + index as u16))
        });
        scrape_two(&smb);
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

/// A chunk was taken and is used again. Scraped fragments belong to the new use, even if there are
/// few.
pub(crate) fn never_sees_the_chunk_of_before() {
    check(3, || {
        let smb = smb(PageLayout::Div2);
        smb.try_partition(0, PageLayout::Div2);
        let chunk = smb.acquire_for_writing(0, 0, header(4, 8, 7)).unwrap();
        smb.complete(chunk).unwrap();
        // Keeps the page divided.
        smb.acquire_for_writing(0, 1, header(4, 9, 0)).unwrap();
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || match smb.acquire_for_writing(0, 0, header(5, 9, 0)) {
                Ok(chunk) => {
                    write_fragment(&smb, &chunk, 0, mark(5, 1));
                    announce_count(&smb, &chunk, 2);
                }
                Err(skip) => assert!(matches!(skip, Skip::WrongState { .. })),
            })
        };
        let service = service(&smb);
        service.take_chunk(0, 0, &mut Vec::new()).unwrap();
        service.scrape(
            &mut Vec::new(),
            |_| true,
            |info, payload| {
                assert_eq!((info.writer_id, info.chunk_id, info.count), (5, 9, 2));
                assert_eq!(payload[..2], [1, mark(5, 1)]);
            },
        );
        writer.join().unwrap();
    });
}
