//! A program that traces itself into a file, with one line in `main`.
//!
//! ```sh
//! cargo run --release -p esatto --example whole_program                # writes whole_program.pftrace
//! ESATTO_TRACE=primes.pftrace ESATTO_TRACE_CATEGORIES='*,-primes.found' cargo run --release -p esatto --example whole_program
//! ESATTO_TRACE=off cargo run --release -p esatto --example whole_program
//! ```

esatto::categories! {
    static PRIMES = "primes", "The search for primes";
    static FOUND = "primes.found", "Every single one";
}

fn main() -> Result<(), esatto::Error> {
    let trace = esatto::trace_to_file("whole_program.pftrace")?;
    let found: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4_u32).map(|part| scope.spawn(move || search(part * 5_000, 5_000))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum()
    });
    println!("{found} primes");
    if let Some(path) = trace.path() {
        println!("open {} with https://ui.perfetto.dev", path.display());
    }
    // Dropping it also completes the file, but cannot report that the disk is full.
    trace.finish()
}

fn search(first: u32, count: u32) -> usize {
    let _search = esatto::slice!(PRIMES, "search", first = first, count = count);
    let is_prime = |&number: &u32| number > 1 && (2..number).take_while(|d| d * d <= number).all(|d| number % d != 0);
    let primes = (first..first + count).filter(is_prime);
    primes.inspect(|&prime| esatto::instant!(FOUND, "prime", number = prime)).count()
}
