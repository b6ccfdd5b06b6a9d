//! Models of a writer and the service.

use esatto_shm::abi::{PageLayout, PageWord};
use loom::thread;

use crate::{check, fill, header, service, smb, take_filled};

pub(crate) fn hand_over_publishes_the_payload() {
    check(3, || {
        let smb = smb(PageLayout::Div1);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || fill(&smb, PageLayout::Div1, 5, 1).unwrap())
        };
        if let Some(taken) = take_filled(&service(&smb), 0) {
            assert_eq!(taken, (5, 1));
            assert_eq!(smb.page_word(0), PageWord::FREE);
        }
        writer.join().unwrap();
    });
}

/// Side that frees a complete chunk.
#[derive(Clone, Copy)]
enum Freeing {
    Service,
    /// With emulation (§17): a thread of the producer, while another one searches for a chunk.
    Producer,
}

/// One thread frees a chunk, and the other acquires it as soon as possible. The stores of the
/// freeing side into the header must come before those of the new writer.
fn reacquire(layout: PageLayout, freeing: Freeing) {
    check(3, move || {
        let smb = smb(layout);
        smb.try_partition(0, layout);
        let chunk = smb.acquire_for_writing(0, 0, header(5, 9, 7)).unwrap();
        let chunk = smb.complete(chunk).unwrap();
        if layout == PageLayout::Div2 {
            // The page stays partitioned.
            smb.acquire_for_writing(0, 1, header(5, 10, 7)).unwrap();
        }
        let freeing = {
            let smb = smb.clone();
            thread::spawn(move || match freeing {
                Freeing::Service => {
                    service(&smb).take_chunk(0, 0, &mut Vec::new()).unwrap();
                }
                Freeing::Producer => smb.free_unread(chunk).unwrap(),
            })
        };
        smb.try_partition(0, layout);
        let acquired = smb.acquire_for_writing(0, 0, header(6, 0, 0));
        freeing.join().unwrap();
        if let Ok(chunk) = acquired {
            assert_eq!(smb.header(&chunk), header(6, 0, 0));
        }
    });
}

pub(crate) fn a_freed_page_comes_with_its_header_cleared() {
    reacquire(PageLayout::Div1, Freeing::Service);
}

pub(crate) fn a_freed_chunk_comes_with_its_header_cleared() {
    reacquire(PageLayout::Div2, Freeing::Service);
}

pub(crate) fn a_chunk_freed_by_its_own_producer_comes_with_its_header_cleared() {
    reacquire(PageLayout::Div2, Freeing::Producer);
}

pub(crate) fn chunks_used_again_are_taken_once_and_in_order() {
    check(3, || {
        let smb = smb(PageLayout::Div1);
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || {
                let filled = [0, 1].map(|chunk_id| fill(&smb, PageLayout::Div1, 1, chunk_id).is_some());
                assert!(filled[0], "the page was free");
                filled.into_iter().filter(|filled| *filled).count()
            })
        };
        let service = service(&smb);
        let mut taken: Vec<_> = (0..2).filter_map(|_| take_filled(&service, 0)).collect();
        let filled = writer.join().unwrap();
        taken.extend(take_filled(&service, 0));
        let numbers: Vec<u32> = taken.into_iter().map(|(_, chunk_id)| chunk_id).collect();
        assert_eq!(numbers, [0, 1][..filled]);
        assert_eq!(smb.page_word(0), PageWord::FREE);
    });
}

/// The service frees the only chunk of a page while a writer waits to divide the page differently.
pub(crate) fn a_page_may_come_back_in_another_layout() {
    check(3, || {
        let smb = smb(PageLayout::Div2);
        fill(&smb, PageLayout::Div1, 1, 0).unwrap();
        let writer = {
            let smb = smb.clone();
            thread::spawn(move || {
                if !smb.try_partition(0, PageLayout::Div2) {
                    return 0;
                }
                fill(&smb, PageLayout::Div2, 2, 0).unwrap();
                // The service may free the page between two loads of its word.
                1 + usize::from(fill(&smb, PageLayout::Div2, 2, 1).is_some())
            })
        };
        let service = service(&smb);
        assert_eq!(take_filled(&service, 0), Some((1, 0)));
        let early = take_filled(&service, 0);
        let filled = writer.join().unwrap();
        let late = [take_filled(&service, 0), take_filled(&service, 1)];
        let taken: Vec<_> = early.into_iter().chain(late.into_iter().flatten()).collect();
        assert_eq!(taken, [(2, 0), (2, 1)][..filled]);
        assert_eq!(smb.page_word(0), PageWord::FREE);
    });
}

pub(crate) fn freeing_the_last_chunk_unpartitions_in_the_same_step() {
    check(3, || {
        let smb = smb(PageLayout::Div2);
        smb.try_partition(0, PageLayout::Div2);
        let chunks = [0, 1].map(|i| {
            let chunk = smb.acquire_for_writing(0, i, header(1, i, 0)).unwrap();
            smb.complete(chunk).unwrap();
            smb.acquire_for_reading(0, i).unwrap()
        });
        let freeing = chunks.map(|chunk| {
            let smb = smb.clone();
            thread::spawn(move || smb.free(chunk).unwrap())
        });
        // A load meanwhile sees a layout with a chunk in use, or a free page, but never an empty
        // layout.
        let word = smb.page_word(0);
        assert!(word == PageWord::FREE || (word.layout().is_some() && word.0 & 0x0fff_ffff != 0));
        for thread in freeing {
            thread.join().unwrap();
        }
        assert_eq!(smb.page_word(0), PageWord::FREE);
        assert!(smb.try_partition(0, PageLayout::Div2));
    });
}
