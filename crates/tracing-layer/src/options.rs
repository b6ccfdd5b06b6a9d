//! Options of the recording.

use core::fmt;
use std::borrow::Cow;

use tracing_core::{Level, LevelFilter, Metadata};

/// Slices that a span becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slices {
    /// Slices that fit the span.
    ///
    /// A span that is entered once, in the thread that created it, becomes one slice on the track
    /// of that thread. A span that is entered again, or in another thread, belongs to a future. It
    /// is recorded as with [`Both`](Self::Both), and so are all later spans of the same call site,
    /// from their beginning.
    ///
    /// After a thousand spans of a call site that were entered once, the call site counts as
    /// synchronous. If a span needs a lane after all, the lane begins at that moment.
    #[default]
    Auto,
    /// One slice for each time that the span is entered, on the track of the thread.
    Threads,
    /// One slice for the span's lifetime, on its own lane.
    Lifetime,
    /// One slice for the span's lifetime and one for each time that it is entered, connected by a
    /// flow.
    Both,
}

/// Names of the instants that events become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventNames {
    /// The name that the program gives the event (`name: "…"`), or else its place: the last part of
    /// its module and the line, such as `server:42`.
    ///
    /// All events of a call site have the same name. So Perfetto's UI can count them, colour them
    /// alike and find them. The text of the message is the argument `message`.
    #[default]
    CallSite,
    /// The text of the message. Use it if a program has few messages, and you want to read them
    /// without a click.
    Message,
}

type Closure<T> = Box<dyn Fn(&'static Metadata<'static>) -> T + Send + Sync>;

/// Options for recording spans and events; see [`options`](crate::options).
///
/// Each closure is called once per call site, when the call site is registered.
#[derive(Default)]
pub struct Options {
    category: Option<Closure<Cow<'static, str>>>,
    slices: Option<Closure<Slices>>,
    enabled: Option<Closure<bool>>,
    debug_tag: Option<Closure<bool>>,
    pub(crate) event_names: EventNames,
    pub(crate) max_level: Option<LevelFilter>,
}

impl Options {
    /// Sets the category of a span or event. The default is its target.
    ///
    /// ```
    /// // One category for each crate.
    /// let options = esatto_tracing::options()
    ///     .category(|metadata| metadata.target().split("::").next().unwrap_or_default());
    /// # drop(options.subscriber());
    /// ```
    #[must_use]
    pub fn category<T: Into<Cow<'static, str>>>(
        mut self,
        category: impl Fn(&'static Metadata<'static>) -> T + Send + Sync + 'static,
    ) -> Self {
        self.category = Some(Box::new(move |metadata| category(metadata).into()));
        self
    }

    /// Sets which call sites have the tag `debug` on their category. The default is those of the
    /// levels `DEBUG` and `TRACE`.
    ///
    /// Sessions leave out categories with this tag, unless they ask for the tag or name the
    /// category in full.
    ///
    /// ```
    /// use tracing::Level;
    ///
    /// // Always record the level DEBUG of this program, but not that of its dependencies.
    /// let options = esatto_tracing::options()
    ///     .debug_tag(|metadata| *metadata.level() > Level::INFO && !metadata.target().starts_with("my_program"));
    /// # drop(options.subscriber());
    /// ```
    #[must_use]
    pub fn debug_tag(mut self, debug_tag: impl Fn(&'static Metadata<'static>) -> bool + Send + Sync + 'static) -> Self {
        self.debug_tag = Some(Box::new(debug_tag));
        self
    }

    /// Sets the names of events. The default is [`EventNames::CallSite`].
    #[must_use]
    pub const fn event_names(mut self, names: EventNames) -> Self {
        self.event_names = names;
        self
    }

    /// Sets the slices that the spans of a call site become. The default is [`Slices::Auto`].
    ///
    /// ```
    /// use esatto_tracing::Slices;
    ///
    /// let options = esatto_tracing::options()
    ///     .slices(|metadata| if metadata.target().starts_with("hyper") { Slices::Both } else { Slices::Auto });
    /// # drop(options.subscriber());
    /// ```
    #[must_use]
    pub fn slices(mut self, slices: impl Fn(&'static Metadata<'static>) -> Slices + Send + Sync + 'static) -> Self {
        self.slices = Some(Box::new(slices));
        self
    }

    /// Leaves out call sites for which `enabled` returns false.
    #[must_use]
    pub fn enabled(mut self, enabled: impl Fn(&'static Metadata<'static>) -> bool + Send + Sync + 'static) -> Self {
        self.enabled = Some(Box::new(enabled));
        self
    }

    /// Leaves out more verbose spans and events.
    #[must_use]
    pub const fn max_level(mut self, level: LevelFilter) -> Self {
        self.max_level = Some(level);
        self
    }

    pub(crate) fn category_of(&self, metadata: &'static Metadata<'static>) -> Cow<'static, str> {
        self.category.as_ref().map_or_else(|| metadata.target().into(), |category| category(metadata))
    }

    /// Returns whether the category of a call site has the tag `debug`.
    pub(crate) fn is_debug(&self, metadata: &'static Metadata<'static>) -> bool {
        let by_level = || *metadata.level() > Level::INFO;
        self.debug_tag.as_ref().map_or_else(by_level, |debug_tag| debug_tag(metadata))
    }

    pub(crate) fn slices_of(&self, metadata: &'static Metadata<'static>) -> Slices {
        self.slices.as_ref().map_or(Slices::Auto, |slices| slices(metadata))
    }

    pub(crate) fn is_enabled(&self, metadata: &'static Metadata<'static>) -> bool {
        self.max_level.is_none_or(|max| *metadata.level() <= max)
            && self.enabled.as_ref().is_none_or(|enabled| enabled(metadata))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("max_level", &self.max_level).finish_non_exhaustive()
    }
}
