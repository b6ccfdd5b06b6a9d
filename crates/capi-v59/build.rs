//! As v58's: `dlclose` leaves the library alone.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os == "android") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
