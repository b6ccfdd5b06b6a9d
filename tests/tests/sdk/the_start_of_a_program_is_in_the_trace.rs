//! Startup tracing: rows 31 to 36.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use esatto::schema::{DataSourceConfig, TraceConfig, TrackEventConfig, trace_config};
use esatto::{Category, DataSource, Setup, Source, StartupTracing};
use esatto_tests::sdk::{Recorder, Trace};
use esatto_tests::wait_until;

esatto::categories! {
    static APP = "app";
    static OTHER = "other";
}

/// Callbacks so far.
static ADOPTED: AtomicU32 = AtomicU32::new(0);
static ABORTED: AtomicU32 = AtomicU32::new(0);

fn count(counter: &'static AtomicU32) -> impl FnOnce() + Send + 'static {
    || {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

fn wait_for(counter: &AtomicU32) {
    wait_until("the callback", || (counter.load(Ordering::SeqCst) > 0).then_some(()));
}

/// Records these categories and nothing else.
fn config(categories: &[&'static Category]) -> TraceConfig {
    let events = TrackEventConfig {
        enabled_categories: categories.iter().map(|category| category.name().into()).collect(),
        disabled_categories: vec!["*".into()],
        ..Default::default()
    };
    let source = DataSourceConfig {
        name: Some("track_event".into()),
        track_event_config: Some(Box::new(events)),
        ..Default::default()
    };
    with_sources(vec![source])
}

fn with_sources(sources: Vec<DataSourceConfig>) -> TraceConfig {
    let entry = |config| trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(4096), ..Default::default() }],
        data_sources: sources.into_iter().map(entry).collect(),
        ..Default::default()
    }
}

fn startup(config: &TraceConfig) -> StartupTracing {
    StartupTracing::new(config).on_adopted(count(&ADOPTED)).on_aborted(count(&ABORTED))
}

fn names(trace: &Trace) -> Vec<String> {
    let [slices] = trace.query(["select name from slice order by ts"]);
    slices.iter().map(|row| row.text("name").to_owned()).collect()
}

mod cases_31_and_36_events_before_the_session {
    esatto_tests::scenario!([ours, theirs] super::before, super::check_before);
}

fn before(recorder: &Recorder) {
    let _tracing = recorder.builder().categories(CATEGORIES).start().expect("the control thread starts");
    esatto::instant!(APP, "before everything");
    let config = config(&[&APP]);
    let startup = startup(&config).start(recorder.backend()).expect("begins");
    assert_eq!(startup.instances(), 1);
    assert!(APP.is_enabled() && !OTHER.is_enabled());
    esatto::instant!(APP, "before the service knows");
    recorder.wait_for_data_source("track_event");
    std::thread::spawn(|| esatto::instant!(APP, "on a thread that has ended")).join().expect("ends");
    let session = recorder.start(config);
    wait_for(&ADOPTED);
    esatto::instant!(APP, "in the session");
    startup.abort().wait().expect("nothing is left to be aborted");
    esatto::instant!(APP, "at the end");
    recorder.finish(session);
    assert!(!APP.is_enabled());
    assert_eq!(ABORTED.load(Ordering::SeqCst), 0);
}

fn check_before(trace: &Trace) {
    let [slices, sequences] = trace.query([
        "select slice.name as name, tid from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) order by ts",
        "select count(distinct tid) as threads from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)",
    ]);
    let names: Vec<_> = slices.iter().map(|row| row.text("name")).collect();
    let expected = ["before the service knows", "on a thread that has ended", "in the session", "at the end"];
    assert_eq!(names, expected);
    assert_eq!(sequences[0].int("threads"), 2);
}

mod case_31_without_waiting {
    esatto_tests::scenario!([ours, theirs] super::soon, super::check_soon);
}

fn soon(recorder: &Recorder) {
    static INSTANCES: AtomicU32 = AtomicU32::new(0);
    let _tracing = recorder.connect(CATEGORIES);
    let config = config(&[&APP]);
    startup(&config)
        .start_soon(recorder.backend())
        .expect("can begin")
        .1
        .then(|instances| INSTANCES.store(instances.expect("begins") as u32, Ordering::SeqCst));
    wait_for(&INSTANCES);
    esatto::instant!(APP, "early");
    // It has connected again, with its own memory.
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(config);
    wait_for(&ADOPTED);
    recorder.finish(session);
}

fn check_soon(trace: &Trace) {
    assert_eq!(names(trace), ["early"]);
}

mod case_32_the_order_of_categories_does_not_matter {
    esatto_tests::scenario!([ours, theirs] super::compatible, super::check_soon);
}

fn compatible(recorder: &Recorder) {
    let _tracing = recorder.builder().categories(CATEGORIES).start().expect("the control thread starts");
    startup(&config(&[&APP, &OTHER])).start(recorder.backend()).expect("begins");
    esatto::instant!(APP, "early");
    recorder.wait_for_data_source("track_event");
    let mut reordered = config(&[&OTHER, &APP, &OTHER]);
    reordered.data_sources[0].config.as_mut().expect("is there").legacy_config = Some("ignored".into());
    let session = recorder.start(reordered);
    wait_for(&ADOPTED);
    recorder.finish(session);
}

mod case_32_another_config_is_another_recording {
    esatto_tests::scenario!([ours, theirs] super::incompatible, super::check_incompatible);
}

fn incompatible(recorder: &Recorder) {
    let _tracing = recorder.builder().categories(CATEGORIES).start().expect("the control thread starts");
    let startup = startup(&config(&[&APP])).timeout(Duration::ZERO).start(recorder.backend()).expect("begins");
    esatto::instant!(APP, "early");
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(config(&[&APP, &OTHER]));
    esatto::instant!(APP, "late");
    drop(startup.abort());
    wait_for(&ABORTED);
    esatto::instant!(OTHER, "last");
    recorder.finish(session);
    assert_eq!(ADOPTED.load(Ordering::SeqCst), 0);
}

fn check_incompatible(trace: &Trace) {
    assert_eq!(names(trace), ["late", "last"]);
}

mod case_33_in_memory_that_is_there {
    esatto_tests::scenario!([ours, theirs] super::existing, super::check_existing);
}

fn existing(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = recorder.start(config(&[&APP]));
    esatto::instant!(APP, "first");
    recorder.finish_as("first", session);
    let config = config(&[&APP]);
    startup(&config).start(recorder.backend()).expect("begins");
    esatto::instant!(APP, "between");
    let session = recorder.start(config);
    wait_for(&ADOPTED);
    esatto::instant!(APP, "second");
    recorder.finish(session);
}

fn check_existing(trace: &Trace) {
    assert_eq!(names(&trace.other("first")), ["first"]);
    assert_eq!(names(trace), ["between", "second"]);
}

struct Early {
    startup: bool,
}

impl DataSource for Early {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(setup: &Setup<'_, ()>) -> Self {
        Self { startup: setup.is_startup() }
    }
}

static WANTED: Source<Early> = Source::new("com.example.wanted");
static UNWANTED: Source<Early> = Source::new("com.example.unwanted");
static UNREGISTERED: Source<Early> = Source::new("com.example.unregistered");

mod case_34_only_what_the_session_wants {
    esatto_tests::scenario!([ours, theirs] super::several, super::check_several);
}

fn say(source: &'static Source<Early>, text: &str) {
    source.trace(|context| {
        let (now, startup) = (context.now_ns(), context.source().expect("lives").startup);
        context.packet(|packet| {
            packet.timestamp(now);
            packet.for_testing().str(format!("{text} {startup}"));
        });
    });
}

fn several(recorder: &Recorder) {
    let _tracing = recorder.builder().start().expect("the control thread starts");
    WANTED.register().expect("registers");
    UNWANTED.register().expect("registers");
    let named = |source: &Source<Early>| DataSourceConfig { name: Some(source.name().into()), ..Default::default() };
    let all = with_sources(vec![named(&WANTED), named(&UNWANTED), named(&UNREGISTERED)]);
    let startup = startup(&all).start(recorder.backend()).expect("begins");
    assert_eq!(startup.instances(), 2);
    say(&WANTED, "early");
    say(&UNWANTED, "early, for nobody");
    recorder.wait_for_data_source(WANTED.name());
    let session = recorder.start(with_sources(vec![named(&WANTED)]));
    say(&WANTED, "late");
    say(&UNWANTED, "late, for nobody");
    drop(startup.abort());
    wait_for(&ABORTED);
    assert_eq!(ADOPTED.load(Ordering::SeqCst), 0, "not all were adopted");
    assert!(WANTED.is_enabled() && !UNWANTED.is_enabled(), "what was adopted survives");
    say(&WANTED, "last");
    recorder.finish(session);
}

fn check_several(trace: &Trace) {
    assert_eq!(super::texts(trace), ["early true", "late true", "last true"]);
}

mod case_35_after_a_time_out_an_ordinary_session {
    esatto_tests::scenario!([ours, theirs] super::time_out, super::check_time_out);
}

fn time_out(recorder: &Recorder) {
    let _tracing = recorder.builder().categories(CATEGORIES).start().expect("the control thread starts");
    let config = config(&[&APP]);
    startup(&config).timeout(Duration::from_millis(50)).start(recorder.backend()).expect("begins");
    esatto::instant!(APP, "for nobody");
    wait_for(&ABORTED);
    assert!(!APP.is_enabled());
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(config);
    esatto::instant!(APP, "ordinary");
    recorder.finish(session);
    assert_eq!(ADOPTED.load(Ordering::SeqCst), 0);
}

fn check_time_out(trace: &Trace) {
    assert_eq!(names(trace), ["ordinary"]);
}

mod a_lost_connection_is_an_abort {
    use esatto_tests::sdk::Scenario;
    esatto_tests::scenario!([ours, theirs] Scenario::new(super::lost));
}

fn lost(recorder: &Recorder) {
    let _tracing = recorder.builder().categories(CATEGORIES).start().expect("the control thread starts");
    startup(&config(&[&APP])).start(recorder.backend()).expect("begins");
    recorder.wait_for_data_source("track_event");
    recorder.stop_service();
    wait_for(&ABORTED);
    assert!(!APP.is_enabled());
}
