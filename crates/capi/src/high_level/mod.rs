//! Track events that the library encodes (`docs/spec/c-abi.md` §11).
//!
//! What comes with an event is read once, into the arguments of the SDK's trace points ([`scan`]); the trace point itself is one of the
//! SDK's, made when an event of its kind is first seen ([`sites`]). An event of a kind that was seen allocates nothing, unless a dozen annotations are not enough
//! for it or fields have to be written one by one.

mod fields;
mod list;
mod scan;
mod sites;
mod tracks;

use core::ffi::c_char;
use core::ptr;

use esatto::{Arg, Event, Kind, raw};

use crate::abi::{Extra, te_type};
use crate::category::{self, CategoryImpl};
use crate::guard::guard;
use crate::text;
use scan::Scan;
use sites::Wanted;

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeHlEmitImpl(
    cat: *const CategoryImpl,
    event_type: i32,
    name: *const c_char,
    extra_data: *const *const Extra,
) {
    guard(|| {
        // SAFETY: the contract: from create; categories live for ever.
        let category: Option<&'static CategoryImpl> = unsafe { cat.as_ref() };
        let (Some(category), Some(kind)) = (category, kind(event_type)) else { return };
        let instances = category.category().instances();
        if instances == 0 {
            return;
        }
        let name = if kind == Kind::SliceEnd { ptr::null() } else { name };
        // SAFETY: the contract: a string that ends with NUL, and an array that ends with null, of valid extras.
        unsafe {
            let _ = emit_plain(category, instances, kind, name, extra_data)
                || emit(category, instances, kind, name, extra_data, false)
                || emit(category, instances, kind, name, extra_data, true);
        }
    })
}

fn kind(event_type: i32) -> Option<Kind> {
    Some(match event_type {
        te_type::SLICE_BEGIN => Kind::SliceBegin,
        te_type::SLICE_END => Kind::SliceEnd,
        te_type::INSTANT => Kind::Instant,
        te_type::COUNTER => Kind::Counter,
        te_type::STATE => Kind::State,
        _ => return None,
    })
}

/// Records an event with which nothing comes. `false`: there is something, or there are too many trace points.
///
/// # Safety
///
/// The contract of [`PerfettoTeHlEmitImpl`].
#[inline(always)]
unsafe fn emit_plain(
    category: &'static CategoryImpl,
    instances: u32,
    kind: Kind,
    name: *const c_char,
    extras: *const *const Extra,
) -> bool {
    // SAFETY: the caller's promise.
    if !extras.is_null() && !unsafe { *extras }.is_null() {
        return false;
    }
    let wanted = Wanted { category: Some(category), kind, name, args: &[] };
    // SAFETY: as above.
    let Some(site) = (unsafe { sites::find(&wanted) }) else { return false };
    raw::record_in(instances, site, &mut []);
    true
}

/// Records an event with what comes with it, by a trace point that has its names, or `in_full` by one without. `false`: there is no such trace point.
///
/// # Safety
///
/// The contract of [`PerfettoTeHlEmitImpl`].
#[inline(never)]
unsafe fn emit(
    category: &'static CategoryImpl,
    instances: u32,
    kind: Kind,
    name: *const c_char,
    extras: *const *const Extra,
    in_full: bool,
) -> bool {
    let mut event = Scan::new(kind);
    // SAFETY: the caller's promise.
    unsafe { event.read(extras, in_full) };
    let dynamic = event.dynamic_category;
    // A signal handler may have interrupted somebody who looks for such a category and holds a lock: then the thread is closed.
    if dynamic.is_some() && !raw::is_open() {
        return true;
    }
    let (name_of_site, own_name) =
        if in_full || event.is_name_inline { (ptr::null(), name) } else { (name, ptr::null()) };
    let category_of_site = dynamic.is_none().then_some(category);
    let wanted = Wanted { category: category_of_site, kind, name: name_of_site, args: event.names.as_slice() };
    // SAFETY: as above.
    let Some(site) = (unsafe { sites::find(&wanted) }) else { return false };

    // SAFETY: as above.
    let text = unsafe { text::bytes(own_name) }.map(String::from_utf8_lossy);
    if let Some(text) = &text {
        event.args.push(Arg::Name(text));
    }
    let timestamp = event.timestamp;
    if let Some(timestamp) = &timestamp {
        event.args.push(Arg::At(timestamp));
    }
    // SAFETY: as above.
    let track = unsafe { event.tracks.track() };
    if let Some(track) = &track {
        event.args.push(Arg::Track(track));
    }
    let category_name = dynamic.filter(|_| !matches!(kind, Kind::SliceEnd | Kind::Counter));
    let rest = event.rest.as_slice();
    let mut write = |event: &mut Event<'_>| {
        if let Some(category) = category_name {
            // SAFETY: as above.
            fields::category(event, unsafe { text::bytes(category.name) }.unwrap_or_default());
        }
        for rest in rest {
            // SAFETY: as above.
            unsafe { fields::write(event, rest) };
        }
    };
    if category_name.is_some() || !rest.is_empty() {
        event.args.push(Arg::With(&mut write));
    }

    let args = event.args.as_mut_slice();
    let recording = || {
        let instances = category.category().instances();
        match dynamic {
            None => instances,
            // SAFETY: as above.
            Some(dynamic) => instances & unsafe { category::dynamic_instances(dynamic) },
        }
    };
    match (&track, dynamic) {
        (Some(track), _) => {
            // SAFETY: as above.
            let describe = |sequence: &mut raw::Sequence| unsafe { event.tracks.describe(sequence) };
            raw::record_on(track.uuid(), &describe, &recording, site, args)
        }
        (None, None) => raw::record_in(instances, site, args),
        (None, Some(_)) => raw::record_for(&recording, site, args),
    };
    if event.flush {
        raw::flush();
    }
    true
}
