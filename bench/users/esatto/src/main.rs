//! A program with one slice.

esatto::categories! {
    static APP = "app";
}

fn main() -> Result<(), esatto::Error> {
    let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start()?;
    let _slice = esatto::slice!(APP, "main");
    println!("done");
    Ok(())
}
