//! Promises of the SDK, tested with a service inside this process and our own reader. `tests/` of
//! the repository tests the same with Perfetto's programs.

use std::sync::LazyLock;

use esatto::schema::data_source_config::BufferExhaustedPolicy;
use esatto::schema::{DataSourceConfig, TraceConfig, TrackEventConfig, trace_config};
use esatto::{Backend, Category, Session, Tracing};
use esatto_trace::Trace;

mod a_dropped_session_completes_its_file;
mod a_panic_in_a_value_costs_one_event;
mod a_renamed_thread_shows_its_new_name;
mod arguments_are_not_evaluated_while_a_category_is_off;
mod arguments_may_be_variables;
mod events_can_be_read_again_after_a_loss;
mod every_event_of_every_thread_is_in_the_trace;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
mod files_are_cloned_with_the_access_they_have;
mod one_file_has_one_session;
mod sessions_get_what_they_asked_for;
mod values_arrive_as_they_were;

/// Connected once for all tests of this program.
static TRACING: LazyLock<Tracing> = LazyLock::new(|| Tracing::builder().in_process().start().expect("connects"));

/// Records one category. Threads wait when the shared memory is full.
fn record(category: &'static Category) -> Session {
    record_with(category, |_| {})
}

fn record_with(category: &'static Category, change: impl FnOnce(&mut TrackEventConfig)) -> Session {
    start(category, change, BufferExhaustedPolicy::BUFFER_EXHAUSTED_STALL_THEN_DROP)
}

fn start(
    category: &'static Category,
    change: impl FnOnce(&mut TrackEventConfig),
    policy: BufferExhaustedPolicy,
) -> Session {
    LazyLock::force(&TRACING);
    let mut events = TrackEventConfig {
        enabled_categories: vec![category.name().into()],
        disabled_categories: vec!["*".into()],
        ..Default::default()
    };
    change(&mut events);
    let source = DataSourceConfig {
        name: Some("track_event".into()),
        track_event_config: Some(Box::new(events)),
        buffer_exhausted_policy: Some(policy),
        ..Default::default()
    };
    let config = TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(16 * 1024), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    };
    let session = Session::start(Backend::InProcess, config).expect("starts");
    assert!(TRACING.wait_until_enabled(category, std::time::Duration::from_secs(10)));
    session
}

fn read(session: Session) -> Trace {
    let trace = Trace::read(&session.stop().expect("stops")[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    trace
}
