//! What keeps threads that trace apart from sessions that come and go: orderings of memory, and looks that are taken twice. Each has a name here.
//!
//! A model that passes proves nothing if it would pass without them too. So under loom each can be taken away (`Without`), and
//! `crates/shm/tests/loom_sdk/needed.rs` holds what then becomes of the models: one named model fails, or none, for what is kept
//! beyond the proof.

use core::sync::atomic::Ordering;

/// An access to memory that several threads reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The load of the word that says which instances record something, by who is going to write for them.
    SeeRecording,
    /// Its change, when an instance starts or stops.
    ChangeRecording,
    /// The load of a slot's stamp.
    SeeStamp,
    /// The store of the stamp of an instance that is set up.
    OccupySlot,
    /// The store that says that nobody is in the slot any more.
    VacateSlot,
    /// The store that has incremental state cleared.
    ClearState,
    /// The load of the count of instances, by who wants to know later whether there are others.
    SeeEpoch,
    /// Its change, when one is set up.
    RaiseEpoch,
    /// The load of the count of ended instances, before writers of theirs are looked for.
    SeeGeneration,
    /// Its change, when one has ended.
    RaiseGeneration,
    /// The owner's look at the flags of its state, as it enters.
    Enter,
    /// The store by which it leaves.
    Leave,
    /// The same, to let another thread go first.
    StepBack,
    /// The look of another thread whether the owner is inside.
    SeeBusy,
    /// The store by which another thread gives the state back.
    GiveBack,
    /// The store by which the owner says that it makes barriers itself.
    TellFences,
    /// Another thread's look whether it has said so.
    SeeFences,
}

/// Something that is done in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(esatto_loom), allow(dead_code, reason = "the barrier has halves in models only"))]
pub(crate) enum Rule {
    /// The owner's half of the barrier between its entering and another thread's taking hold.
    OwnersBarrier,
    /// The other's half.
    OthersBarrier,
    /// The system makes both halves. Without it, owners are told to make barriers themselves, and
    /// are left alone until they do.
    SystemsBarrier,
    /// A thread that finds another instance in a slot than it knows looks again whether that one records.
    LookAgain,
    /// A thread that ends returns its chunks.
    EndInPerson,
    /// If another instance came to a slot while something was begun, it is found out which of the two has the begin.
    TellApart,
}

impl Access {
    /// All of them.
    #[cfg(esatto_loom)]
    pub(crate) const ALL: [Self; 17] = [
        Self::SeeRecording,
        Self::ChangeRecording,
        Self::SeeStamp,
        Self::OccupySlot,
        Self::VacateSlot,
        Self::ClearState,
        Self::SeeEpoch,
        Self::RaiseEpoch,
        Self::SeeGeneration,
        Self::RaiseGeneration,
        Self::Enter,
        Self::Leave,
        Self::StepBack,
        Self::SeeBusy,
        Self::GiveBack,
        Self::TellFences,
        Self::SeeFences,
    ];

    /// What it has.
    pub(crate) const fn specified(self) -> Ordering {
        match self {
            Self::SeeRecording
            | Self::SeeStamp
            | Self::SeeEpoch
            | Self::SeeGeneration
            | Self::Enter
            | Self::SeeBusy
            | Self::SeeFences => Ordering::Acquire,
            Self::ChangeRecording
            | Self::OccupySlot
            | Self::VacateSlot
            | Self::ClearState
            | Self::RaiseEpoch
            | Self::RaiseGeneration
            | Self::Leave
            | Self::StepBack
            | Self::GiveBack
            | Self::TellFences => Ordering::Release,
        }
    }

    #[cfg(not(esatto_loom))]
    #[inline(always)]
    pub(crate) const fn ordering(self) -> Ordering {
        self.specified()
    }

    #[cfg(esatto_loom)]
    pub(crate) fn ordering(self) -> Ordering {
        if without::is(Promise::Of(self)) { Ordering::Relaxed } else { self.specified() }
    }
}

impl Rule {
    /// All of them.
    #[cfg(esatto_loom)]
    pub(crate) const ALL: [Self; 6] = [
        Self::OwnersBarrier,
        Self::OthersBarrier,
        Self::SystemsBarrier,
        Self::LookAgain,
        Self::EndInPerson,
        Self::TellApart,
    ];

    /// Whether it is kept: always, but in models.
    #[cfg(not(esatto_loom))]
    #[inline(always)]
    pub(crate) const fn is_kept(self) -> bool {
        let _ = self;
        true
    }

    #[cfg(esatto_loom)]
    pub(crate) fn is_kept(self) -> bool {
        !without::is(Promise::To(self))
    }
}

#[cfg(esatto_loom)]
pub(crate) use without::{Promise, Without};

#[cfg(esatto_loom)]
mod without {
    use std::cell::Cell;

    use super::{Access, Rule};

    std::thread_local! {
        /// Loom runs all threads of a model on the thread that checks it.
        static WITHOUT: Cell<[Option<Promise>; 2]> = const { Cell::new([None; 2]) };
    }

    /// What can be taken away.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Promise {
        /// The ordering of an access.
        Of(Access),
        /// To keep a rule.
        To(Rule),
    }

    pub(super) fn is(promise: Promise) -> bool {
        WITHOUT.get().contains(&Some(promise))
    }

    /// While it lives, something is missing from all models checked by this thread. There may be
    /// two at a time: the second one ends first.
    #[derive(Debug)]
    pub(crate) struct Without {
        before: [Option<Promise>; 2],
    }

    impl Without {
        /// Takes it away.
        pub(crate) fn new(promise: Promise) -> Self {
            let before = WITHOUT.get();
            assert_eq!(before[1], None, "a third promise is taken away");
            WITHOUT.set([Some(promise), before[0]]);
            Self { before }
        }
    }

    impl Drop for Without {
        fn drop(&mut self) {
            WITHOUT.set(self.before);
        }
    }
}
