//! Trace points.
//!
//! A macro makes a static [`Site`](crate::Site) of what is known beforehand, and calls one function with it and an array of the rest. So a trace point is a
//! load, a branch, and out of line as few instructions as can be.

/// Records a slice that lasts until the returned guard is dropped.
///
/// `slice!(CATEGORY, [track: &track,] "name" [, key = value | flow: flow | end_flow: flow]… [, |event| …])`. In place of the literal name, `dynamic: text` takes
/// one made at run time. Arguments are evaluated only while the category is recorded. Bind the guard to a
/// variable (`let _slice = …`), or the slice ends at once.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// let path = "/etc/hosts";
/// {
///     let _slice = esatto::slice!(APP, "read", path = path, attempt = 1);
/// } // the slice ends here
/// ```
#[macro_export]
macro_rules! slice {
    ($category:expr, track: $track:expr, $($rest:tt)*) => {{
        let track: &$crate::Track = $track;
        let instances = $crate::__named!(SliceBegin, $category, [$crate::Arg::Track(track)], $($rest)*);
        $crate::__private::SliceGuard::new(&$category, ::core::option::Option::Some(track), instances)
    }};
    ($category:expr, $($rest:tt)*) => {{
        let instances = $crate::__named!(SliceBegin, $category, [], $($rest)*);
        $crate::__private::SliceGuard::new(&$category, ::core::option::Option::None, instances)
    }};
}

/// Begins a slice that [`end!`](crate::end) ends, on the same track but possibly elsewhere in the program.
///
/// `begin!(CATEGORY, [track: &track,] "name" [, key = value | flow: flow | end_flow: flow]… [, |event| …])`.
#[macro_export]
macro_rules! begin {
    ($category:expr, track: $track:expr, $($rest:tt)*) => {{
        $crate::__named!(SliceBegin, $category, [$crate::Arg::Track($track)], $($rest)*);
    }};
    ($category:expr, $($rest:tt)*) => {{
        $crate::__named!(SliceBegin, $category, [], $($rest)*);
    }};
}

/// Ends the innermost slice of the track:
/// `end!(CATEGORY [, track: &track] [, key = value | flow: flow | end_flow: flow]… [, |event| …])`.
#[macro_export]
macro_rules! end {
    ($category:expr, track: $track:expr $(, $($rest:tt)*)?) => {{
        $crate::__arguments!(SliceEnd, $category, None, [], [$crate::Arg::Track($track)], $($($rest)*)?);
    }};
    ($category:expr $(, $($rest:tt)*)?) => {{
        $crate::__arguments!(SliceEnd, $category, None, [], [], $($($rest)*)?);
    }};
}

/// Records a moment: `instant!(CATEGORY, [track: &track,] "name" [, key = value | flow: flow | end_flow: flow]… [, |event| …])`.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// esatto::instant!(APP, "cache miss", key = 17_u32);
/// ```
#[macro_export]
macro_rules! instant {
    ($category:expr, track: $track:expr, $($rest:tt)*) => {{
        $crate::__named!(Instant, $category, [$crate::Arg::Track($track)], $($rest)*);
    }};
    ($category:expr, $($rest:tt)*) => {{
        $crate::__named!(Instant, $category, [], $($rest)*);
    }};
}

/// Records a value of a counter: `counter!(CATEGORY, &COUNTER, value)`.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// use esatto::CounterTrack;
///
/// static QUEUE: CounterTrack = CounterTrack::new("queue length");
/// esatto::counter!(APP, &QUEUE, 12);
/// ```
#[macro_export]
macro_rules! counter {
    ($category:expr, $counter:expr, $value:expr $(,)?) => {{
        $crate::__arguments!(
            Counter,
            $category,
            None,
            [],
            [
                $crate::Arg::Track($crate::CounterTrack::track($counter)),
                $crate::Arg::Counter($crate::CounterValue::from($value))
            ],
        );
    }};
}

/// The name of an event: `(kind, category, [arguments so far], name [, arguments])`.
#[doc(hidden)]
#[macro_export]
macro_rules! __named {
    ($kind:ident, $category:expr, [$($arg:expr)?], dynamic: $name:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind,
            $category,
            None,
            [],
            [$($arg,)? $crate::Arg::Name(::core::convert::AsRef::<str>::as_ref(&$name))],
            $($($rest)*)?
        )
    };
    ($kind:ident, $category:expr, [$($arg:expr)?], $name:literal $(, $($rest:tt)*)?) => {
        $crate::__arguments!($kind, $category, Some($name), [], [$($arg)?], $($($rest)*)?)
    };
}

/// The arguments of an event, one after the other: `(kind, category, name, [names so far], [arguments so far], arguments)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __arguments {
    ($kind:ident, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], $(,)?) => {
        $crate::__record!($kind, $category, $name, [$($key),*], [$($arg),*])
    };
    ($kind:ident, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], |$event:ident| $body:expr $(,)?) => {
        $crate::__record!(
            $kind,
            $category,
            $name,
            [$($key),*],
            [
                $($arg,)*
                $crate::Arg::With(&mut |$event: &mut $crate::Event<'_>| {
                    $body;
                })
            ]
        )
    };
    ($kind:ident, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], flow: $flow:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind, $category, $name, [$($key),*], [$($arg,)* $crate::Arg::Flow($crate::Flow::id($flow))], $($($rest)*)?
        )
    };
    ($kind:ident, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], end_flow: $flow:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind, $category, $name, [$($key),*], [$($arg,)* $crate::Arg::EndFlow($crate::Flow::id($flow))], $($($rest)*)?
        )
    };
    ($kind:ident, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], $next:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* ::core::stringify!($next)],
            [$($arg,)* $crate::__private::arg(&$value)],
            $($($rest)*)?
        )
    };
    ($kind:ident, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], $next:literal = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $next],
            [$($arg,)* $crate::__private::arg(&$value)],
            $($($rest)*)?
        )
    };
}

/// The trace point itself. Its value says which instances record the event.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    ($kind:ident, $category:expr, $name:expr, [], []) => {{
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::$kind, $name, &[]);
        if $crate::Category::may_be_enabled(&$category) { $crate::__private::record_plain(&SITE) } else { 0 }
    }};
    ($kind:ident, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::$kind, $name, &NAMES);
        if $crate::Category::is_enabled(&$category) {
            $crate::__private::record_enabled(&SITE, &mut [$($arg),*])
        } else {
            0
        }
    }};
}
