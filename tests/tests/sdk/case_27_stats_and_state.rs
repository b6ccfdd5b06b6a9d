//! Statistics and the state of the service come as messages. Several requests at once are answered
//! one after the other.

use esatto::{ErrorKind, Session, SessionConfig};
use esatto_tests::sdk::{Backend, Recorder, Scenario};

esatto::categories! {
    static APP = "app", "What the app does";
}
esatto_tests::scenario!(Scenario::new(record));

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    let session = Session::open(recorder.backend()).expect("opens");
    assert_eq!(session.stats().wait().expect_err("no session yet").kind(), ErrorKind::State);
    let capabilities = session.capabilities().wait().expect("told");
    assert_eq!(capabilities.has_query_capabilities, Some(true));
    assert_eq!(capabilities.has_clone_session, Some(true));

    session.record(SessionConfig::new().buffer_size_kb(128).name("a name of its own")).wait().expect("starts");
    esatto::instant!(APP, "something to count");
    session.flush(None).wait().expect("flushes");
    let requests: Vec<_> = (0..5).map(|_| (session.stats(), session.service_state())).collect();
    for (stats, state) in requests {
        let stats = stats.wait().expect("told");
        assert_eq!(stats.buffer_stats.len(), 1);
        assert_eq!(stats.buffer_stats[0].buffer_size, Some(128 * 1024));
        assert!(stats.buffer_stats[0].bytes_written > Some(0));
        let state = state.wait().expect("told");
        assert_eq!((state.num_sessions, state.num_sessions_started), (Some(1), Some(1)));
        // The service in the process knows nothing else, and does not say with every packet which
        // process that is.
        let me = i32::try_from(std::process::id()).ok().filter(|_| recorder.on() != Backend::InProcess);
        assert_eq!(state.producers.iter().filter(|producer| producer.pid == me).count(), 1);
        let named = |source: &&esatto::schema::tracing_service_state::DataSource| {
            source.ds_descriptor.as_ref().and_then(|d| d.name.as_ref()).is_some_and(|n| n.as_bytes() == b"track_event")
        };
        assert!(state.data_sources.iter().any(|source| named(&source)));
        let names = state.tracing_sessions.iter().filter_map(|s| s.unique_session_name.as_ref());
        assert!(names.map(|n| n.as_bytes()).eq([b"a name of its own"]));
        let version = state.tracing_service_version.as_ref().expect("a version").to_string();
        assert_eq!(version.contains("Esatto"), recorder.on() != Backend::Theirs, "{version}");
    }
    // Filters for producers can be added; the service takes note without a word.
    session.change_config(esatto::track_events(128)).wait().expect("handled");
    session.stop_recording().wait().expect("stops");
    assert_eq!(session.change_config(esatto::track_events(128)).wait().expect_err("over").kind(), ErrorKind::State);
    assert_eq!(session.flush(None).wait().expect_err("over").kind(), ErrorKind::State);
}
