//! Options of the recording.

use core::fmt;
use std::borrow::Cow;

use tracing_core::{LevelFilter, Metadata};

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

type Closure<T> = Box<dyn Fn(&'static Metadata<'static>) -> T + Send + Sync>;

/// Options for recording spans and events; see [`options`](crate::options).
///
/// Each closure is called once per call site, when the call site is registered.
#[derive(Default)]
pub struct Options {
    category: Option<Closure<Cow<'static, str>>>,
    slices: Option<Closure<Slices>>,
    enabled: Option<Closure<bool>>,
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
