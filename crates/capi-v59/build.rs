//! Selects v59 of the ABI, and links the library so that `dlclose` does not unload it, as the build
//! script of `esatto-capi`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(perfetto_v59)");
    println!("cargo::rustc-cfg=perfetto_v59");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os == "android") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
