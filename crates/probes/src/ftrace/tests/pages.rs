//! Pages with everything that a ring buffer may hold.

use esatto_schema::LOST_EVENTS_NUMBER_FIELD;

use super::page_builder::{FORMAT, PageBuilder, data};
use super::session::{Outcome, Session};
use crate::ftrace::parse_status::{ParseStatus, ParseStatuses};

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

fn encode(pages: &[Vec<u8>]) -> Outcome {
    Session::new().with_format("made", "made", FORMAT).encode(&pages.concat())
}

fn times(outcome: &Outcome) -> Vec<u64> {
    let events = outcome.bundles().flat_map(|bundle| bundle.event());
    events.filter_map(|event| event.timestamp()).collect()
}

fn errors(outcome: &Outcome) -> Vec<(u64, i32)> {
    let errors = outcome.bundles().flat_map(|bundle| bundle.error());
    errors.map(|error| (error.timestamp().unwrap(), error.status().unwrap().0)).collect()
}

fn lost_numbers(outcome: &Outcome) -> Vec<u64> {
    let fields = outcome.bundles().flat_map(|bundle| bundle.fields());
    fields.filter(|field| field.id == LOST_EVENTS_NUMBER_FIELD).map(|field| field.as_u64()).collect()
}

#[test]
fn deltas_add_up_from_the_time_of_the_page() {
    let page = PageBuilder::at(1000).event(1, &data(1, 1)).long_event(20, &data(1, 2)).event(300, &data(1, 3));
    assert_eq!(times(&encode(&[page.build()])), [1001, 1021, 1321]);
}

#[test]
fn a_time_extension_adds_to_the_time() {
    let page = PageBuilder::at(1000).header(TIME_EXTEND, 5).word(3).event(1, &data(1, 1));
    assert_eq!(times(&encode(&[page.build()])), [1006 + (3 << 27)]);
}

#[test]
fn an_absolute_time_replaces_the_time() {
    let page = PageBuilder::at(1 << 40).header(TIME_STAMP, 5).word(1 << 14).event(1, &data(1, 1));
    assert_eq!(times(&encode(&[page.build()])), [(1 << 41) + 6]);
}

#[test]
fn an_absolute_time_keeps_the_bits_that_it_lacks() {
    let turn = 1_u64 << 59;
    let page = |time: u64| PageBuilder::at(time).header(TIME_STAMP, 5).word(0).event(1, &data(1, 1));
    let before_the_turn = page(3 * turn - 10);
    let after_the_turn = page(3 * turn + 10);
    assert_eq!(times(&encode(&[before_the_turn.build()])), [3 * turn + 6]);
    assert_eq!(times(&encode(&[after_the_turn.build()])), [3 * turn + 6], "a little back");
    let back = PageBuilder::at(turn + 10).header(TIME_STAMP, (1 << 27) - 1).word(u32::MAX).event(2, &data(1, 1));
    assert_eq!(times(&encode(&[back.build()])), [turn + 1], "back over the turn");
}

#[test]
fn times_wrap_without_a_panic() {
    let page = PageBuilder::at(u64::MAX).event(2, &data(1, 1)).header(TIME_EXTEND, 1).word(u32::MAX);
    let outcome = encode(&[page.event(0, &data(1, 1)).build()]);
    assert_eq!(times(&outcome)[0], 1);
}

#[test]
fn padding_is_skipped() {
    let page = PageBuilder::at(10).event(1, &data(1, 1)).header(PADDING, 5).word(12).bytes(&[0xff; 8]);
    let outcome = encode(&[page.event(1, &data(1, 2)).header(PADDING, 1).word(4).build()]);
    assert_eq!(times(&outcome), [11, 17]);
    assert_eq!(outcome.encoder.errors(), ParseStatuses::default());
}

