//! Tracks: the lanes on which slices, instants, counters and states are drawn
//! (`docs/spec/track-event.md` §§7, 8).

pub(crate) mod announcement;
mod appearance;
mod counter_track;
mod descriptor;
mod state_track;

use core::sync::atomic::{AtomicU64, Ordering};
use std::borrow::Cow;
use std::sync::Arc;

use appearance::{Appearance, appearance_methods, place_methods};
pub use appearance::{ChildOrdering, Merge};
use counter_track::Counter;
pub use counter_track::{CounterTrack, Unit};
pub use state_track::StateTrack;

use crate::hash::fnv;
use crate::os::process_info;
use crate::track_uuid::{self, NAMED_TRACK_MAGIC};

/// A lane for events.
///
/// Events without a track appear on the lane of their thread. The first time a thread uses a track,
/// the trace describes the track and its ancestors. Equal tracks made in different places are one.
///
/// | track | made by |
/// | --- | --- |
/// | one lane for each numbered thing of this process | [`Track::process`] |
/// | one lane for each object in memory | [`Track::pointer`] |
/// | a lane for one operation, which no other shares | [`Track::unique`] |
/// | a lane with a name, or several of one name | [`Track::with_name`], [`Track::dynamic`] |
/// | the same lane for several processes | [`Track::global`], [`at_root`](Track::at_root) |
/// | the process itself, its threads | [`Track::of_process`], [`Track::of_thread`], [`Track::of_this_thread`] |
///
/// ```
/// # esatto::categories! { static NET = "net"; }
/// use esatto::Track;
///
/// static CONNECTIONS: Track = Track::with_name("connections", 0).description("All that are open");
///
/// let connection = Track::with_name("connection", 7).within(&CONNECTIONS).sibling_rank(7);
/// esatto::begin!(NET, track: &connection, "transfer");
/// esatto::end!(NET, track: &connection);
/// ```
///
/// # Slices that overlap
///
/// Slices of one track must be nested in time. Give things that overlap separate tracks with one
/// name and one parent: [`unique`](Track::unique) for each. Readers draw them in as few rows as
/// possible, unless [`merge`](Track::merge) says otherwise.
#[doc(alias = "timeline", alias = "row", alias = "NamedTrack")]
#[derive(Clone, Debug)]
pub struct Track {
    /// The identity, without the parent's.
    seed: u64,
    parent: Parent,
    /// The parent if `parent` is `Shared`.
    shared_parent: Option<Arc<Self>>,
    name: Cow<'static, str>,
    kind: Kind,
    appearance: Appearance,
}

#[derive(Clone, Copy, Debug)]
enum Parent {
    Root,
    Process,
    /// The calling thread.
    Thread,
    Static(&'static Track),
    Shared,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Events,
    Process,
    /// A thread by its number, or the calling one.
    Thread(Option<u32>),
    Counter(Counter),
    State,
}

impl Track {
    const fn new(seed: u64, parent: Parent, name: &'static str, kind: Kind) -> Self {
        let appearance = Appearance::new();
        Self { seed, parent, shared_parent: None, name: Cow::Borrowed(name), kind, appearance }
    }

    /// Makes a track of this process. Equal ids of one process are the same track.
    #[must_use]
    pub const fn process(id: u64) -> Self {
        Self::new(id, Parent::Process, "", Kind::Events)
    }

    /// Makes a track that belongs to no process: equal ids of all processes are the same track. 0
    /// is the default track of the trace.
    #[must_use]
    pub const fn global(id: u64) -> Self {
        Self::new(id, Parent::Root, "", Kind::Events)
    }

    /// Makes a track of this process for an object, by its address.
    #[must_use]
    pub fn pointer<T: ?Sized>(object: *const T) -> Self {
        Self::process(object.cast::<u8>().addr() as u64)
    }

