use crate::build::run;

/// `docs/spec/c-abi.md` §19: 7, 10, 13, 17, and §5 on the 33rd type.
#[test]
fn stops_wait_for_locks_flushes_for_data_sources_sessions_for_triggers_and_writers_for_nobody() {
    run("waiting.c", "waiting", &[], &[]);
}
