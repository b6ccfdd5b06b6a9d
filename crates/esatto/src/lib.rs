//! Perfetto tracing for Rust programs: track events, data sources and sessions, without a C++ toolchain.
