//! Measures every encoder on the same values, interleaved, and prints one JSON object per line for
//! the runner: `bench-protozero-encode ROUNDS`; see bench/README.md.

mod cases;
mod check;
mod encode;
mod floor;
mod measure;
mod ours;
mod peers;
mod ring;
mod values;

fn main() {
    let rounds = std::env::args().nth(1).map_or(7, |text| text.parse().expect("a number of rounds"));
    bench_harness::pin(0);
    check::all();
    measure::all(rounds);
}
