//! Categories: what can be switched on and off.
//!
//! A category is a static with one atomic word. Each bit of the word says whether one data source instance records the
//! category; a trace point loads the word once and does nothing if it is 0. The word starts with a mark that sends the
//! first trace point that sees it to a slow path, where the category registers itself; so categories need not be
//! announced, but those that are ([`Builder::categories`](crate::Builder::categories)) can be listed by the service before they are first used.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::name::Name;
use crate::registry;

/// Set until the category is registered. Above the bits of instances.
const UNREGISTERED: u32 = 1 << 31;

/// A named group of trace points that is enabled and disabled as a whole.
///
/// Usually declared by [`categories!`](crate::categories). Names are matched against
/// `TrackEventConfig` by `docs/spec/track-event.md` §5; the tags `slow` and `debug` keep a category out of
/// traces that do not ask for it.
#[derive(Debug)]
pub struct Category {
    state: AtomicU32,
    name: Name,
    description: &'static str,
    tags: &'static [&'static str],
}

impl Category {
    /// Makes a category without description and tags.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { state: AtomicU32::new(UNREGISTERED), name: Name::new(name), description: "", tags: &[] }
    }

    /// Adds a description for people who choose categories.
    #[must_use]
    pub const fn with_description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Adds tags.
    #[must_use]
    pub const fn with_tags(mut self, tags: &'static [&'static str]) -> Self {
        self.tags = tags;
        self
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name.text()
    }

    /// The description, or an empty string.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        self.description
    }

    /// The tags.
    #[must_use]
    pub const fn tags(&self) -> &'static [&'static str] {
        self.tags
    }

    /// True if some session records this category. Costs one relaxed load.
    #[inline(always)]
    #[must_use]
    pub fn is_enabled(&'static self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state == 0 {
            return false;
        }
        unlikely();
        state & UNREGISTERED == 0 || self.register()
    }

    /// False if no session records this category; true also if nobody has asked yet. For the macros.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn may_be_enabled(&'static self) -> bool {
        let maybe = self.state.load(Ordering::Relaxed) != 0;
        if maybe {
            unlikely();
        }
        maybe
    }

    /// How many recordings want this category now: sessions, or more than one entry of a session's config.
    #[must_use]
    pub fn recordings(&'static self) -> u32 {
        if self.is_enabled() { self.instances().count_ones() } else { 0 }
    }

    #[cold]
    #[inline(never)]
    fn register(&'static self) -> bool {
        registry::register(&[self]);
        self.instances() != 0
    }

    /// The instances that record this category, one bit each.
    #[inline]
    pub(crate) fn instances(&self) -> u32 {
        self.state.load(Ordering::Relaxed) & !UNREGISTERED
    }

    /// Replaces the whole state; only the registry does, under its lock.
    pub(crate) fn set_instances(&self, mask: u32) {
        // Release: a thread that sees the bit and then reloads the instance's epoch with acquire sees a set-up instance.
        self.state.store(mask & !UNREGISTERED, Ordering::Release);
    }

    pub(crate) fn interned_name(&self) -> &Name {
        &self.name
    }
}

/// Tells the compiler that this way is rarely taken, so that the code of an enabled trace point lies outside of its
/// surroundings.
#[cold]
const fn unlikely() {}

/// Declares categories as statics, and a list of them all.
///
/// ```
/// esatto::categories! {
///     /// Frames and what is drawn in them.
///     pub static RENDER = "render", "Frames and what is drawn in them";
///     pub static DETAILS = "render.details", "Every single triangle", tags: ["slow"];
/// }
///
/// assert_eq!(RENDER.name(), "render");
/// assert_eq!(CATEGORIES.len(), 2);
/// ```
#[macro_export]
macro_rules! categories {
    ($($(#[$meta:meta])* $vis:vis static $ident:ident = $name:literal $(, $description:literal)? $(, tags: [$($tag:literal),* $(,)?])?;)*) => {
        $(
            $(#[$meta])*
            $vis static $ident: $crate::Category = $crate::Category::new($name)
                $(.with_description($description))?
                $(.with_tags(&[$($tag),*]))?;
        )*

        /// All categories declared here, for [`esatto::Builder::categories`]($crate::Builder::categories).
        #[allow(dead_code)]
        pub static CATEGORIES: &[&$crate::Category] = &[$(&$ident),*];
    };
}
