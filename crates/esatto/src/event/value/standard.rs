//! Values of the standard library's types.

use core::fmt::{self, Display};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64,
    NonZeroUsize,
};
use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    AtomicUsize, Ordering,
};
use core::time::Duration;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::event::{AnnotationWriter, Arg, Value};

macro_rules! scalar {
    ($method:ident, $variant:ident, $wide:ty: $($t:ty),*) => {
        $(impl Value for $t {
            #[inline]
            fn write(&self, out: AnnotationWriter<'_>) {
                out.$method(*self as $wide);
            }

            #[inline(always)]
            fn plain(&self) -> Option<Arg<'_>> {
                Some(Arg::$variant(*self as $wide))
            }
        })*
    };
}

scalar!(uint, U64, u64: u8, u16, u32, u64, usize);
scalar!(int, I64, i64: i8, i16, i32, i64, isize);
scalar!(double, F64, f64: f32, f64);
scalar!(bool, Bool, bool: bool);

macro_rules! wrapped {
    ($read:ident: $($t:ty),*) => {
        $(impl Value for $t {
            fn write(&self, out: AnnotationWriter<'_>) {
                wrapped!($read self).write(out);
            }
        })*
    };
    (get $x:ident) => { $x.get() };
    (load $x:ident) => { $x.load(Ordering::Relaxed) };
}

wrapped!(get: NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroUsize);
wrapped!(get: NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize);
wrapped!(load: AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize);
wrapped!(load: AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicBool);

impl Value for u128 {
    fn write(&self, out: AnnotationWriter<'_>) {
        match u64::try_from(*self) {
            Ok(small) => out.uint(small),
            Err(_) => out.formatted(format_args!("{self}")),
        }
    }
}

impl Value for i128 {
    fn write(&self, out: AnnotationWriter<'_>) {
        match i64::try_from(*self) {
            Ok(small) => out.int(small),
            Err(_) => out.formatted(format_args!("{self}")),
        }
    }
}

impl Value for Duration {
    fn write(&self, out: AnnotationWriter<'_>) {
        self.as_nanos().write(out);
    }
}

impl Value for () {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.pointer(0);
    }
}

impl Value for str {
    #[inline]
    fn write(&self, out: AnnotationWriter<'_>) {
        out.text(self);
    }

    #[inline(always)]
    fn plain(&self) -> Option<Arg<'_>> {
        Some(Arg::Str(self))
    }
}

impl Value for String {
    #[inline]
    fn write(&self, out: AnnotationWriter<'_>) {
        out.text(self);
    }

    #[inline(always)]
    fn plain(&self) -> Option<Arg<'_>> {
        Some(Arg::Str(self))
    }
}

impl Value for char {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.text(self.encode_utf8(&mut [0; 4]));
    }
}

impl Value for OsStr {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.formatted(format_args!("{}", Path::new(self).display()));
    }
}

impl Value for OsString {
    fn write(&self, out: AnnotationWriter<'_>) {
        self.as_os_str().write(out);
    }
}

impl Value for Path {
    fn write(&self, out: AnnotationWriter<'_>) {
        self.as_os_str().write(out);
    }
}

impl Value for PathBuf {
    fn write(&self, out: AnnotationWriter<'_>) {
        self.as_os_str().write(out);
    }
}

impl Value for fmt::Arguments<'_> {
    fn write(&self, out: AnnotationWriter<'_>) {
        match self.as_str() {
            Some(text) => out.text(text),
            None => out.formatted(*self),
        }
    }
}

macro_rules! displayed {
    ($($t:ty),*) => {
        $(impl Value for $t {
            fn write(&self, out: AnnotationWriter<'_>) {
                out.formatted(format_args!("{self}"));
            }
        })*
    };
}

displayed!(IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6);

macro_rules! pointers {
    ($($t:ty),*) => {
        $(impl<T> Value for $t {
            #[inline]
            fn write(&self, out: AnnotationWriter<'_>) {
                out.pointer(self.addr() as u64);
            }

            #[inline(always)]
            fn plain(&self) -> Option<Arg<'_>> {
                Some(Arg::Pointer(self.addr() as u64))
            }
        })*
    };
}

pointers!(*const T, *mut T);

impl<T> Value for NonNull<T> {
    #[inline]
    fn write(&self, out: AnnotationWriter<'_>) {
        out.pointer(self.addr().get() as u64);
    }
}

impl<T: Value> Value for Option<T> {
    #[inline]
    fn write(&self, out: AnnotationWriter<'_>) {
        if let Some(value) = self {
            value.write(out);
        }
    }
}

impl<T: Value, E: Value> Value for Result<T, E> {
    fn write(&self, out: AnnotationWriter<'_>) {
        match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        }
    }
}

macro_rules! pointing {
    ($($t:ty),*) => {
        $(impl<T: Value + ?Sized> Value for $t {
            #[inline]
            fn write(&self, out: AnnotationWriter<'_>) {
                (**self).write(out);
            }

            #[inline(always)]
            fn plain(&self) -> Option<Arg<'_>> {
                (**self).plain()
            }
        })*
    };
}

pointing!(&T, &mut T, Box<T>, Arc<T>, Rc<T>);

impl<T: Value + ToOwned + ?Sized> Value for Cow<'_, T> {
    #[inline]
    fn write(&self, out: AnnotationWriter<'_>) {
        (**self).write(out);
    }

    #[inline(always)]
    fn plain(&self) -> Option<Arg<'_>> {
        (**self).plain()
    }
}

fn write_list<'v, T: Value + 'v>(values: impl IntoIterator<Item = &'v T>, out: AnnotationWriter<'_>) {
    let mut list = out.list();
    for value in values {
        list.push(value);
    }
}

impl<T: Value> Value for [T] {
    fn write(&self, out: AnnotationWriter<'_>) {
        write_list(self, out);
    }
}

macro_rules! sequences {
    ($(<$t:ident $(, $p:ident)* $(; const $n:ident)?> $of:ty;)*) => {
        $(impl<$t: Value $(, $p)* $(, const $n: usize)?> Value for $of {
            fn write(&self, out: AnnotationWriter<'_>) {
                write_list(self, out);
            }
        })*
    };
}

sequences! {
    <T; const N> [T; N];
    <T> Vec<T>;
    <T> VecDeque<T>;
    <T> BTreeSet<T>;
    <T, S> HashSet<T, S>;
}

fn write_dict<'v, K: Display + 'v, V: Value + 'v>(
    entries: impl IntoIterator<Item = (&'v K, &'v V)>,
    out: AnnotationWriter<'_>,
) {
    let mut dict = out.dict();
    for (name, value) in entries {
        value.write(dict.formatted_entry(format_args!("{name}")));
    }
}

impl<K: Display, V: Value> Value for BTreeMap<K, V> {
    fn write(&self, out: AnnotationWriter<'_>) {
        write_dict(self, out);
    }
}

impl<K: Display, V: Value, S> Value for HashMap<K, V, S> {
    fn write(&self, out: AnnotationWriter<'_>) {
        write_dict(self, out);
    }
}

macro_rules! tuples {
    ($(($($t:ident)+))*) => {
        $(impl<$($t: Value),+> Value for ($($t,)+) {
            fn write(&self, out: AnnotationWriter<'_>) {
                #[allow(non_snake_case, reason = "one name for the type and its value")]
                let ($($t,)+) = self;
                let mut list = out.list();
                $(list.push($t);)+
            }
        })*
    };
}

tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) }