#[test]
fn a_broken_page_ends_with_its_status_and_the_next_one_goes_on() {
    use ParseStatus::*;
    let good = || PageBuilder::at(50).event(1, &data(1, 1));
    let cases = [
        (PageBuilder::at(50), InvalidPageHeader, 0),
        (good().bytes(&[1, 2]), ShortEventHeader, 1),
        (good().header(PADDING, 0).word(8), NullPadding, 1),
        (good().header(PADDING, 1), ShortPaddingLength, 1),
        (good().header(PADDING, 1).word(3), InvalidPaddingLength, 1),
        (good().header(PADDING, 1).word(9), InvalidPaddingLength, 1),
        (good().header(TIME_EXTEND, 1), ShortTimeExtend, 1),
        (good().header(TIME_STAMP, 1).bytes(&[1]), ShortTimeStamp, 1),
        (good().header(0, 1), ShortDataLength, 1),
        (good().header(0, 1).word(0), ZeroDataLength, 1),
        (good().header(0, 1).word(3), InvalidDataLength, 1),
        (good().header(0, 1).word(5).bytes(&[7]), ShortEventId, 1),
        (good().header(3, 1).word(7), EndOverflow, 1),
        (good().header(0, 1).word(u32::MAX).word(7), EndOverflow, 1),
        (good().event(1, &data(1, 1)[..8]), InvalidEvent, 1),
    ];
    for (page, status, events) in cases {
        let outcome = encode(&[page.build(), PageBuilder::at(90).event(1, &data(1, 1)).build()]);
        assert_eq!(errors(&outcome), [(50, status as i32)], "{status:?}");
        assert_eq!(times(&outcome).len(), events + 1, "{status:?}");
        assert_eq!(outcome.encoder.errors().numbers().collect::<Vec<_>>(), [status as i32]);
    }
}

#[test]
fn events_after_an_invalid_one_are_written() {
    let page = PageBuilder::at(50).event(1, &data(1, 1)[..8]).event(1, &data(1, 1));
    assert_eq!(times(&encode(&[page.build()])), [52]);
}

#[test]
fn a_page_longer_than_its_payload_allows_is_refused() {
    let mut page = PageBuilder::at(50).event(1, &data(1, 1)).build();
    page[8..10].copy_from_slice(&4081_u16.to_le_bytes());
    assert_eq!(errors(&encode(&[page])), [(50, ParseStatus::InvalidPageHeader as i32)]);
}

#[test]
fn a_loss_begins_a_bundle_that_says_so() {
    let page = |time| PageBuilder::at(time).event(1, &data(1, 1));
    let outcome = encode(&[page(10).build(), page(20).lost(None).build(), page(30).lost(Some(17)).build()]);
    let lost: Vec<_> = outcome.bundles().map(|bundle| bundle.lost_events()).collect();
    assert_eq!(lost, [None, Some(true), Some(true)]);
    let ends: Vec<_> = outcome.bundles().map(|bundle| bundle.previous_bundle_end_timestamp()).collect();
    assert_eq!(ends, [Some(0), Some(11), Some(21)]);
    assert_eq!(lost_numbers(&outcome), [17]);
    assert!(outcome.bundles().all(|bundle| bundle.cpu() == Some(1)));
}

#[test]
fn a_full_page_has_no_room_for_the_number_of_lost_events() {
    let fill = PageBuilder::at(1).long_event(1, &data(1, 1)).header(PADDING, 1);
    let page = fill.word(4080 - 20 - 4).bytes(&[0; 4080 - 28]).lost(Some(3)).build_with(4096);
    let outcome = encode(&[page]);
    assert_eq!(outcome.bundles().next().unwrap().lost_events(), Some(true));
    assert!(lost_numbers(&outcome).is_empty());
}

#[test]
fn a_loss_is_told_even_if_no_event_of_the_page_is_wanted() {
    let page = PageBuilder::at(10).lost(None).event(1, &[9, 0, 0, 0]);
    let outcome = encode(&[page.build()]);
    assert_eq!(outcome.bundles().next().unwrap().lost_events(), Some(true));
}

#[test]
fn pages_without_wanted_events_yield_no_packet() {
    let page = PageBuilder::at(10).event(1, &[9, 0, 0, 0]).event(1, &[0xff, 0xff, 0, 0]);
    assert!(encode(&[page.build()]).packets.is_empty());
    assert!(encode(&[]).packets.is_empty());
}

#[test]
fn large_sub_buffers_are_read_whole() {
    let mut session = Session::new().with_format("made", "made", FORMAT);
    session.table.set_page_size(65536);
    let big = [&data(1, 1)[..], &[0; 40_000]].concat();
    let page = PageBuilder::at(10).long_event(1, &big).event(1, &data(1, 2)).build_with(65536);
    assert_eq!(times(&session.encode(&[page.clone(), page].concat())), [11, 12, 11, 12]);
}
