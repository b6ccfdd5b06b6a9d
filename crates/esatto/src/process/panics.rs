//! Records panics.

use core::cell::Cell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use crate::category::Category;
use crate::event::{Arg, Event, Kind, Location, LogPriority, Site};
use crate::name::Name;
use crate::record::{flush, record};

static PANICS: Category = Category::new("panic").with_description("Panics of the program");

thread_local! {
    /// This thread is recording a panic. A panic that happens meanwhile is not recorded.
    static RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Records each panic as an instant and as a log message of the highest priority, with its place in
/// the source code, in the category `panic`.
///
/// The previous hook runs afterwards. A panic that ends the process still reaches the trace: what
/// its thread has recorded is handed over before the previous hook runs. A panic inside a trace
/// point (in a value's `Debug`) is not recorded. Further calls do nothing.
///
/// ```
/// esatto::trace_panics();
/// ```
#[doc(alias = "panic", alias = "hook")]
pub fn trace_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let next = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            record_panic(info);
            next(info);
        }));
    });
}

fn record_panic(info: &PanicHookInfo<'_>) {
    static NAMES: [Name; 1] = [Name::new("message")];
    static SITE: Site = Site::new(&PANICS, Kind::Instant, Some("panic"), &NAMES);
    // A second panic inside a hook would abort the process.
    let is_first = RECORDING.try_with(|recording| !recording.replace(true)).unwrap_or(false);
    if !is_first {
        return;
    }
    if PANICS.is_enabled() {
        let message = message(info);
        let location = info.location().map(Location::from);
        let mut log = |event: &mut Event<'_>| event.log(LogPriority::Fatal, message, location);
        record(&SITE, &mut [Arg::Str(message), Arg::With(&mut log)]);
        flush();
    }
    RECORDING.set(false);
}

/// Returns the text of the panic; other payloads have none.
fn message<'a>(info: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(a value that is no text)")
}
