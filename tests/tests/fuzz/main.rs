//! Parsers of foreign bytes: real bytes and a fixed number of their mutations do no harm.

use esatto_tests::bystander::Random;
use esatto_tests::fuzz::{TARGETS, Target, corpus, mutate};

/// Larger inputs are cut: mutations are to hit something.
const MAX_INPUT: usize = 16 * 1024;

fn run(name: &str) {
    let target: &Target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let inputs = corpus(target);
    assert!(!inputs.is_empty(), "{name} has nothing to begin with");
    for (path, bytes) in &inputs {
        eprintln!("{}", path.display());
        (target.run)(bytes);
    }
    let rounds = std::env::var("ESATTO_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000);
    let mut random = Random::new(1);
    for round in 0..rounds {
        let (path, bytes) = &inputs[random.below(inputs.len() as u64) as usize];
        let start = random.below(bytes.len().saturating_sub(MAX_INPUT) as u64 + 1) as usize;
        let mut bytes = bytes[start..bytes.len().min(start + MAX_INPUT)].to_vec();
        mutate(&mut bytes, &mut random);
        eprintln!("round {round}, {}", path.display());
        (target.run)(&bytes);
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            assert!(TARGETS.iter().all(|target| run.contains(&target.name)), "a target is missing here");
        }
    };
}

targets! { frames host fields config descriptor commit text_config shared_memory }
