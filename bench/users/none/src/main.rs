//! A program that traces nothing.

fn main() {
    println!("done");
}
