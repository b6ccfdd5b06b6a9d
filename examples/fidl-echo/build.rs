//! Generates Rust from `fidl/echo.fidl`.

use esatto_fidl_codegen::{Config, Result};

fn main() -> Result<()> {
    Config::new().file("fidl/echo.fidl").library("examples.echo").write_to_out_dir("echo.rs")
}
