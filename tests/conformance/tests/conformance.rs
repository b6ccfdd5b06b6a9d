//! Each side reads the bytes of the other (`docs/spec/protozero.md` §16, case 56).

use esatto_conformance::{CASES, SCHEMA_SEED};

/// Values of each message unless told otherwise.
const VALUES: u64 = 30;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

#[test]
fn case_56_random_values_of_random_schemas_go_both_ways() {
    assert!(CASES.len() > 10, "there is something to try");
    let values = number("ESATTO_CONFORMANCE_VALUES", VALUES);
    let first = number("ESATTO_CONFORMANCE_FIRST_VALUE", 0);
    for case in CASES {
        for seed in first..first + values {
            let trial = Trial { name: case.name, seed };
            case.run(seed);
            drop(trial);
        }
    }
}

/// Says how to repeat it if it fails.
struct Trial {
    name: &'static str,
    seed: u64,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { name, seed } = self;
            eprintln!(
                "{name}: repeat with ESATTO_CONFORMANCE_SEED={SCHEMA_SEED} ESATTO_CONFORMANCE_FIRST_VALUE={seed}"
            );
        }
    }
}
