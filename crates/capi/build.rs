//! Sets the name under which programs look for the library, and links it so that `dlclose` does not
//! unload it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(perfetto_v59)");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os == "android") {
        // Programs look for the library by this name, even if their linker was given a path.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libperfetto_c.so");
        // The library has a thread, and functions that run at forks and at the end of threads and
        // of the process. They need its code until the process ends.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
