use crate::build::run;

/// `docs/spec/c-abi.md` §19: 3, 12, 18, 21.
#[test]
fn each_by_its_own_config_and_clears_are_told() {
    run("sessions.c", "sessions", &[], &[]);
}
