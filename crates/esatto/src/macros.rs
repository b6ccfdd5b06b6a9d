//! Trace points.

/// Records a slice that lasts until the returned guard is dropped.
///
/// `slice!(CATEGORY, [track: &track,] "name" [, key = value]… [, |event| …])`. In place of the literal name, `dynamic: text` takes
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
    ($category:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = &$category;
        let mut guard = $crate::__private::SliceGuard::off();
        if category.is_enabled() {
            guard = $crate::__event!(category, SliceBegin, begin_scoped, $($rest)*);
        }
        guard
    }};
}

/// Begins a slice that [`end!`](crate::end) ends, on the same track but possibly elsewhere in the program.
///
/// `begin!(CATEGORY, [track: &track,] "name" [, key = value]… [, |event| …])`.
#[macro_export]
macro_rules! begin {
    ($category:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = &$category;
        if category.is_enabled() {
            $crate::__event!(category, SliceBegin, record, $($rest)*);
        }
    }};
}

/// Ends the innermost slice of the track: `end!(CATEGORY [, track: &track] [, key = value]… [, |event| …])`.
#[macro_export]
macro_rules! end {
    ($category:expr, track: $track:expr $(, $($rest:tt)*)?) => {
        $crate::__end!($category, Some($track) $(, $($rest)*)?)
    };
    ($category:expr $(, $($rest:tt)*)?) => {
        $crate::__end!($category, None $(, $($rest)*)?)
    };
}

/// Records a moment: `instant!(CATEGORY, [track: &track,] "name" [, key = value]… [, |event| …])`.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// esatto::instant!(APP, "cache miss", key = 17_u32);
/// ```
#[macro_export]
macro_rules! instant {
    ($category:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = &$category;
        if category.is_enabled() {
            $crate::__event!(category, Instant, record, $($rest)*);
        }
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
        let category: &'static $crate::Category = &$category;
        if category.is_enabled() {
            let counter: &$crate::CounterTrack = $counter;
            $crate::__private::record(
                &$crate::__private::Head {
                    category,
                    kind: $crate::__private::Kind::Counter,
                    name: $crate::__private::EventName::Unnamed,
                    track: Some(counter.track()),
                    counter: Some($crate::CounterValue::from($value)),
                },
                &mut |_| {},
            );
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($category:ident, $kind:ident, $record:ident, track: $track:expr, $($rest:tt)*) => {
        $crate::__named_event!($category, $kind, $record, Some($track), $($rest)*)
    };
    ($category:ident, $kind:ident, $record:ident, $($rest:tt)*) => {
        $crate::__named_event!($category, $kind, $record, None, $($rest)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __named_event {
    ($category:ident, $kind:ident, $record:ident, $track:expr, dynamic: $name:expr $(, $($rest:tt)*)?) => {
        $crate::__private::$record(
            &$crate::__private::Head {
                category: $category,
                kind: $crate::__private::Kind::$kind,
                name: $crate::__private::EventName::Dynamic(::core::convert::AsRef::<str>::as_ref(&$name)),
                track: $track,
                counter: None,
            },
            &mut |_event: &mut $crate::Event<'_>| {
                $crate::__annotations!(_event $(, $($rest)*)?);
            },
        )
    };
    ($category:ident, $kind:ident, $record:ident, $track:expr, $name:literal $(, $($rest:tt)*)?) => {{
        static NAME: $crate::__private::Name = $crate::__private::Name::new($name);
        $crate::__private::$record(
            &$crate::__private::Head {
                category: $category,
                kind: $crate::__private::Kind::$kind,
                name: $crate::__private::EventName::Static(&NAME),
                track: $track,
                counter: None,
            },
            &mut |_event: &mut $crate::Event<'_>| {
                $crate::__annotations!(_event $(, $($rest)*)?);
            },
        )
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __annotations {
    ($event:ident $(,)?) => {};
    ($event:ident, |$e:ident| $body:expr $(,)?) => {
        {
            let $e: &mut $crate::Event<'_> = $event;
            $body;
        }
    };
    ($event:ident, $key:ident = $value:expr $(, $($rest:tt)*)?) => {
        {
            static KEY: $crate::__private::Name = $crate::__private::Name::new(::core::stringify!($key));
            $event.annotate_static(&KEY, $value);
        }
        $crate::__annotations!($event $(, $($rest)*)?);
    };
    ($event:ident, $key:literal = $value:expr $(, $($rest:tt)*)?) => {
        {
            static KEY: $crate::__private::Name = $crate::__private::Name::new($key);
            $event.annotate_static(&KEY, $value);
        }
        $crate::__annotations!($event $(, $($rest)*)?);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __end {
    ($category:expr, $track:expr $(, $($rest:tt)*)?) => {{
        let category: &'static $crate::Category = &$category;
        if category.is_enabled() {
            $crate::__private::record(
                &$crate::__private::Head {
                    category,
                    kind: $crate::__private::Kind::SliceEnd,
                    name: $crate::__private::EventName::Unnamed,
                    track: $track,
                    counter: None,
                },
                &mut |_event: &mut $crate::Event<'_>| {
                    $crate::__annotations!(_event $(, $($rest)*)?);
                },
            );
        }
    }};
}
