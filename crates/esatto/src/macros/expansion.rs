//! The expansion of the macros for trace points: category, name and arguments, one after the other,
//! and then the [trace point](crate::__record) itself.

/// A named event with or without a track.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($kind:ident, $category:literal $($rest:tt)*) => {
        $crate::__literal_category!($category)
    };
    ($kind:ident, category: $category:expr, track: $track:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = $category;
        $crate::__named!(($kind category), (), [$crate::Arg::Track($track)], $($rest)*)
    }};
    ($kind:ident, category: $category:expr, $($rest:tt)*) => {{
        let category: &'static $crate::Category = $category;
        $crate::__named!(($kind category), (), [], $($rest)*)
    }};
    ($kind:ident, $category:expr, track: $track:expr, $($rest:tt)*) => {
        $crate::__named!($kind, $category, [$crate::Arg::Track($track)], $($rest)*)
    };
    ($kind:ident, $($category:expr $(,)?)?) => {
        $crate::__missing_name!()
    };
    ($kind:ident, $category:expr, $($rest:tt)*) => {
        $crate::__named!($kind, $category, [], $($rest)*)
    };
}

/// Refuses an event without a name.
#[doc(hidden)]
#[macro_export]
macro_rules! __missing_name {
    () => {
        ::core::compile_error!(
            "expected a category and a name: `NET, \"name\"`, or `NET, dynamic: text` for a name made at run time"
        )
    };
}

/// Refuses a text in the place of a counter.
#[doc(hidden)]
#[macro_export]
macro_rules! __literal_counter {
    ($counter:literal) => {
        ::core::compile_error!(::core::concat!(
            "expected a counter, found the literal `",
            ::core::stringify!($counter),
            "`: declare one with `static OPEN: esatto::CounterTrack = esatto::CounterTrack::new(\"open\");` ",
            "and pass `&OPEN`"
        ))
    };
}

/// Refuses a text in the place of a category.
#[doc(hidden)]
#[macro_export]
macro_rules! __literal_category {
    ($category:literal) => {
        ::core::compile_error!(::core::concat!(
            "expected a category, found the literal `",
            ::core::stringify!($category),
            "`: declare one with `esatto::categories! { static NET = \"net\"; }` and pass its name, `NET`"
        ))
    };
}

/// The name of an event: `(kind, category, [arguments so far], name [, arguments])`. The kind is a
/// [`Kind`](crate::Kind), or, in parentheses, a kind with the variable that holds the category.
/// These kinds are always in parentheses: `guard` is a begin of a slice with a
/// [guard](crate::SliceGuard), and `begin` and `end` are those of `begin!` and `end!` on the track
/// of the thread.
#[doc(hidden)]
#[macro_export]
macro_rules! __named {
    ($kind:tt, $category:expr, [$($arg:expr)?], dynamic: $name:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind,
            $category,
            None,
            [],
            [$($arg,)? $crate::Arg::Name($crate::__private::text(&$name))],
            $($($rest)*)?
        )
    };
    ($kind:tt, $category:expr, [$($arg:expr)?], $name:literal $(, $($rest:tt)*)?) => {{
        const _: () = $crate::__private::check_name($name);
        $crate::__arguments!($kind, $category, Some($name), [], [$($arg)?], $($($rest)*)?)
    }};
    ($kind:tt, $category:expr, [$($arg:expr)?], $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected the name of the event as a literal, or `dynamic: text` for a name made at run time, found `",
            ::core::stringify!($($rest)*),
            "`"
        ))
    };
}

/// The arguments of an event, one after the other: `(kind, category, name, [names so far],
/// [arguments so far], arguments)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __arguments {
    ($kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], $(,)?) => {
        $crate::__record!($kind, $category, $name, [$($key),*], [$($arg),*])
    };
    ($kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], |$event:ident| $body:expr $(,)?) => {
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
    ($kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], flow: $flow:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind, $category, $name, [$($key),*], [$($arg,)* $crate::Arg::Flow($crate::__private::flow_id($flow))], $($($rest)*)?
        )
    };
    ($kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], end_flow: $flow:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind, $category, $name, [$($key),*], [$($arg,)* $crate::Arg::EndFlow($crate::__private::flow_id($flow))], $($($rest)*)?
        )
    };
    ($kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], at: $at:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $kind, $category, $name, [$($key),*], [$($arg,)* $crate::Arg::At(&$crate::Timestamp::from($at))], $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        counter: $counter:literal => $($rest:tt)*
    ) => {
        $crate::__literal_counter!($counter)
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        counter: $counter:expr => $value:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key),*],
            [
                $($arg,)*
                $crate::Arg::Extra(&($crate::CounterTrack::track($counter), $crate::CounterValue::from($value)))
            ],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        $($next:ident).+ = ? $value:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $crate::__key!($($next).+)],
            [$($arg,)* $crate::__private::arg(&$crate::debug(&$value))],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        $($next:ident).+ = % $value:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $crate::__key!($($next).+)],
            [$($arg,)* $crate::__private::arg(&$crate::display(&$value))],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        $($next:ident).+ = $value:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $crate::__key!($($next).+)],
            [$($arg,)* $crate::__private::arg(&$value)],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        $next:literal = ? $value:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $next],
            [$($arg,)* $crate::__private::arg(&$crate::debug(&$value))],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        $next:literal = % $value:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $next],
            [$($arg,)* $crate::__private::arg(&$crate::display(&$value))],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        $next:literal = $value:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $next],
            [$($arg,)* $crate::__private::arg(&$value)],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        $($next:ident).+ $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $crate::__key!($($next).+)],
            [$($arg,)* $crate::__private::arg(&$($next).+)],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        ? $($next:ident).+ $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $crate::__key!($($next).+)],
            [$($arg,)* $crate::__private::arg(&$crate::debug(&$($next).+))],
            $($($rest)*)?
        )
    };
    (
        $kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*],
        % $($next:ident).+ $(, $($rest:tt)*)?
    ) => {
        $crate::__arguments!(
            $kind,
            $category,
            $name,
            [$($key,)* $crate::__key!($($next).+)],
            [$($arg,)* $crate::__private::arg(&$crate::display(&$($next).+))],
            $($($rest)*)?
        )
    };
    ($kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], track: $($rest:tt)*) => {
        ::core::compile_error!("`track: &track` must come right after the category")
    };
    ($kind:tt, $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*], $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected `key = value`, `name`, `?name` (by Debug), `%name` (by Display), `flow: flow`, `end_flow: flow`, ",
            "`at: time`, `counter: &COUNTER => value`, or as the last argument `|event| …`, found `",
            ::core::stringify!($($rest)*),
            "`"
        ))
    };
}

