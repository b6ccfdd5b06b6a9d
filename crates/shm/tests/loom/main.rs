//! Models of the shared memory under loom. Each has one property, in the module of its
//! participants.
//!
//! ```text
//! RUSTFLAGS="--cfg esatto_loom" cargo test -p esatto-shm --test loom --release
//! ```
//!
//! The models have two or three threads with a few atomic operations each. The preemption bound is
//! 3 for two threads and 2 for three (`LOOM_MAX_PREEMPTIONS` overrides it, as `cargo xtask soak
//! loom` does). A higher bound only repeats interleavings of independent steps.
//!
//! Tests show which ordering each model needs: see [`orderings`].
//!
//! Loom has a limit: it never lets a load see a store that was not executed yet. So it does not
//! move the copy of a chunk's payload after the exchange that frees the chunk. The release of that
//! exchange forbids this. In the models, the release is needed for the cleared header.

#![cfg(esatto_loom)]

mod direct_patches;
mod hostile_pages;
mod one_writer;
mod orderings;
mod scraping;
mod two_writers;

use std::sync::Arc;

use esatto_shm::{
    Chunk, LoomRegion, Region, ServiceRegion, Smb,
    abi::{ChunkFlags, ChunkHeader, Packets, PageLayout, PageSize},
    announce,
    state::BeingWritten,
};

/// Names models, runs each as a test and keeps the list for [`orderings`].
macro_rules! models {
    ($($module:ident::$name:ident),* $(,)?) => {
        /// Models with their names.
        const MODELS: &[(&str, fn())] = &[$((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),*];

        mod models {
            $(
                #[test]
                fn $name() {
                    super::$module::$name();
                }
            )*
        }
    };
}

models![
    one_writer::hand_over_publishes_the_payload,
    one_writer::a_freed_page_comes_with_its_header_cleared,
    one_writer::a_freed_chunk_comes_with_its_header_cleared,
    one_writer::a_chunk_freed_by_its_own_producer_comes_with_its_header_cleared,
    one_writer::chunks_used_again_are_taken_once_and_in_order,
    one_writer::a_page_may_come_back_in_another_layout,
    one_writer::freeing_the_last_chunk_unpartitions_in_the_same_step,
    two_writers::never_get_the_same_chunk,
    two_writers::lose_nothing_beside_the_service,
    two_writers::complete_and_free_on_one_page_without_losing_a_state,
    scraping::sees_only_finished_fragments,
    scraping::sees_all_of_a_complete_chunk,
    scraping::sees_no_chunk_without_the_one_before,
    scraping::sees_each_writers_own_fragments,
    scraping::never_sees_the_chunk_of_before,
    direct_patches::are_in_the_chunk_that_is_taken,
    direct_patches::are_not_scraped_half_done,
    hostile_pages::are_left_as_the_producer_made_them,
    hostile_pages::do_not_harm_the_neighbour,
];

type SharedSmb = Arc<Smb<Arc<LoomRegion>>>;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}

/// Makes one page for chunks of `layout` (and Div1, whose only chunk begins where the first chunk
/// of any layout does).
fn smb(layout: PageLayout) -> SharedSmb {
    let region = Arc::new(LoomRegion::new(1, PageSize::DEFAULT, layout));
    Arc::new(Smb::new(region, PageSize::DEFAULT).unwrap())
}

fn service(smb: &SharedSmb) -> ServiceRegion {
    ServiceRegion::new(smb.region().clone(), PageSize::DEFAULT).unwrap()
}

fn header(writer_id: u16, chunk_id: u32, count: u16) -> ChunkHeader {
    ChunkHeader { chunk_id, writer_id, packets: Packets::new(count, ChunkFlags::NONE) }
}

/// Writes a fragment of one byte at `at` of the payload.
fn write_fragment(smb: &SharedSmb, chunk: &Chunk<BeingWritten>, at: usize, byte: u8) {
    // SAFETY: this thread owns the chunk.
    unsafe { smb.region().write_from(chunk.payload_offset() + at, &[1, byte]) };
}

/// Announces a count, as writers do.
fn announce_count(smb: &SharedSmb, chunk: &Chunk<BeingWritten>, count: u16) {
    announce(smb.packets_field(chunk), Packets::new(count, ChunkFlags::NONE));
}

/// Acquires a chunk, writes one fragment that names the writer, and completes it. Returns `None` if
/// no chunk is free.
fn fill(smb: &SharedSmb, layout: PageLayout, writer_id: u16, chunk_id: u32) -> Option<()> {
    smb.try_partition(0, layout);
    let acquire = |index| smb.acquire_for_writing(0, index, header(writer_id, chunk_id, 1)).ok();
    let chunk = (0..layout.chunks() as u32).find_map(acquire)?;
    write_fragment(smb, &chunk, 0, mark(writer_id, chunk_id));
    smb.complete(chunk).expect("nobody else completes it");
    Some(())
}

/// Content of the fragment that [`fill`] writes.
fn mark(writer_id: u16, chunk_id: u32) -> u8 {
    0xa0 | (writer_id as u8) << 2 | chunk_id as u8
}

/// Takes a chunk that [`fill`] filled. Returns its writer and its number.
fn take_filled(service: &ServiceRegion, index: u32) -> Option<(u16, u32)> {
    let mut payload = Vec::new();
    let info = service.take_chunk(0, index, &mut payload).ok()?;
    assert_eq!(info.count, 1);
    assert_eq!(payload[..2], [1, mark(info.writer_id, info.chunk_id)]);
    Some((info.writer_id, info.chunk_id))
}
