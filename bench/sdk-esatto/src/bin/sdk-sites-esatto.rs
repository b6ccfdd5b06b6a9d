//! Call sites with Esatto, in modules `site_…` of one form: the runner looks for the sizes of their
//! functions.

#![forbid(unsafe_code)]

use std::hint::black_box;

esatto::categories! {
    static BENCH = "bench";
}

macro_rules! sites {
    ($($module:ident)*) => {
        $(
            mod $module {
                use super::BENCH;

                #[inline(never)]
                pub(super) fn pair(_: u64, _: &str) {
                    esatto::begin!(BENCH, "pair");
                    esatto::end!(BENCH);
                }

                #[inline(never)]
                pub(super) fn pair_with_number(number: u64, _: &str) {
                    esatto::begin!(BENCH, "pair", number = number);
                    esatto::end!(BENCH);
                }

                #[inline(never)]
                pub(super) fn pair_with_arguments(number: u64, text: &str) {
                    esatto::begin!(BENCH, "pair", number = number, text = text);
                    esatto::end!(BENCH);
                }

                #[inline(never)]
                pub(super) fn scope(_: u64, _: &str) {
                    let _slice = esatto::slice!(BENCH, "scope");
                }

                #[inline(never)]
                pub(super) fn instant(_: u64, _: &str) {
                    esatto::instant!(BENCH, "instant");
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
