//! Programs that are linked with the library look for it by this name, also where the linker was given a path.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os == "android") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libperfetto_c.so");
        // Its thread, and what runs at forks, at the end of threads and of the process, is there until then: `dlclose` leaves it alone.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
