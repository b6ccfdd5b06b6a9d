//! The macros for trace points.
//!
//! A macro makes a static [`Site`](crate::Site) of everything that is known at compile time. It
//! then calls one function with the site and an array of the other arguments. So a disabled trace
//! point is a load and a branch, and an enabled one adds as few instructions as possible, out of
//! line.

mod expansion;

/// Records a slice that lasts until the returned guard is dropped.
///
/// `slice!(CATEGORY, [track: &track,] "name" [, argument]… [, |event| …])`. Bind the guard to a
/// variable (`let _slice = …`), or the slice ends at once: `let _ = …` drops the guard. A guard
/// borrows its track, which must therefore be a `static` or a variable.
///
/// ```no_run
/// esatto::categories! {
///     static APP = "app", "What my program does";
/// }
///
/// fn main() -> Result<(), esatto::Error> {
///     let _trace = esatto::trace_to_file("app.pftrace")?;
///     for path in ["Cargo.toml", "README.md"] {
///         let _slice = esatto::slice!(APP, "read", path, attempt = 1);
///         let _ = std::fs::read(path);
///     } // the slice ends here
///     Ok(())
/// }
/// ```
///
/// # Futures
///
/// Do not keep a guard across an `.await`: other work would appear inside of the slice. The guard
/// is not `Send`, so most runtimes refuse such a future ([`SliceGuard`](crate::SliceGuard) has an
/// example). Put [`#[esatto::trace]`](crate#async-programs) on an `async fn`, and use
/// [`async_slice!`](crate::async_slice!) for other futures:
///
/// ```
/// esatto::categories! {
///     static NET = "net", "Requests";
/// }
/// # async fn get(url: &str) -> usize { url.len() }
///
/// async fn download(url: &str) -> usize {
///     esatto::async_slice!(NET, "download", url).run(get(url)).await
/// }
/// ```
///
/// With `track:` the guard is a [`TrackSliceGuard`](crate::TrackSliceGuard), which is `Send`.
///
/// # Categories
///
/// A category is a static. Pass a category that is known only at run time as `category:`; see
/// [`Category::dynamic`](crate::Category::dynamic).
///
/// # Names
///
/// The name is a literal. It is not a format string, so names with braces such as `"job {id}"` are
/// refused. Add the value as an argument instead: then slices with the same name can be summed up.
/// `dynamic: text` takes a name made at run time, which each event contains in full:
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// # let id = 5;
/// let _slice = esatto::slice!(APP, "job", id);
/// let _step = esatto::slice!(APP, dynamic: format!("step {id}"));
/// ```
///
/// # Arguments
///
/// Arguments are evaluated only while the category is recorded, and then once per event.
///
/// | argument | |
/// | --- | --- |
/// | `key = value`, `"any key" = value` | a debug annotation with any [`Value`](crate::Value) |
/// | `key = ?value`, `key = %value` | the text of the value's `Debug` or `Display`, as [`debug`](crate::debug) and [`display`](crate::display) |
/// | `name`, `?name`, `%name` | the same with a variable or field and its name: `user.id` is `user.id = user.id` |
/// | `flow: flow`, `end_flow: flow` | puts the event on a [`Flow`](crate::Flow), or ends the flow |
/// | `at: time` | the time of the event, if it is not now: a [`Timestamp`](crate::Timestamp), or an `Instant` or `SystemTime` |
/// | `counter: &COUNTER => value` | a value of a [`CounterTrack`](crate::CounterTrack), sampled at the same time; up to eight |
/// | <code>&#124;event&#124; …</code>, as the last one | anything else that an [`Event`](crate::Event) can hold; runs once per session |
///
/// A raw identifier loses its `r#`: the key of `r#type = 1` is `type`. The compiler's
/// `recursion_limit` allows about 110 arguments. For more, group them in a type with
/// [`TraceArgs`](crate::TraceArgs), or add them in the closure.
///
/// Numbers, texts, flows and tracks take the fast path ([what it
/// costs](crate#what-a-trace-point-costs)). Other arguments take two to three times as long.
#[doc(
    alias = "span",
    alias = "scope",
    alias = "scoped",
    alias = "zone",
    alias = "measure",
    alias = "profile",
    alias = "timer",
    alias = "duration",
    alias = "TRACE_EVENT"
)]
#[macro_export]
macro_rules! slice {
    () => {
        $crate::__missing_name!()
    };
    ($category:literal $($rest:tt)*) => {
        $crate::__literal_category!($category)
    };
    (category: $category:expr, track: $track:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = $category;
        let track: &$crate::Track = $track;
        let instances = $crate::__named!((SliceBegin category), (), [$crate::Arg::Track(track)], $($rest)*);
        $crate::TrackSliceGuard::new(category, track, instances)
    }};
    (category: $category:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = $category;
        let slice = $crate::__named!((guard category), (), [], $($rest)*);
        $crate::SliceGuard::new(category, slice)
    }};
    ($category:expr, track: $track:expr, $($rest:tt)*) => {{
        let track: &$crate::Track = $track;
        let instances = $crate::__named!(SliceBegin, $category, [$crate::Arg::Track(track)], $($rest)*);
        $crate::TrackSliceGuard::new(&$category, track, instances)
    }};
    ($category:expr $(,)?) => {
        $crate::__missing_name!()
    };
    ($category:expr, $($rest:tt)*) => {{
        let slice = $crate::__named!((guard), $category, [], $($rest)*);
        $crate::SliceGuard::new(&$category, slice)
    }};
}

