//! Programs that reach the SDK through something else: `tracing`, `log`, attributes, the panic
//! hook; with each backend, before Perfetto's trace processor. How to write one:
//! `esatto_tests::sdk`.

mod a_tokio_application_reads_right;
mod log_messages_also_come_by_tracing;
mod log_messages_are_in_the_log;
mod panics_are_instants;
mod printed_programs_run_as_printed;
mod threads_have_their_latest_names;
mod traced_functions_of_a_tokio_application_read_right;

use esatto::TraceConfig;
use esatto::schema::data_source_config::BufferExhaustedPolicy;
use esatto_tests::sdk::Trace;

/// All track events, those with the tag `debug` included, with so much memory that none is dropped.
fn everything() -> TraceConfig {
    let mut config = esatto::track_events(64 * 1024);
    let source = config.data_sources[0].config.as_mut().expect("is there");
    let events = source.track_event_config.as_mut().expect("is there");
    events.disabled_tags.clear();
    events.enabled_tags.push("debug".into());
    source.buffer_exhausted_policy = Some(BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP);
    config
}

/// Threads of a runtime; more than the machine has processors, so that tasks are interrupted
/// anywhere.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().expect("threads can be started")
}

/// Slices with their kind: of a thread's track or of a lane.
const SLICES: &str = "
    create table all_slices as
    select slice.id as id, slice.name as name, ts, dur, depth, track_id, slice.arg_set_id as args, utid, category,
        (select count(*) from slice as parent where parent.id = slice.parent_id) as has_parent
    from slice left join thread_track on slice.track_id = thread_track.id;
    create table lanes as select * from all_slices where utid is null and dur != 0;
    create table polls as select * from all_slices where utid is not null and dur != 0;";

/// Follows the flows from each lane to the polls of the same name: `chain(lane, poll)`.
const CHAINS: &str = "
    create table chain as
    with recursive chain(lane, poll) as (
        select lanes.id, polls.id from lanes join flow on slice_out = lanes.id join polls on slice_in = polls.id
        where polls.name = lanes.name
        union
        select chain.lane, polls.id from chain join flow on slice_out = chain.poll join polls on slice_in = polls.id
        join lanes on lanes.id = chain.lane where polls.name = lanes.name)
    select * from chain;";

/// Checks every application that consists of lanes and polls.
fn assert_lanes_read_right(trace: &Trace) {
    let polls_outside = "select polls.name, polls.ts, polls.dur, lanes.ts as lane_ts, lanes.dur as lane_dur
        from chain join lanes on lane = lanes.id join polls on poll = polls.id
        where polls.ts < lanes.ts or polls.ts + polls.dur > lanes.ts + lanes.dur";
    let too_much = "select lanes.name, lanes.dur, sum(polls.dur) as cpu
        from chain join lanes on lane = lanes.id join polls on poll = polls.id group by lane having cpu > lanes.dur";
    let overlapping = "select one.name from chain as a join chain as b on a.lane = b.lane and a.poll < b.poll
        join polls as one on a.poll = one.id join polls as other on b.poll = other.id
        where one.ts < other.ts + other.dur and other.ts < one.ts + one.dur";
    let shared_polls = "select poll, count(distinct lane) as lanes from chain group by poll having lanes > 1";
    let without_poll = "select name from lanes where id not in (select lane from chain)";
    let endless = "select name, depth from all_slices where dur < 0";
    let nested_lanes = "select name, depth from lanes where depth != 0";
    let [polls_outside, too_much, overlapping, shared, without, endless, nested] = trace.query([
        &[SLICES, CHAINS, polls_outside].concat(),
        too_much,
        overlapping,
        shared_polls,
        without_poll,
        endless,
        nested_lanes,
    ]);
    assert!(polls_outside.is_empty(), "polls outside of their lifetime: {polls_outside:#?}");
    assert!(too_much.is_empty(), "polls that take longer than the lifetime: {too_much:#?}");
    assert!(overlapping.is_empty(), "a task that is polled twice at once: {overlapping:#?}");
    assert!(shared.is_empty(), "a poll of several tasks: {shared:#?}");
    assert!(without.is_empty(), "lifetimes without polls: {without:#?}");
    assert!(endless.is_empty(), "slices without end: {endless:#?}");
    assert!(nested.is_empty(), "lifetimes on one lane at once: {nested:#?}");
}
