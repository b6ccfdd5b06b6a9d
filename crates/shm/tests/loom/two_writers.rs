//! Models of two writers of one process, and the service.

use esatto_shm::abi::{PageLayout, PageWord};
use loom::thread;

use crate::{check, fill, header, service, smb, take_filled, write_fragment};

pub(crate) fn never_get_the_same_chunk() {
    check(3, || {
        let smb = smb(PageLayout::Div2);
        let acquire = |writer_id| {
            let smb = smb.clone();
            thread::spawn(move || {
                smb.try_partition(0, PageLayout::Div2);
                (0..2).find_map(|i| smb.acquire_for_writing(0, i, header(writer_id, 0, 0)).ok())
            })
        };
        let (a, b) = (acquire(1), acquire(2));
        let (a, b) = (a.join().unwrap().unwrap(), b.join().unwrap().unwrap());
        assert_ne!(a.index(), b.index());
        assert_eq!(smb.header(&a).writer_id, 1);
        assert_eq!(smb.header(&b).writer_id, 2);
    });
}

/// Two writers compete for a page while the service takes its chunks.
pub(crate) fn lose_nothing_beside_the_service() {
    check(2, || {
        let smb = smb(PageLayout::Div2);
        let writers = [1, 2].map(|writer_id| {
            let smb = smb.clone();
            thread::spawn(move || fill(&smb, PageLayout::Div2, writer_id, 0).is_some())
        });
        let service = service(&smb);
        let mut taken: Vec<_> = (0..2).filter_map(|index| take_filled(&service, index)).collect();
        // A writer that finds the page divided, but then free again, may get no chunk. At least one
        // writer gets one.
        let filled: Vec<u16> =
            (1..).zip(writers).filter_map(|(id, writer)| writer.join().unwrap().then_some(id)).collect();
        assert!(!filled.is_empty());
        taken.extend((0..2).filter_map(|index| take_filled(&service, index)));
        taken.sort_unstable();
        let expected: Vec<_> = filled.into_iter().map(|id| (id, 0)).collect();
        assert_eq!(taken, expected);
        assert_eq!(smb.page_word(0), PageWord::FREE);
    });
}

/// Three threads change the states of different chunks in the same word: one completes, one
/// acquires, the service frees.
pub(crate) fn complete_and_free_on_one_page_without_losing_a_state() {
    check(2, || {
        let smb = smb(PageLayout::Div4);
        smb.try_partition(0, PageLayout::Div4);
        let full = smb.acquire_for_writing(0, 0, header(1, 0, 1)).unwrap();
        write_fragment(&smb, &full, 0, crate::mark(1, 0));
        smb.complete(full).unwrap();
        let chunk = smb.acquire_for_writing(0, 1, header(1, 1, 1)).unwrap();
        let completing = {
            let smb = smb.clone();
            thread::spawn(move || {
                write_fragment(&smb, &chunk, 0, crate::mark(1, 1));
                smb.complete(chunk).map(drop)
            })
        };
        let acquiring = {
            let smb = smb.clone();
            thread::spawn(move || smb.acquire_for_writing(0, 2, header(2, 0, 0)).map(drop))
        };
        let service = service(&smb);
        assert_eq!(take_filled(&service, 0), Some((1, 0)));
        completing.join().unwrap().unwrap();
        acquiring.join().unwrap().unwrap();
        // Chunk 0 free, 1 complete, 2 being written.
        assert_eq!(smb.page_word(0).0, PageWord::partitioned(PageLayout::Div4).0 | 3 << 2 | 1 << 4);
        assert_eq!(take_filled(&service, 1), Some((1, 1)));
    });
}
