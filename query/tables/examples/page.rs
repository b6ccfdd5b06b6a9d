//! Prints the page of the documentation that describes the tables.

fn main() {
    print!("{}", esatto_tables::page());
}