/// The key of an argument that is named by an identifier or a path of fields, without `r#`.
#[doc(hidden)]
#[macro_export]
macro_rules! __key {
    ($name:ident) => {
        $crate::__private::plain_name(::core::stringify!($name))
    };
    ($($name:ident).+) => {{
        const NAMES: &[&str] = &[$($crate::__private::plain_name(::core::stringify!($name))),+];
        const PATH: [u8; $crate::__private::path_len(NAMES)] = $crate::__private::path(NAMES);
        $crate::__private::utf8(&PATH)
    }};
}

/// The trace point itself. Its value is a bit mask of the instances that record the event, for the
/// kind `(guard)` an [`OpenSlice`](crate::__private::OpenSlice), and for `(begin)` and `(end)`
/// nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    ((guard $category:ident), $none:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site =
            $crate::Site::new($crate::Category::of_argument(), $crate::Kind::SliceBegin, $name, &NAMES);
        if $crate::Category::is_enabled($category) {
            $crate::__private::begin_enabled_as($category, &SITE, &mut [$crate::Arg::Category($category), $($arg),*])
        } else {
            $crate::__private::OpenSlice::NONE
        }
    }};
    ((guard), $category:expr, $name:expr, [], []) => {{
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::SliceBegin, $name, &[]);
        if $crate::Category::may_be_enabled(&$category) {
            $crate::__private::begin_plain(&SITE)
        } else {
            $crate::__private::OpenSlice::NONE
        }
    }};
    ((guard), $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::SliceBegin, $name, &NAMES);
        if $crate::Category::is_enabled(&$category) {
            $crate::__private::begin_enabled(&SITE, &mut [$($arg),*])
        } else {
            $crate::__private::OpenSlice::NONE
        }
    }};
    ((begin $category:ident), $none:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site =
            $crate::Site::new($crate::Category::of_argument(), $crate::Kind::SliceBegin, $name, &NAMES);
        if $crate::Category::is_enabled($category) {
            $crate::__private::open_enabled_as($category, &SITE, &mut [$crate::Arg::Category($category), $($arg),*]);
        }
    }};
    ((begin), $category:expr, $name:expr, [], []) => {{
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::SliceBegin, $name, &[]);
        if $crate::Category::may_be_enabled(&$category) {
            $crate::__private::open_plain(&SITE);
        }
    }};
    ((begin), $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::SliceBegin, $name, &NAMES);
        if $crate::Category::is_enabled(&$category) {
            $crate::__private::open_enabled(&SITE, &mut [$($arg),*]);
        }
    }};
    ((end $category:ident), $none:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site =
            $crate::Site::new($crate::Category::of_argument(), $crate::Kind::SliceEnd, $name, &NAMES);
        if $crate::Category::is_enabled($category) {
            $crate::__private::close_enabled_as($category, &SITE, &mut [$crate::Arg::Category($category), $($arg),*]);
        }
    }};
    ((end), $category:expr, $name:expr, [], []) => {{
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::SliceEnd, $name, &[]);
        if $crate::Category::may_be_enabled(&$category) {
            $crate::__private::close_plain(&SITE);
        }
    }};
    ((end), $category:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site = $crate::Site::new(&$category, $crate::Kind::SliceEnd, $name, &NAMES);
        if $crate::Category::is_enabled(&$category) {
            $crate::__private::close_enabled(&SITE, &mut [$($arg),*]);
        }
    }};
    (($kind:ident $category:ident), $none:expr, $name:expr, [$($key:expr),*], [$($arg:expr),*]) => {{
        static NAMES: [$crate::Name; $crate::__private::count(&[$($key),*])] = [$($crate::Name::new($key)),*];
        static SITE: $crate::Site =
            $crate::Site::new($crate::Category::of_argument(), $crate::Kind::$kind, $name, &NAMES);
        if $crate::Category::is_enabled($category) {
            $crate::__private::record_enabled_as($category, &SITE, &mut [$crate::Arg::Category($category), $($arg),*])
        } else {
            0
        }
    }};
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
