//! The producer changes the page word while the service holds a chunk of it (§18, §19): the service
//! gives up on the chunk.

use esatto_shm::{
    Region, Skip,
    abi::{PageLayout, PageWord},
    sync::Ordering,
};
use loom::thread;

// Swaps, not stores: loom does not order a store among exchanges if nothing else does, and then
// shows words that no machine shows.

use crate::{check, fill, service, smb, take_filled};

/// Words that a producer may store without the service's knowledge: another layout, another state,
/// none at all, a layout that does not exist.
const WORDS: [u32; 6] = [0x2000_0006, 0x1000_0001, 0x1000_0000, 0, 0x6000_0002, 0xffff_ffff];

pub(crate) fn are_left_as_the_producer_made_them() {
    for hostile in WORDS {
        check(3, move || {
            let smb = smb(PageLayout::Div1);
            fill(&smb, PageLayout::Div1, 1, 0).unwrap();
            let producer = {
                let smb = smb.clone();
                thread::spawn(move || smb.region().atomic_u32(0).swap(hostile, Ordering::Relaxed))
            };
            match smb.acquire_for_reading(0, 0) {
                Ok(chunk) => match smb.free(chunk) {
                    Ok(()) => {}
                    Err(skip) => assert_eq!(skip, Skip::Changed { word: PageWord(hostile) }),
                },
                Err(skip) => assert!(matches!(skip, Skip::WrongState { .. } | Skip::NoSuchChunk { .. })),
            }
            producer.join().unwrap();
            assert_eq!(smb.page_word(0), PageWord(hostile));
        });
    }
}

/// The page gets another layout with a complete chunk, so that the committed numbers name another
/// chunk. The service's work on that chunk does not change its neighbour.
pub(crate) fn do_not_harm_the_neighbour() {
    check(3, || {
        let both = 0x2000_000f;
        let smb = smb(PageLayout::Div2);
        fill(&smb, PageLayout::Div1, 1, 0).unwrap();
        let producer = {
            let smb = smb.clone();
            thread::spawn(move || smb.region().atomic_u32(0).swap(both, Ordering::Release))
        };
        // A copy of the producer's data, before or after its change.
        let taken = take_filled(&service(&smb), 0);
        assert_eq!(taken, Some((1, 0)));
        producer.join().unwrap();
        // Chunk 0 of the new layout was taken, or chunk 0 of the old one; chunk 1 is unchanged.
        let word = smb.page_word(0).0;
        assert!(word == both || word == 0x2000_000c, "{word:#x}");
    });
}
