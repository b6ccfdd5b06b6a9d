//! Slices of futures, whose work is done in pieces.
//!
//! A future begins, is polled by several threads, and ends. A trace should show how long it took,
//! and when it kept the threads busy. So there are two kinds of slices. One slice spans the
//! lifetime, on its own lane, because lifetimes overlap. One slice per poll lies on the track of
//! the polling thread, and events recorded inside the poll appear below it. A flow leads from the
//! lifetime through the polls.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::Begun;
use super::lanes::{Lane, Lanes};
use super::slice::{SliceGuard, begin_enabled, end_begun};
use super::trace_point::record_only;
use crate::category::Category;
use crate::event::track::Track;
use crate::event::{Arg, Event, Flow, Kind, Site};
use crate::slice_stack::OpenSlice;

/// The slices that an [`AsyncSlice`] consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AsyncSlices {
    /// One for the lifetime and one per poll, connected by a flow.
    #[default]
    Both,
    /// One for the lifetime.
    Lifetime,
    /// One per poll.
    Polls,
}

impl AsyncSlices {
    const fn has_lifetime(self) -> bool {
        matches!(self, Self::Both | Self::Lifetime)
    }

    const fn has_polls(self) -> bool {
        matches!(self, Self::Both | Self::Polls)
    }
}

/// The slices of a future, from its creation until it is dropped; made by
/// [`async_slice!`](crate::async_slice!).
///
/// If a session starts in between, it gets the rest: the slice of the lifetime then begins with the
/// next poll, without arguments.
#[derive(Debug)]
#[must_use = "the slice ends when this is dropped: call `.run(future).await`"]
pub struct AsyncSlice {
    site: &'static AsyncSite,
    slices: AsyncSlices,
    /// `None` while no session has recorded it.
    recorded: Option<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    /// `None` if there is no slice for the lifetime.
    lane: Option<Lane>,
    flow: Flow,
    /// The sessions in which the slice of the lifetime was begun. Only they get its end.
    begun: Begun,
}

/// The place in a program that makes async slices.
#[derive(Debug)]
pub struct AsyncSite {
    /// The site of begins without arguments.
    begin: Site,
    lanes: Lanes,
}

impl AsyncSite {
    /// Makes a site, which [`async_slice!`](crate::async_slice!) keeps in a static.
    #[must_use]
    pub const fn new(category: &'static Category, name: &'static str) -> Self {
        Self { begin: Site::new(category, Kind::SliceBegin, Some(name), &[]), lanes: Lanes::new(name) }
    }

    const fn category(&'static self) -> &'static Category {
        self.begin.category()
    }
}

impl AsyncSlice {
    /// Makes slices that have not begun.
    #[inline]
    pub const fn new(site: &'static AsyncSite, slices: AsyncSlices) -> Self {
        Self { site, slices, recorded: None }
    }

    /// Begins the slice of the lifetime by calling `record` with its track and flow. `record`
    /// returns the instances in which it recorded the begin. Without a slice of the lifetime,
    /// nothing is recorded before the first poll.
    #[doc(hidden)]
    pub fn begin(&mut self, record: impl FnOnce(&Track, Flow) -> u32) {
        let recorded = self.recorded.insert(Recorded::new(self.site, self.slices));
        if let Some(lane) = &recorded.lane {
            recorded.begun = Begun::by(|| record(lane.track(), recorded.flow));
        }
    }

    /// Returns the track of the lifetime, while a session records it.
    #[must_use]
    pub fn track(&self) -> Option<&Track> {
        self.recorded.as_ref()?.lane.as_ref().map(Lane::track)
    }

    /// Begins the slice of a poll, which lasts until the returned guard is dropped.
    ///
    /// Use it for futures written by hand. [`drive`](Self::drive) and [`run`](Self::run) call it
    /// for other futures.
    #[inline]
    pub fn poll(&mut self) -> SliceGuard {
        let category = self.site.category();
        SliceGuard::new(category, if category.is_enabled() { self.begin_poll() } else { OpenSlice::NONE })
    }

    #[inline(never)]
    fn begin_poll(&mut self) -> OpenSlice {
        let Self { site, slices, recorded } = self;
        let recorded = recorded.get_or_insert_with(|| Recorded::new(site, *slices));
        recorded.begin_lifetime(site);
        if !slices.has_polls() {
            return OpenSlice::NONE;
        }
        begin_enabled(&site.begin, &mut [Arg::Flow(recorded.flow.id())])
    }

    /// Runs a pinned future inside the slices. They end when the slice is dropped, or with
    /// [`end_with`](Self::end_with).
    ///
    /// ```
    /// # esatto::categories! { static NET = "net"; }
    /// # async fn connect(_: &str) -> Result<(), String> { Ok(()) }
    /// async fn open(host: &str) -> Result<(), String> {
    ///     let mut slice = esatto::async_slice!(NET, "open", host = host);
    ///     let result = slice.drive(core::pin::pin!(connect(host))).await;
    ///     slice.end_with(|event| event.annotate("ok", result.is_ok()));
    ///     result
    /// }
    /// ```
    pub const fn drive<'a, F: Future>(&'a mut self, future: Pin<&'a mut F>) -> Driven<'a, F> {
        Driven { slice: self, future }
    }

