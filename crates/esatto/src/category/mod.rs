//! Categories: groups of trace points that can be switched on and off.
//!
//! A category is a static with one atomic word. Each bit of the word says whether one data source
//! instance records the category. A trace point loads the word once and does nothing if it is 0.
//! The word starts with a mark that sends the first trace point that sees it to a slow path, where
//! the category registers itself. So categories need not be announced. But services can list
//! announced ones ([`Builder::categories`](crate::Builder::categories)) before they are first used.

use core::sync::atomic::AtomicU32;

use esatto_instances::{Recording, ThreadGate as _};

use crate::name::Name;
use crate::trace_point_gate::Gate;

mod dynamic;
mod foreign;
#[cfg(feature = "in-process")]
pub(crate) mod known;
pub(crate) mod registry;
pub(crate) mod selection;

pub(crate) use dynamic::hold_for_fork;
pub use foreign::{Foreign, Role};

/// Set until the category is registered. It is above the bits of instances.
const UNREGISTERED: u32 = 1 << 31;

/// The most categories that a group may have (`docs/spec/track-event.md` §4).
const MAX_GROUP: usize = 4;

/// A named group of trace points that is enabled and disabled as a whole.
///
/// Usually declared by [`categories!`](crate::categories). Names are matched against
/// `TrackEventConfig` by `docs/spec/track-event.md` §5. The tags `slow` and `debug` keep a category
/// out of traces that do not ask for it.
#[doc(alias = "target", alias = "module", alias = "tag", alias = "group")]
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
    /// Services list it.
    Static,
    /// On if one of these is.
    Group(&'static [&'static Category]),
    /// Made at run time; not listed.
    Dynamic,
    /// A category of a library for another language.
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

    /// Makes a group of up to four categories. It is on if one of them is, and its events belong to
    /// all of them. It has no name, description or tags, and groups in it are ignored.
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

    /// Returns the category with a name that is known only at run time, the same one for each call
    /// with this name. A name with commas stands for a group.
    ///
    /// They are switched like other categories, but services do not list them. A name that begins
    /// with `disabled-by-default-` counts as tagged `slow`. Keep the result if possible, because
    /// the call takes a lock. A trace point in such a category costs as much as one with arguments
    /// in a static category. Categories live as long as the process, which may make some thousand
    /// of them ([`MAX_DYNAMIC`](Self::MAX_DYNAMIC)). Later ones share a category named
    /// `esatto.other`.
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

    /// As [`dynamic`](Self::dynamic). Each list of tags makes a separate category.
    #[must_use]
    pub fn dynamic_with_tags(name: &str, tags: &[&str]) -> &'static Self {
        dynamic::find(name, tags)
    }

    /// Returns the placeholder in a [`Site`](crate::Site) for a category that each event passes as
    /// [`Arg::Category`](crate::Arg::Category). It is always off.
    #[must_use]
    pub const fn of_argument() -> &'static Self {
        static OF_ARGUMENT: Category = Category::with_form("", Form::Group(&[]));
        &OF_ARGUMENT
    }

    pub(crate) const MAX_GROUP: usize = MAX_GROUP;

    /// The most categories that a process can make with [`dynamic`](Self::dynamic).
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

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name.text()
    }

    /// Returns the description, or an empty string.
    #[must_use]
    pub const fn description(&self) -> &'static str {
        self.description
    }

    /// Returns the tags.
    #[must_use]
    pub const fn tags(&self) -> &'static [&'static str] {
        self.tags
    }

    /// Returns true if a session records this category. Costs one relaxed load. Inside a trace
    /// point, where other trace points do nothing, a category that was never used before is off.
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

    /// Returns false if no session records this category. Also returns true if the category was
    /// never used. For the macros.
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

    /// Returns the word that is 0 while [`may_be_enabled`](Self::may_be_enabled) returns false. Do
    /// not change it.
    #[doc(hidden)]
    #[must_use]
    pub const fn word(&self) -> &AtomicU32 {
        self.state.word()
    }

    /// Returns how many recordings want this category now: sessions, or several entries of one
    /// session's config.
    #[must_use]
    pub fn recordings(&'static self) -> u32 {
        if self.is_enabled() { self.instances().count_ones() } else { 0 }
    }

    /// As [`instances`](Self::instances); `None` if the category is not registered.
    #[inline(always)]
    pub(crate) fn known_instances(&self) -> Option<u32> {
        let state = self.state.load();
        (state & UNREGISTERED == 0).then_some(state)
    }

    #[cold]
    #[inline(never)]
    fn register(&'static self) -> bool {
        // A trace point would do nothing here, so the category registers at a later one.
        if !Gate::is_open() {
            return false;
        }
        registry::register_reached(self);
        self.instances() != 0
    }

    /// Returns the instances that record this category, as a bit mask. They are in their slots.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn instances(&self) -> u32 {
        self.state.load() & !UNREGISTERED
    }

    /// Replaces the whole state. Only the registry calls this, under its lock.
    pub(crate) fn set_instances(&self, mask: u32) {
        self.state.set(mask & !UNREGISTERED);
    }

    /// Forgets the instances, in the child of a fork. A category that was on has to be registered
    /// again.
    fn forget_instances(&self) {
        let was_on = self.state.peek() != 0 && self.foreign_side().is_none();
        self.state.set(if was_on { UNREGISTERED } else { 0 });
    }

    pub(crate) fn interned_name(&self) -> &Name {
        &self.name
    }

    /// Returns the categories of an event in this one.
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

    /// Returns whether services list it. They do not list groups and categories made at run time.
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

/// Tells the compiler that this path is rarely taken, so that the code of an enabled trace point
/// lies outside of the surrounding code.
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
///
/// A module has one list, so put all its categories into one macro. A name must be one that a list
/// of patterns can select: it is not empty, has no `*` or `,`, and begins neither with `-` nor with
/// `tag:`. It does not begin or end with a space.
#[doc(alias = "target", alias = "PERFETTO_DEFINE_CATEGORIES")]
#[macro_export]
macro_rules! categories {
    ($($(#[$meta:meta])* $vis:vis static $ident:ident = $name:tt $(, $description:literal)? $(, tags: [$($tag:literal),* $(,)?])?;)*) => {
        $(
            $(#[$meta])*
            $vis static $ident: $crate::Category = $crate::__category!($name)
                $(.with_description($description))?
                $(.with_tags(&[$($tag),*]))?;
        )*

        // The compiler prints this name if a module has two lists.
        #[doc(hidden)]
        #[allow(dead_code)]
        const ALL_CATEGORIES_OF_A_MODULE_BELONG_INTO_ONE_CATEGORIES_MACRO: () = ();

        /// All categories declared here, for
        /// [`esatto::Builder::categories`]($crate::Builder::categories).
        #[allow(dead_code)]
        pub static CATEGORIES: &[&$crate::Category] = &[$(&$ident),*];
    };
    ($($wrong:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected categories such as `static NET = \"net\";`, `static ROWS = \"net.rows\", \"Every row\", ",
            "tags: [\"slow\"];`, and groups such as `static BOTH = [NET, ROWS];`, found `",
            ::core::stringify!($($wrong)*),
            "`"
        ));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __category {
    ([$($member:path),* $(,)?]) => {
        $crate::Category::group(&[$(&$member),*])
    };
    ($name:literal) => {
        $crate::Category::new($crate::__private::category_name($name))
    };
    ($wrong:tt) => {
        ::core::compile_error!(::core::concat!(
            "expected the name of a category as a literal, or a group `[NET, ROWS]`, found `",
            ::core::stringify!($wrong),
            "`"
        ))
    };
}
