//! Prints the content of a trace: `info FILE [--json]`.

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let file = std::fs::File::open(args.next().unwrap_or_default())?;
    let summary = esatto_trace::Summary::read(file);
    match args.next() {
        Some(_) => println!("{:#}", summary.to_json()),
        None => print!("{summary}"),
    }
    Ok(())
}