    /// Runs a future inside the slices, which end with it.
    ///
    /// The result is about twice as large as `future`, because the compiler reserves space for the
    /// future both where it was and where it is polled. [`drive`](Self::drive) costs no more than a
    /// pointer.
    pub async fn run<F: Future>(mut self, future: F) -> F::Output {
        let future = core::pin::pin!(future);
        self.drive(future).await
    }

    /// Ends the slice of the lifetime, with arguments and flows that were not known at its begin.
    pub fn end_with(mut self, mut body: impl FnMut(&mut Event<'_>)) {
        if let Some(recorded) = self.recorded.take() {
            recorded.end_lifetime(self.site, Some(&mut body));
        }
    }
}

impl Drop for AsyncSlice {
    #[inline]
    fn drop(&mut self) {
        if let Some(recorded) = self.recorded.take() {
            recorded.end_lifetime(self.site, None);
        }
    }
}

impl Recorded {
    fn new(site: &'static AsyncSite, slices: AsyncSlices) -> Self {
        let lane = slices.has_lifetime().then(|| site.lanes.take());
        Self { lane, flow: Flow::unique(), begun: Begun::NONE }
    }

    /// Begins the slice of the lifetime in the sessions that do not have it yet.
    #[inline]
    fn begin_lifetime(&mut self, site: &'static AsyncSite) {
        let Some(lane) = &self.lane else { return };
        let missing = self.begun.missing(site.category());
        if missing != 0 {
            let args = &mut [Arg::Track(lane.track()), Arg::Flow(self.flow.id())];
            self.begun.add(|| record_only(missing, &site.begin, args));
        }
    }

    #[inline(never)]
    fn end_lifetime(self, site: &'static AsyncSite, body: Option<&mut dyn FnMut(&mut Event<'_>)>) {
        let Some(lane) = &self.lane else { return };
        end_begun(site.category(), self.begun, lane.track(), body);
        // From here on the lane may have another user.
    }
}

/// A future inside the slices of an [`AsyncSlice`].
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Driven<'a, F> {
    slice: &'a mut AsyncSlice,
    future: Pin<&'a mut F>,
}

impl<F: Future> Future for Driven<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _poll = this.slice.poll();
        this.future.as_mut().poll(context)
    }
}

/// Calls a closure as `FnOnce`, so that it may return values that it has captured.
#[inline(always)]
pub fn call<R>(function: impl FnOnce() -> R) -> R {
    function()
}

/// Makes an [`AsyncSlice`](crate::AsyncSlice): `async_slice!(CATEGORY, [slices: AsyncSlices::…,]
/// "name" [, key = value]… [, |event| …])`.
///
/// Arguments are evaluated immediately, and only while the category is recorded. They belong to the
/// slice of the lifetime, if there is one.
///
/// ```
/// esatto::categories! {
///     static NET = "net", "Requests and connections";
/// }
///
/// async fn get(url: &str) -> usize {
///     url.len()
/// }
///
/// async fn download(url: &str) -> usize {
///     esatto::async_slice!(NET, "download", url).run(get(url)).await
/// }
/// ```
///
/// The page [Async programs](crate::guide::async_programs) has a whole program.
#[doc(alias = "future", alias = "await", alias = "span", alias = "instrument")]
#[macro_export]
macro_rules! async_slice {
    ($category:literal $($rest:tt)*) => {
        $crate::__literal_category!($category)
    };
    ($($category:expr $(,)?)?) => {
        $crate::__missing_name!()
    };
    ($category:expr, slices: $slices:expr, $name:literal $($rest:tt)*) => {
        $crate::__async_slice!($slices, $category, $name $($rest)*)
    };
    ($category:expr, $name:literal $($rest:tt)*) => {
        $crate::__async_slice!($crate::AsyncSlices::Both, $category, $name $($rest)*)
    };
    ($category:expr, $(slices: $slices:expr,)? $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected the name of the slices as a literal, found `",
            ::core::stringify!($($rest)*),
            "`"
        ))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __async_slice {
    ($slices:expr, $category:expr, $name:expr $(, $($rest:tt)*)?) => {{
        const _: () = $crate::__private::check_name($name);
        static SITE: $crate::__private::AsyncSite = $crate::__private::AsyncSite::new(&$category, $name);
        let mut slice = $crate::AsyncSlice::new(&SITE, $slices);
        if $crate::Category::is_enabled(&$category) {
            slice.begin(|track, flow| $crate::__arguments!(
                SliceBegin,
                $category,
                Some($name),
                [],
                [$crate::Arg::Track(track), $crate::Arg::Flow(flow.id())],
                $($($rest)*)?
            ));
        }
        slice
    }};
}
