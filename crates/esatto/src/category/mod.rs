//! Categories: what can be switched on and off.
//!
//! A category is a static with one atomic word. Each bit of the word says whether one data source instance records the
//! category; a trace point loads the word once and does nothing if it is 0. The word starts with a mark that sends the
//! first trace point that sees it to a slow path, where the category registers itself; so categories need not be
//! announced, but those that are ([`Builder::categories`](crate::Builder::categories)) can be listed by the service before they are first used.

use esatto_instances::{Recording, ThreadGate as _};

use crate::name::Name;
use crate::thread_gate::Gate;

mod dynamic;
mod foreign;
pub(crate) mod registry;
pub(crate) mod selection;

pub(crate) use dynamic::hold_for_fork;
pub use foreign::{Foreign, Role};

/// Set until the category is registered. Above the bits of instances.
const UNREGISTERED: u32 = 1 << 31;

/// Categories that a group may have (`docs/spec/track-event.md` §4).
const MAX_GROUP: usize = 4;

/// A named group of trace points that is enabled and disabled as a whole.
///
/// Usually declared by [`categories!`](crate::categories). Names are matched against
/// `TrackEventConfig` by `docs/spec/track-event.md` §5; the tags `slow` and `debug` keep a category out of
/// traces that do not ask for it.
#[derive(Debug)]
pub struct Category {
    state: Recording,
    name: Name,
    description: &'static str,
    tags: &'static [&'static str],
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// One that is listed by services.
    Static,
    /// On if any of these is.
    Group(&'static [&'static Category]),
    /// Made at run time; not listed.
    Dynamic,
    /// Of a library for another language.
    Foreign(&'static dyn Foreign),
}

