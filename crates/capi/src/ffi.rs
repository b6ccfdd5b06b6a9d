//! Pointers that programs pass to the library, as types that name the promises of the contract.
//!
//! A program that calls an exported function promises what `docs/spec/c-abi.md` asks of each
//! argument. For this reason the exported functions are `unsafe`. The types here hold one such
//! promise each, so that only this file dereferences plain pointers of programs. All of them have
//! the layout of the pointer and may be null.
//!
//! Two things make a value: the call of an exported function, and a struct of the program that such
//! an argument points to. The lifetime of an argument ends with the call, unless the contract says
//! that the library never frees the object.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ptr;

unsafe extern "C" {
    fn strcmp(a: *const c_char, b: *const c_char) -> c_int;
}

/// Null, or a pointer to a `T` that is valid for `'a`.
#[repr(transparent)]
pub(crate) struct Ref<'a, T>(*const T, PhantomData<&'a T>);

impl<T> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<'_, T> {}

impl<'a, T> Ref<'a, T> {
    #[inline(always)]
    pub(crate) fn get(self) -> Option<&'a T> {
        // SAFETY: the promise of the type.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    pub(crate) const fn as_ptr(self) -> *const T {
        self.0
    }
}

/// Null, or a pointer to a `T` that is valid for `'a`. Nothing else uses the `T` while the library
/// does.
#[repr(transparent)]
pub(crate) struct Mut<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<'a, T> Mut<'a, T> {
    #[inline(always)]
    pub(crate) fn get(self) -> Option<&'a mut T> {
        // SAFETY: the promise of the type.
        unsafe { self.0.as_mut() }
    }

    #[inline(always)]
    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.0
    }
}

/// Null, or a pointer to a variable of the program, which need not be initialised.
#[repr(transparent)]
pub(crate) struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T> Out<'_, T> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Writes the variable, if there is one.
    #[inline(always)]
    pub(crate) fn write(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the promise of the type.
            unsafe { self.0.write(value) };
        }
    }
}

/// Null, or an object that the library has made for the program with [`new`](Self::new). The
/// program gives it back once.
#[repr(transparent)]
pub(crate) struct Owned<T>(*mut T);

impl<T> Owned<T> {
    pub(crate) const NULL: Self = Self(ptr::null_mut());

    pub(crate) fn new(object: T) -> Self {
        Self(Box::into_raw(Box::new(object)))
    }

    /// Takes the object back from the program.
    pub(crate) fn take(self) -> Option<Box<T>> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: from `Box::into_raw` in `new`. The program gives it back once: the promise of the
        // type.
        Some(unsafe { Box::from_raw(self.0) })
    }

    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.0
    }
}

/// Null, or a string that ends with NUL and does not change for `'a`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Str<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Str<'a> {
    pub(crate) const NULL: Self = Self(ptr::null(), PhantomData);

    #[inline(always)]
    pub(crate) const fn is_null(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub(crate) fn addr(self) -> usize {
        self.0.addr()
    }

    pub(crate) fn c_str(self) -> Option<&'a CStr> {
        if self.is_null() {
            return None;
        }
        // SAFETY: the promise of the type.
        Some(unsafe { CStr::from_ptr(self.0) })
    }

    /// Returns the bytes before NUL; `None` for null.
    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        self.c_str().map(CStr::to_bytes)
    }

    /// Returns the text, with a replacement character for each part that is not UTF-8. Null is
    /// empty.
    pub(crate) fn to_string_lossy(self) -> String {
        String::from_utf8_lossy(self.bytes().unwrap_or_default()).into_owned()
    }

    /// Compares with a string; null equals none.
    #[inline(always)]
    pub(crate) fn equals(self, text: &CStr) -> bool {
        // SAFETY: both end with NUL: the promise of the type, and of `CStr`.
        !self.is_null() && unsafe { strcmp(self.0, text.as_ptr()) } == 0
    }
}

/// Returns bytes as a `str` if they are UTF-8.
#[inline]
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    if bytes.is_ascii() {
        // SAFETY: all ASCII is UTF-8. The check for ASCII takes fewer instructions, and most texts
        // pass it.
        return Some(unsafe { core::str::from_utf8_unchecked(bytes) });
    }
    core::str::from_utf8(bytes).ok()
}

/// Memory of a program: `len` values of `T` from `begin` on, which do not change for `'a`. Empty if
/// `begin` is null.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Slice<'a, T> {
    begin: *const T,
    len: usize,
    lifetime: PhantomData<&'a [T]>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(core::mem::offset_of!(Slice<'_, u8>, len) == 8 && size_of::<Slice<'_, u8>>() == 16);
};

impl<'a, T> Slice<'a, T> {
    /// Joins two arguments of a function.
    ///
    /// # Safety
    ///
    /// `begin` is null, or valid for reads of `len` values that do not change for `'a`.
    pub(crate) const unsafe fn new(begin: *const T, len: usize) -> Self {
        Self { begin, len, lifetime: PhantomData }
    }

    pub(crate) const fn get(self) -> &'a [T] {
        if self.begin.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the promise of the type.
        unsafe { core::slice::from_raw_parts(self.begin, self.len) }
    }
}

/// Null, or an array of pointers that ends with null and does not change for `'a`.
#[repr(transparent)]
pub(crate) struct Array<'a, P>(*const P, PhantomData<&'a [P]>);

impl<P> Clone for Array<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Array<'_, P> {}

impl<'a, P: Pointer> Array<'a, P> {
    /// Returns the pointers before null.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl Iterator<Item = P> + use<'a, P> {
        let mut at = self.0;
        core::iter::from_fn(move || {
            if at.is_null() {
                return None;
            }
            // SAFETY: the promise of the type: null has not come yet.
            let element = unsafe { *at };
            // SAFETY: as above. After null the function is not called again, because of `fuse`.
            at = unsafe { at.add(1) };
            (!element.is_null()).then_some(element)
        })
        .fuse()
    }

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        // SAFETY: the promise of the type: an array has at least one pointer.
        self.0.is_null() || unsafe { *self.0 }.is_null()
    }
}

/// Element of an [`Array`].
pub(crate) trait Pointer: Copy {
    fn is_null(self) -> bool;
}

impl<T> Pointer for Ref<'_, T> {
    #[inline(always)]
    fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl Pointer for Str<'_> {
    #[inline(always)]
    fn is_null(self) -> bool {
        Str::is_null(self)
    }
}

/// A pointer that the library only passes to callbacks of the program.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Argument<T = c_void>(pub(crate) *mut T);

impl<T> Clone for Argument<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Argument<T> {}

// SAFETY: the library only passes it on, and by the contract a callback may be called on any
// thread.
unsafe impl<T> Send for Argument<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Argument<T> {}
