//! The function that records an event.

use esatto::{Arg, Event, Kind, raw};

use super::extras::Extras;
use super::field_extra;
use super::site_cache::{self, SiteKey};
use crate::abi::Extra;
use crate::abi::numbers::te_type;
use crate::category::{self, CategoryImpl};
use crate::ffi::{Array, Ref, Str};
use crate::panic_guard::guard;

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeHlEmitImpl(
    cat: Ref<'static, CategoryImpl>,
    event_type: i32,
    name: Str<'_>,
    extra_data: Array<'_, Ref<'_, Extra>>,
) {
    guard(|| {
        let (Some(category), Some(kind)) = (cat.get(), kind(event_type)) else { return };
        let instances = category.reached();
        if instances == 0 {
            return;
        }
        let name = if kind == Kind::SliceEnd { Str::NULL } else { name };
        let _ = emit_plain(category, instances, kind, name, extra_data)
            || emit(category, instances, kind, name, extra_data, false)
            || emit(category, instances, kind, name, extra_data, true);
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

/// Records an event without extras. Returns false if it has some, or if there are too many trace
/// points.
#[inline(always)]
fn emit_plain(
    category: &'static CategoryImpl,
    instances: u32,
    kind: Kind,
    name: Str<'_>,
    extras: Array<'_, Ref<'_, Extra>>,
) -> bool {
    if !extras.is_empty() {
        return false;
    }
    let key = SiteKey { category: Some(category), kind, name, args: &[] };
    let Some(site) = site_cache::find(&key) else { return false };
    raw::record_in(instances, site, &mut []);
    true
}

/// Records an event with its extras, by a trace point that has its names. With `in_full` the trace
/// point has no names, and the event has them in full. Returns false if there is no such trace
/// point.
#[inline(never)]
fn emit(
    category: &'static CategoryImpl,
    instances: u32,
    kind: Kind,
    name: Str<'_>,
    extras: Array<'_, Ref<'_, Extra>>,
    in_full: bool,
) -> bool {
    let mut event = Extras::new(kind);
    event.read(extras, in_full);
    if event.is_not_open {
        raw::ignore_end(category.category(), "pass a track to `ESATTO_SLICE` in coroutines (`esatto::on(…)`)");
        return true;
    }
    let dynamic = event.dynamic_category;
    // A signal handler may have interrupted a search for such a category, which holds a lock. Then
    // the thread is closed.
    if dynamic.is_some() && !raw::is_open() {
        return true;
    }
    let (name_of_site, own_name) = if in_full || event.is_name_inline { (Str::NULL, name) } else { (name, Str::NULL) };
    let category_of_site = dynamic.is_none().then_some(category);
    let key = SiteKey { category: category_of_site, kind, name: name_of_site, args: event.names.as_slice() };
    let Some(site) = site_cache::find(&key) else { return false };

    let text = own_name.bytes().map(String::from_utf8_lossy);
    if let Some(text) = &text {
        event.args.push(Arg::Name(text));
    }
    let timestamp = event.timestamp;
    if let Some(timestamp) = &timestamp {
        event.args.push(Arg::At(timestamp));
    }
    let track = event.tracks.track();
    if let Some(track) = &track {
        event.args.push(Arg::Track(track));
    }
    let category_name =
        dynamic.and_then(|dynamic| dynamic.get()).filter(|_| !matches!(kind, Kind::SliceEnd | Kind::Counter));
    let fields = event.fields.as_slice();
    let mut write = |event: &mut Event<'_>| {
        if let Some(category) = category_name {
            field_extra::write_category(event, category.name.bytes().unwrap_or_default());
        }
        for field in fields {
            field.write(event);
        }
    };
    if category_name.is_some() || !fields.is_empty() {
        event.args.push(Arg::With(&mut write));
    }

    let args = event.args.as_mut_slice();
    let recording = || {
        let instances = category.category().instances();
        match dynamic {
            None => instances,
            Some(dynamic) => instances & category::dynamic_instances(dynamic),
        }
    };
    match (&track, dynamic) {
        (Some(_), _) => {
            let describe = |sequence: &mut raw::Sequence| event.tracks.describe(sequence);
            raw::record_on(&describe, &recording, site, args)
        }
        (None, None) => raw::record_in(instances, site, args),
        (None, Some(_)) => raw::record_for(&recording, site, args),
    };
    if event.flush {
        raw::flush();
    }
    true
}