    /// Makes a track of this process with a name, which is part of its identity: one per (name,
    /// id).
    #[must_use]
    pub const fn with_name(name: &'static str, id: u64) -> Self {
        let seed = id ^ fnv(name.as_bytes()) ^ NAMED_TRACK_MAGIC;
        Self::new(seed, Parent::Process, name, Kind::Events)
    }

    /// As [`with_name`](Self::with_name), with a name made at run time.
    #[must_use]
    pub fn dynamic(name: impl Into<String>, id: u64) -> Self {
        let name = name.into();
        let seed = id ^ fnv(name.as_bytes()) ^ NAMED_TRACK_MAGIC;
        let mut track = Self::new(seed, Parent::Process, "", Kind::Events);
        track.name = Cow::Owned(name);
        track
    }

    /// Makes a track that differs from all others of this process: one for each request, task or
    /// connection.
    ///
    /// Tracks of this kind with one name and one parent share as few rows as possible. Keep the
    /// track, or its clone, for the whole operation:
    ///
    /// ```
    /// # esatto::categories! { static NET = "net"; }
    /// use esatto::Track;
    ///
    /// let request = Track::unique("request");
    /// esatto::begin!(NET, track: &request, "wait");
    /// let worker = std::thread::spawn(move || esatto::end!(NET, track: &request));
    /// # worker.join().unwrap();
    /// ```
    #[must_use]
    pub fn unique(name: &'static str) -> Self {
        /// A separate range of ids, apart from small numbers and addresses.
        const FIRST: u64 = 0x5ae7_0000_0000_0000;
        static NEXT: AtomicU64 = AtomicU64::new(FIRST);
        Self::with_name(name, NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the track of this process.
    #[must_use]
    pub const fn of_process() -> Self {
        Self::new(0, Parent::Process, "", Kind::Process)
    }

    /// Returns the track of the thread of this process with this number, as the operating system
    /// counts.
    #[must_use]
    pub const fn of_thread(tid: u32) -> Self {
        Self::new(tid as u64, Parent::Process, "", Kind::Thread(Some(tid)))
    }

    /// Returns the track of the calling thread, on which events without a track appear. In a
    /// `static`: of the thread that uses it.
    #[must_use]
    pub const fn of_this_thread() -> Self {
        Self::new(0, Parent::Thread, "", Kind::Thread(None))
    }

    /// Sets a name to show. A `&'static str` counts as a constant of the program.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    place_methods!(self);
    appearance_methods!(appearance);

    /// Keeps this track apart from the tracks that the operating system's own events of this thread
    /// or process use. For [`of_process`](Self::of_process) and [`of_thread`](Self::of_thread).
    #[must_use]
    pub const fn apart_from_system_tracks(mut self) -> Self {
        self.appearance.apart_from_system_tracks = true;
        self
    }

    /// Returns the id in the trace, unique among all processes. For a track of the calling thread
    /// it depends on the thread.
    #[must_use]
    pub fn uuid(&self) -> u64 {
        let parent = self.parent_uuid();
        self.seed ^ if self.is_process_or_thread() { parent } else { track_uuid::parent_part(parent) }
    }

    fn parent_uuid(&self) -> u64 {
        match (self.parent, &self.shared_parent) {
            (Parent::Static(track), _) => track.uuid(),
            (Parent::Shared, Some(track)) => track.uuid(),
            (Parent::Process, _) => track_uuid::process_uuid(),
            (Parent::Thread, _) => track_uuid::thread_uuid(process_info::tid()),
            (Parent::Root | Parent::Shared, _) => 0,
        }
    }

    /// Returns whether this is the track of a process or of a thread.
    pub(crate) const fn is_process_or_thread(&self) -> bool {
        matches!(self.kind, Kind::Process | Kind::Thread(_))
    }

    /// The parent, if it is not the process, the thread or nothing: it has to be described before
    /// this track.
    pub(crate) fn parent_track(&self) -> Option<&Self> {
        match (self.parent, &self.shared_parent) {
            (Parent::Static(track), _) => Some(track),
            (Parent::Shared, Some(track)) => Some(track),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