/// Begins a slice that [`end!`](crate::end!) ends, on the same track but possibly elsewhere in the
/// program.
///
/// `begin!(CATEGORY, [track: &track,] "name" [, argument]… [, |event| …])`; see
/// [`slice!`](crate::slice!).
///
/// Inside of a guard of `slice!` or `#[esatto::trace]`, a slice on the track of the thread ends
/// with the guard's slice at the latest. If `return` or `?` skips its `end!`, a line on stderr says
/// so once, and [`losses`](crate::losses) counts it.
#[doc(alias = "enter", alias = "TRACE_EVENT_BEGIN")]
#[macro_export]
macro_rules! begin {
    ($category:literal $($rest:tt)*) => {
        $crate::__literal_category!($category)
    };
    (category: $category:expr, track: $($rest:tt)*) => {{
        $crate::__event!(SliceBegin, category: $category, track: $($rest)*);
    }};
    (category: $category:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = $category;
        $crate::__named!((begin category), (), [], $($rest)*);
    }};
    ($category:expr, track: $($rest:tt)*) => {{
        $crate::__event!(SliceBegin, $category, track: $($rest)*);
    }};
    ($($category:expr $(,)?)?) => {
        $crate::__missing_name!()
    };
    ($category:expr, $($rest:tt)*) => {{
        $crate::__named!((begin), $category, [], $($rest)*);
    }};
}

/// Ends the innermost slice of the track: `end!(CATEGORY [, track: &track] [, argument]… [, |event|
/// …])`. The arguments are those of [`slice!`](crate::slice!) and are added to the slice.
///
/// On the track of the thread, it never ends the slice of a guard, nor one around it. An `end!`
/// that would do so is ignored. A line on stderr says so once, and [`losses`](crate::losses) counts
/// it.
#[doc(alias = "exit", alias = "close", alias = "TRACE_EVENT_END")]
#[macro_export]
macro_rules! end {
    () => {
        ::core::compile_error!("expected a category: `end!(NET)`")
    };
    ($category:literal $($rest:tt)*) => {
        $crate::__literal_category!($category)
    };
    (category: $category:expr, track: $track:expr $(, $($rest:tt)*)?) => {{
        let category: &'static $crate::Category = $category;
        $crate::__arguments!((SliceEnd category), (), None, [], [$crate::Arg::Track($track)], $($($rest)*)?);
    }};
    (category: $category:expr $(, $($rest:tt)*)?) => {{
        let category: &'static $crate::Category = $category;
        $crate::__arguments!((end category), (), None, [], [], $($($rest)*)?);
    }};
    ($category:expr, track: $track:expr $(, $($rest:tt)*)?) => {{
        $crate::__arguments!(SliceEnd, $category, None, [], [$crate::Arg::Track($track)], $($($rest)*)?);
    }};
    ($category:expr $(, $($rest:tt)*)?) => {{
        $crate::__arguments!((end), $category, None, [], [], $($($rest)*)?);
    }};
}

/// Records a moment: `instant!(CATEGORY, [track: &track,] "name" [, argument]… [, |event| …])`; see
/// [`slice!`](crate::slice!).
///
/// ```no_run
/// esatto::categories! {
///     static APP = "app", "What my program does";
/// }
///
/// fn main() -> Result<(), esatto::Error> {
///     let _trace = esatto::trace_to_file("app.pftrace")?;
///     esatto::instant!(APP, "cache miss", key = 17_u32);
///     Ok(())
/// }
/// ```
#[doc(
    alias = "event",
    alias = "mark",
    alias = "marker",
    alias = "message",
    alias = "frame",
    alias = "FrameMark",
    alias = "TRACE_EVENT_INSTANT"
)]
#[macro_export]
macro_rules! instant {
    ($($rest:tt)*) => {{
        $crate::__event!(Instant, $($rest)*);
    }};
}

