//! `cargo xtask sim`.
#[global_allocator]
static ALLOCATOR: esatto_sim::alloc::Counting = esatto_sim::alloc::Counting;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seed: u64 = args[1].parse().unwrap();
    let n: u64 = args.get(2).map_or(1, |n| n.parse().unwrap());
    let traced = args.get(3).is_some();
    for s in seed..seed + n {
        let t = std::time::Instant::now();
        let r = std::panic::catch_unwind(|| esatto_sim::run::run(s, traced));
        println!("{s}: {:?} {:?}", r.map_err(|_| ()), t.elapsed());
    }
}