impl Category {
    /// Makes a category without description and tags.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self::with_form(name, Form::Static)
    }

    const fn with_form(name: &'static str, form: Form) -> Self {
        Self { state: Recording::new(UNREGISTERED), name: Name::new(name), description: "", tags: &[], form }
    }

    /// Makes a group of up to four categories: it is on if one of them is, and its events belong to all of them. It has no
    /// name, description or tags of its own, and groups in it count for nothing.
    ///
    /// ```
    /// esatto::categories! {
    ///     static NET = "net";
    ///     static DISK = "disk", tags: ["slow"];
    ///     static IO = [NET, DISK];
    /// }
    ///
    /// esatto::instant!(IO, "copied");
    /// ```
    ///
    /// # Panics
    ///
    /// If there are more than four; a `static` then does not compile.
    #[must_use]
    pub const fn group(members: &'static [&'static Self]) -> Self {
        assert!(members.len() <= MAX_GROUP, "a group has at most four categories");
        Self::with_form("", Form::Group(members))
    }

    /// The category with a name that is known at run time only, the same one for each call with this name. A name with commas stands for
    /// a group.
    ///
    /// Such categories are switched as others are, but services do not list them, and a name that begins with
    /// `disabled-by-default-` counts as tagged `slow`. Keep the result where you can: the call takes a lock, a trace point in the category costs what it costs in
    /// a static one that has arguments. Categories live as long as the process, which may make some thousand of them
    /// ([`MAX_DYNAMIC`](Self::MAX_DYNAMIC)); what comes later shares one that is called `esatto.other`.
    ///
    /// ```
    /// use esatto::Category;
    ///
    /// # let plugin = "sepia";
    /// let category = Category::dynamic(&format!("plugin.{plugin}"));
    /// esatto::instant!(category: category, "loaded");
    /// assert!(core::ptr::eq(category, Category::dynamic("plugin.sepia")));
    /// ```
    #[must_use]
    pub fn dynamic(name: &str) -> &'static Self {
        Self::dynamic_with_tags(name, &[])
    }

    /// As [`dynamic`](Self::dynamic); each list of tags makes a category of its own.
    #[must_use]
    pub fn dynamic_with_tags(name: &str, tags: &[&str]) -> &'static Self {
        dynamic::find(name, tags)
    }

    /// Stands in a [`Site`](crate::Site) for a category that comes with each event, as [`Arg::Category`](crate::Arg::Category). It is always off.
    #[must_use]
    pub const fn of_argument() -> &'static Self {
        static OF_ARGUMENT: Category = Category::with_form("", Form::Group(&[]));
        &OF_ARGUMENT
    }

    pub(crate) const MAX_GROUP: usize = MAX_GROUP;

    /// How many categories a process can make by [`dynamic`](Self::dynamic).
    pub const MAX_DYNAMIC: usize = dynamic::MAX;

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

    /// True if some session records this category. Costs one relaxed load. Inside of a trace point, which others in it do not get through, a category that
    /// nobody has asked about before is off.
    #[inline(always)]
    #[must_use]
    pub fn is_enabled(&'static self) -> bool {
        let state = self.state.peek();
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
        let maybe = self.state.peek() != 0;
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

    /// As [`instances`](Self::instances). `None`: the category is not registered.
    #[inline(always)]
    pub(crate) fn known_instances(&self) -> Option<u32> {
        let state = self.state.load();
        (state & UNREGISTERED == 0).then_some(state)
    }

    #[cold]
    #[inline(never)]
    fn register(&'static self) -> bool {
        // Where a trace point would do nothing, the category waits for one that would.
        if !Gate::is_open() {
            return false;
        }
        registry::register(&[self]);
        self.instances() != 0
    }

    /// The instances that record this category, one bit each: they are in their slots.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn instances(&self) -> u32 {
        self.state.load() & !UNREGISTERED
    }

    /// Replaces the whole state; only the registry does, under its lock.
    pub(crate) fn set_instances(&self, mask: u32) {
        self.state.set(mask & !UNREGISTERED);
    }

    pub(crate) fn interned_name(&self) -> &Name {
        &self.name
    }

    /// The categories that an event in this one belongs to.
    pub(crate) fn members(&'static self) -> impl Iterator<Item = &'static Self> {
        let (own, members) = match self.form {
            Form::Group(members) => (None, members),
            Form::Static | Form::Dynamic | Form::Foreign(_) => (Some(self), [].as_slice()),
        };
        own.into_iter().chain(members.iter().copied().filter(|member| !member.is_group()))
    }

    pub(crate) const fn is_group(&self) -> bool {
        matches!(self.form, Form::Group(_))
    }

    pub(crate) const fn foreign_side(&self) -> Option<&'static dyn Foreign> {
        match self.form {
            Form::Foreign(foreign) => Some(foreign),
            _ => None,
        }
    }

    /// Whether services are told of it: neither groups nor those made at run time.
    pub(crate) fn is_listed(&self) -> bool {
        match self.form {
            Form::Static => true,
            Form::Group(_) | Form::Dynamic => false,
            Form::Foreign(foreign) => foreign.role() == Role::Listed,
        }
    }

    pub(crate) const fn is_dynamic(&self) -> bool {
        matches!(self.form, Form::Dynamic)
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
///     /// On if one of both is; see [`Category::group`].
///     pub static EITHER = [RENDER, DETAILS];
/// }
///
/// assert_eq!(RENDER.name(), "render");
/// assert_eq!(CATEGORIES.len(), 3);
/// ```
#[macro_export]
macro_rules! categories {
    ($($(#[$meta:meta])* $vis:vis static $ident:ident = $name:tt $(, $description:literal)? $(, tags: [$($tag:literal),* $(,)?])?;)*) => {
        $(
            $(#[$meta])*
            $vis static $ident: $crate::Category = $crate::__category!($name)
                $(.with_description($description))?
                $(.with_tags(&[$($tag),*]))?;
        )*

        /// All categories declared here, for [`esatto::Builder::categories`]($crate::Builder::categories).
        #[allow(dead_code)]
        pub static CATEGORIES: &[&$crate::Category] = &[$(&$ident),*];
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __category {
    ([$($member:path),* $(,)?]) => {
        $crate::Category::group(&[$(&$member),*])
    };
    ($name:literal) => {
        $crate::Category::new($name)
    };
}