/// Records a value of a counter: `counter!(CATEGORY, &COUNTER, value [, argument]…)`.
///
/// ```no_run
/// use esatto::{CounterTrack, Timestamp};
///
/// esatto::categories! {
///     static APP = "app", "What my program does";
/// }
///
/// static QUEUE: CounterTrack = CounterTrack::new("queue length");
///
/// fn main() -> Result<(), esatto::Error> {
///     let _trace = esatto::trace_to_file("app.pftrace")?;
///     esatto::counter!(APP, &QUEUE, 12);
///     esatto::counter!(APP, &QUEUE, 0.5, at: Timestamp::now());
///     Ok(())
/// }
/// ```
///
/// Each value holds until the next one, so a counter is a gauge. For a histogram, record the single
/// values as arguments, and group them with SQL.
#[doc(
    alias = "gauge",
    alias = "histogram",
    alias = "increment",
    alias = "decrement",
    alias = "metric",
    alias = "plot",
    alias = "value",
    alias = "TRACE_COUNTER"
)]
#[macro_export]
macro_rules! counter {
    () => {
        ::core::compile_error!("expected a category, a counter and a value: `counter!(NET, &OPEN, 1)`")
    };
    ($category:literal $($rest:tt)*) => {
        $crate::__literal_category!($category)
    };
    (category: $category:expr, $counter:literal $($rest:tt)*) => {
        $crate::__literal_counter!($counter)
    };
    ($category:expr, $counter:literal $($rest:tt)*) => {
        $crate::__literal_counter!($counter)
    };
    (category: $category:expr $(, $counter:expr)? $(,)?) => {
        ::core::compile_error!("expected a category, a counter and a value: `counter!(NET, &OPEN, 1)`")
    };
    ($category:expr $(, $counter:expr)? $(,)?) => {
        ::core::compile_error!("expected a category, a counter and a value: `counter!(NET, &OPEN, 1)`")
    };
    (category: $category:expr, $counter:expr, $value:expr $(, $($rest:tt)*)?) => {{
        let category: &'static $crate::Category = $category;
        $crate::__arguments!(
            (Counter category),
            (),
            None,
            [],
            [
                $crate::Arg::Track($crate::CounterTrack::track($counter)),
                $crate::Arg::Counter($crate::CounterValue::from($value))
            ],
            $($($rest)*)?
        );
    }};
    ($category:expr, $counter:expr, $value:expr $(, $($rest:tt)*)?) => {{
        $crate::__arguments!(
            Counter,
            $category,
            None,
            [],
            [
                $crate::Arg::Track($crate::CounterTrack::track($counter)),
                $crate::Arg::Counter($crate::CounterValue::from($value))
            ],
            $($($rest)*)?
        );
    }};
}

/// Sets the state of a track: `state!(CATEGORY, &STATE, "name" [, argument]… [, |event| …])`.
/// Without a name, the track then has no state.
///
/// ```no_run
/// use esatto::StateTrack;
///
/// esatto::categories! {
///     static NET = "net", "Requests and connections";
/// }
///
/// static LINK: StateTrack = StateTrack::new("link");
///
/// fn main() -> Result<(), esatto::Error> {
///     let _trace = esatto::trace_to_file("app.pftrace")?;
///     esatto::state!(NET, &LINK, "connecting", attempt = 1);
///     esatto::state!(NET, &LINK, dynamic: format!("up at {} Mbit/s", 100));
///     esatto::state!(NET, &LINK);
///     Ok(())
/// }
/// ```
#[doc(alias = "status")]
#[macro_export]
macro_rules! state {
    () => {
        ::core::compile_error!("expected a category and a track of states: `state!(NET, &LINK, \"up\")`")
    };
    ($category:literal $($rest:tt)*) => {
        $crate::__literal_category!($category)
    };
    (category: $category:expr, $state:literal $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected a track of states, found the literal `",
            ::core::stringify!($state),
            "`: declare one with `static LINK: esatto::StateTrack = esatto::StateTrack::new(\"link\");` and pass ",
            "`&LINK`"
        ))
    };
    ($category:expr, $state:literal $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected a track of states, found the literal `",
            ::core::stringify!($state),
            "`: declare one with `static LINK: esatto::StateTrack = esatto::StateTrack::new(\"link\");` and pass ",
            "`&LINK`"
        ))
    };
    (category: $category:expr $(,)?) => {
        ::core::compile_error!("expected a category and a track of states: `state!(NET, &LINK, \"up\")`")
    };
    ($category:expr $(,)?) => {
        ::core::compile_error!("expected a category and a track of states: `state!(NET, &LINK, \"up\")`")
    };
    (category: $category:expr, $state:expr $(,)?) => {{
        let category: &'static $crate::Category = $category;
        $crate::__arguments!((State category), (), None, [], [$crate::Arg::Track($crate::StateTrack::track($state))],);
    }};
    (category: $category:expr, $state:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = $category;
        $crate::__named!((State category), (), [$crate::Arg::Track($crate::StateTrack::track($state))], $($rest)*);
    }};
    ($category:expr, $state:expr $(,)?) => {{
        $crate::__arguments!(State, $category, None, [], [$crate::Arg::Track($crate::StateTrack::track($state))],);
    }};
    ($category:expr, $state:expr, $($rest:tt)*) => {{
        $crate::__named!(State, $category, [$crate::Arg::Track($crate::StateTrack::track($state))], $($rest)*);
    }};
}

/// Records an event in the style of the JSON trace format: `legacy!(CATEGORY, "name" [, argument]…,
/// |event| event.legacy(phase)…)`.
///
/// Use it for programs that have such events. New programs use slices, [tracks](crate::Track) and
/// [flows](crate::Flow).
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// esatto::legacy!(APP, "load", |event| event.legacy('b').unscoped_id(7));
/// esatto::legacy!(APP, "load", |event| event.legacy('e').unscoped_id(7));
/// ```
#[macro_export]
macro_rules! legacy {
    ($($rest:tt)*) => {{
        $crate::__event!(Legacy, $($rest)*);
    }};
}
