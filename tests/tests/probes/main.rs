//! The data sources of the operating system: our `traced_probes` beside Perfetto's.

mod a_command_begins_when_the_machine_records;
mod a_failed_set_up_has_its_reason_in_the_trace;
mod a_hostile_user_disturbs_nobody;
mod a_killed_program_is_cleaned_up_after;
mod both_probes_record_the_same;
mod events_and_statistics_arrive;
mod executed_programs_have_their_own_name;
mod files_that_events_name_have_paths;
mod lost_kernel_events_are_told;
mod missing_rights_are_told;
mod mistyped_events_are_told;
mod mount_namespace;
mod odd_configs_are_reported;
mod old_services_record_the_probes;
mod probes_that_end_are_told;
mod processes_are_found_under_stress;
mod programs_are_recorded_beside_the_machine;
mod the_probes_tell_their_own_activity;
mod the_program_keeps_its_promises;
mod the_ui_opens_the_machine;
mod two_recorders_never_share_events;

use std::sync::{Mutex, MutexGuard, PoisonError};

use esatto_tests::{Implementation, Peer, Skip};

/// Implementations of the two programs of a recording.
#[derive(Clone, Copy, Debug)]
struct Pair {
    probes: Implementation,
    service: Implementation,
}

impl Pair {
    fn require(self) -> Result<(), Skip> {
        Peer::TraceProcessor.require()?;
        if [self.probes, self.service].contains(&Implementation::Theirs) {
            Peer::Official.require()?;
        }
        Ok(())
    }
}

/// Runs a scenario, a `fn(Pair) -> Result<(), Skip>`, for our probes and theirs, with our service
/// and theirs.
macro_rules! for_each_pair {
    ($scenario:path) => {
        $crate::for_each_pair!(@ $scenario,
            ours_with_our_service Ours Ours, ours_with_their_service Ours Theirs,
            theirs_with_our_service Theirs Ours, theirs_with_their_service Theirs Theirs);
    };
    (@ $scenario:path, $($name:ident $probes:ident $service:ident),*) => {$(
        #[test]
        fn $name() {
            let pair = $crate::Pair {
                probes: esatto_tests::Implementation::$probes,
                service: esatto_tests::Implementation::$service,
            };
            esatto_tests::skip(|| {
                pair.require()?;
                $scenario(pair)
            });
        }
    )*};
}
use for_each_pair;

/// Mounts tracefs. There is one for all, so the tests that use it take turns.
fn tracefs() -> Result<MutexGuard<'static, ()>, Skip> {
    esatto_tests::mount_tracefs()?;
    Ok(turn())
}

/// The turn of a test that the kernel's events of others would disturb, or that disturbs others.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a thread a name.
fn rename(name: &'static str) {
    let rename = move || {
        let name = std::ffi::CString::new(name).expect("no zero");
        rustix::thread::set_name(&name).expect("a short name");
    };
    std::thread::spawn(rename).join().expect("no panic");
}
