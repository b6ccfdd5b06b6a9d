//! An application and a recording that must not notice what somebody else does to the service.

use crate::workload::{self, CONFIG_WITHOUT_DEBUG, Expected, Workload};
use crate::{Lab, Peer, Program, Side, Skip};

/// About a second.
const WORKLOAD: Workload = Workload { threads: 2, rounds: 800, pause_us: 1000 };

/// Runs `attack` against our service while an application is being recorded.
///
/// Afterwards the recording is whole, the service lives, it has not panicked and has written
/// something about the attack into its log, unless `attack` says that there is nothing to tell.
///
/// # Errors
///
/// What `attack` returns, or there is no trace processor.
///
/// # Panics
///
/// One of these does not hold.
pub fn attack(attack: impl FnOnce(&Lab, &mut Program) -> Logged) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    let lab = Lab::new();
    let mut service = lab.service(Side::under_test());
    let mut recording = lab.record(Side::under_test(), "trace", CONFIG_WITHOUT_DEBUG);
    lab.wait_for_sessions(1);
    let mut application = lab.application(Side::under_test(), WORKLOAD);
    lab.wait_for_producers(1);

    let before = service.log().lines().count();
    let logged = attack(&lab, &mut service);
    let log = service.log();
    assert!(service.is_running(), "the service died of it");
    if logged == Logged::Yes {
        assert!(log.lines().count() > before, "the service's log says nothing of it");
    }

    application.wait_ok();
    let trace = lab.stop(&mut recording);
    workload::assert_whole(&trace, &[Expected { pid: application.pid(), workload: WORKLOAD, details: false }]);
    assert!(!service.log().contains("panicked"), "the service panicked");
    // It still knows who is there.
    assert_eq!(lab.state().sessions, 0);
    Ok(())
}

/// Whether an attack leaves a line in the service's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    /// It must.
    Yes,
    /// It is no mistake, or an ordinary one.
    No,
}

/// Random numbers that are the same every time (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }
}
