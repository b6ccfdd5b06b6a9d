//! Call sites with Perfetto's official Rust SDK, in modules `site_…` of one form: the runner looks
//! for the sizes of their functions.

use std::hint::black_box;

use perfetto_sdk::track_event_categories;

track_event_categories! {
    pub mod categories {
        ( "bench", "", [] ),
    }
}

macro_rules! sites {
    ($($module:ident)*) => {
        $(
            mod $module {
                use perfetto_sdk::track_event::{EventContext, TrackEventDebugArg};
                use perfetto_sdk::{scoped_track_event, track_event_begin, track_event_end, track_event_instant};

                use super::categories as perfetto_te_ns;

                #[inline(never)]
                pub(super) fn pair(_: u64, _: &str) {
                    track_event_begin!("bench", "pair");
                    track_event_end!("bench");
                }

                #[inline(never)]
                pub(super) fn pair_with_number(number: u64, _: &str) {
                    track_event_begin!("bench", "pair", |ctx: &mut EventContext| {
                        ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(number));
                    });
                    track_event_end!("bench");
                }

                #[inline(never)]
                pub(super) fn pair_with_arguments(number: u64, text: &str) {
                    track_event_begin!("bench", "pair", |ctx: &mut EventContext| {
                        ctx.add_debug_arg("number", TrackEventDebugArg::Uint64(number));
                        ctx.add_debug_arg("text", TrackEventDebugArg::String(text));
                    });
                    track_event_end!("bench");
                }

                #[inline(never)]
                pub(super) fn scope(_: u64, _: &str) {
                    scoped_track_event!("bench", "scope");
                }

                #[inline(never)]
                pub(super) fn instant(_: u64, _: &str) {
                    track_event_instant!("bench", "instant");
                }
            }
        )*

        fn all() -> Vec<fn(u64, &str)> {
            let mut all: Vec<fn(u64, &str)> = vec![site_none::nothing];
            $(
                all.extend([$module::pair as fn(u64, &str), $module::pair_with_number, $module::pair_with_arguments]);
                all.extend([$module::scope as fn(u64, &str), $module::instant]);
            )*
            all
        }
    };
}

sites!(site_a site_b site_c site_d);

/// Size of a function that does nothing.
mod site_none {
    #[inline(never)]
    pub(super) fn nothing(_: u64, _: &str) {}
}

fn main() {
    for site in black_box(all()) {
        site(black_box(1), black_box("text"));
    }
}
