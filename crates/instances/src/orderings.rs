//! Memory orderings and rules that the guarantees of this crate need, each with a name.
//!
//! A model that passes proves nothing if it also passes without them. So under loom `Without` takes
//! one of them away. `tests/loom/requirements.rs` states for each of them the model that then
//! fails, or why none does, if the code keeps more than the proof needs.

use core::sync::atomic::Ordering;

/// Access to memory that several threads reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(esatto_loom), allow(unreachable_pub, reason = "models name it"))]
pub enum Access {
    /// Load of the word that says which instances record, by a thread that writes for them next.
    LoadRecording,
    /// Change of that word when an instance starts or stops.
    ChangeRecording,
    /// Load of a slot's stamp.
    LoadStamp,
    /// Store of the stamp of an instance that is set up.
    OccupySlot,
    /// Store of the stamp of an empty slot.
    VacateSlot,
    /// Store of a stamp that clears incremental state.
    ClearState,
    /// Load of the last epoch, by a thread that later asks whether other instances were set up.
    LoadLastEpoch,
    /// Store of the last epoch when an instance is set up.
    RaiseLastEpoch,
    /// Load of the count of ended instances, before a thread looks for their writers.
    LoadEndedCount,
    /// Increment of that count when an instance has ended.
    RaiseEndedCount,
    /// Load of a lock's flags by the owner that enters.
    Enter,
    /// Store by which the owner leaves.
    Leave,
    /// Store by which the owner lets another thread go first.
    StepBack,
    /// Load by which another thread learns whether the owner is inside.
    LoadBusy,
    /// Store by which another thread gives the value back.
    GiveBack,
    /// Store by which the owner says that it makes barriers itself.
    TellFences,
    /// Load by which another thread learns whether the owner makes barriers.
    LoadFences,
}

/// Step that the code takes in addition to its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(esatto_loom), allow(dead_code, unreachable_pub, reason = "models name it; only they have halves"))]
pub enum Rule {
    /// The owner's half of the barrier between entering and being held.
    OwnersBarrier,
    /// The other thread's half of that barrier.
    OthersBarrier,
    /// The system makes both halves. Without it, other threads tell the owner to make barriers
    /// itself, and leave its value alone until it does.
    SystemsBarrier,
    /// A thread that finds another instance in a slot than it knows asks again whether that one
    /// records.
    AskAgain,
    /// A thread that ends returns its chunks itself.
    ReturnChunksAtEnd,
    /// If an instance was set up while a slice began, the thread finds out which of the instances
    /// has the begin.
    TellApart,
}

impl Access {
    /// All accesses.
    #[cfg(esatto_loom)]
    pub const ALL: [Self; 17] = [
        Self::LoadRecording,
        Self::ChangeRecording,
        Self::LoadStamp,
        Self::OccupySlot,
        Self::VacateSlot,
        Self::ClearState,
        Self::LoadLastEpoch,
        Self::RaiseLastEpoch,
        Self::LoadEndedCount,
        Self::RaiseEndedCount,
        Self::Enter,
        Self::Leave,
        Self::StepBack,
        Self::LoadBusy,
        Self::GiveBack,
        Self::TellFences,
        Self::LoadFences,
    ];

    /// Returns the ordering of this access.
    const fn specified(self) -> Ordering {
        match self {
            Self::LoadRecording
            | Self::LoadStamp
            | Self::LoadLastEpoch
            | Self::LoadEndedCount
            | Self::Enter
            | Self::LoadBusy
            | Self::LoadFences => Ordering::Acquire,
            Self::ChangeRecording
            | Self::OccupySlot
            | Self::VacateSlot
            | Self::ClearState
            | Self::RaiseLastEpoch
            | Self::RaiseEndedCount
            | Self::Leave
            | Self::StepBack
            | Self::GiveBack
            | Self::TellFences => Ordering::Release,
        }
    }

    /// Returns the ordering to use now.
    #[cfg(not(esatto_loom))]
    #[inline(always)]
    pub(crate) const fn ordering(self) -> Ordering {
        self.specified()
    }

    /// Returns the ordering to use now: relaxed, if a model runs without it.
    #[cfg(esatto_loom)]
    pub(crate) fn ordering(self) -> Ordering {
        if without::is_missing(Requirement::Ordering(self)) { Ordering::Relaxed } else { self.specified() }
    }
}

impl Rule {
    /// All rules.
    #[cfg(esatto_loom)]
    pub const ALL: [Self; 6] = [
        Self::OwnersBarrier,
        Self::OthersBarrier,
        Self::SystemsBarrier,
        Self::AskAgain,
        Self::ReturnChunksAtEnd,
        Self::TellApart,
    ];

    /// Returns true: only models run without a rule.
    #[cfg(not(esatto_loom))]
    #[inline(always)]
    pub(crate) const fn is_kept(self) -> bool {
        let _ = self;
        true
    }

    /// Returns false if a model runs without the rule.
    #[cfg(esatto_loom)]
    pub(crate) fn is_kept(self) -> bool {
        !without::is_missing(Requirement::Rule(self))
    }
}

#[cfg(esatto_loom)]
pub use without::{Requirement, Without};

#[cfg(esatto_loom)]
mod without {
    use std::cell::Cell;

    use super::{Access, Rule};

    std::thread_local! {
        /// Thread-local, because loom runs all threads of a model on the thread that checks it.
        static MISSING: Cell<[Option<Requirement>; 2]> = const { Cell::new([None; 2]) };
    }

    /// Ordering or rule that models can run without.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Requirement {
        /// The ordering of an access.
        Ordering(Access),
        /// A rule.
        Rule(Rule),
    }

    pub(super) fn is_missing(requirement: Requirement) -> bool {
        MISSING.get().contains(&Some(requirement))
    }

    /// Guard that takes a requirement away from all models that this thread checks while the guard
    /// lives. There may be two at a time, if the second one ends first.
    #[derive(Debug)]
    pub struct Without {
        before: [Option<Requirement>; 2],
    }

    impl Without {
        /// Takes a requirement away.
        pub fn new(requirement: Requirement) -> Self {
            let before = MISSING.get();
            assert_eq!(before[1], None, "a third requirement is taken away");
            MISSING.set([Some(requirement), before[0]]);
            Self { before }
        }
    }

    impl Drop for Without {
        fn drop(&mut self) {
            MISSING.set(self.before);
        }
    }
}
