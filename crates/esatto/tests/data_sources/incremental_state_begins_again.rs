use core::sync::atomic::{AtomicU32, Ordering};

use esatto::schema::trace_config::IncrementalStateConfig;
use esatto::{DataSource, Setup, Source};

use super::{config, start, wait_until};

static CLEARS: AtomicU32 = AtomicU32::new(0);

struct Interner;

/// Counts the live states.
#[derive(Default)]
struct State {
    names: u32,
    reused: bool,
}

impl DataSource for Interner {
    type Config = ();
    type ThreadState = u32;
    type IncrementalState = State;

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }

    fn will_clear_incremental_state(&self) {
        CLEARS.fetch_add(1, Ordering::SeqCst);
    }

    fn clear_incremental_state(state: &mut State) {
        *state = State { names: 0, reused: true };
    }
}

static SOURCE: Source<Interner> = Source::new("test.interner");

#[test]
fn cases_18_and_19_state_is_cleared_for_each_instance_alone() {
    SOURCE.register().expect("registers");
    let lasting = start(config("test.interner", &[1]));
    let mut cleared = config("test.interner", &[2]);
    cleared.incremental_state_config = Some(IncrementalStateConfig { clear_period_ms: Some(20), ..Default::default() });
    let cleared = start(cleared);
    let mut states = [(0, false, 0), (0, false, 0)];
    let mut new = [0, 0];
    wait_until("the second instance begins anew", || {
        SOURCE.trace(|context| {
            let instance = context.instance();
            new[instance] += u32::from(context.is_state_new());
            let parts = context.parts();
            parts.incremental_state.names += 1;
            *parts.thread_state += 1;
            states[instance] = (parts.incremental_state.names, parts.incremental_state.reused, *parts.thread_state);
        });
        new[1] >= 3
    });
    let [(names, reused, calls), (fresh_names, fresh_reused, fresh_calls)] = states;
    assert_eq!((names, reused, new[0]), (calls, false, 1), "the first was left alone");
    assert!(fresh_reused && fresh_names < fresh_calls && fresh_calls == calls, "{states:?}");
    assert!(CLEARS.load(Ordering::SeqCst) >= 2);
    cleared.stop().expect("stops");
    lasting.stop().expect("stops");
}
