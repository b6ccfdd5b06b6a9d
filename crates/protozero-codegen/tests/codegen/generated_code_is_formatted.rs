use std::path::PathBuf;
use std::process::Command;

use crate::checked_in_code_is_what_is_generated::output;
use crate::{Folder, here};

#[test]
fn as_rustfmt_leaves_it_with_the_settings_of_this_repository() {
    let folder = Folder::new("rustfmt");
    check(&output().write_to(&folder.0).unwrap());
}

pub(crate) fn check(paths: &[PathBuf]) {
    let mut rustfmt = Command::new(std::env::var_os("RUSTFMT").unwrap_or_else(|| "rustfmt".into()));
    let settings = here().join("../../../../rustfmt.toml");
    let run =
        rustfmt.args(["--check", "--edition", "2024", "--config-path"]).arg(settings).args(paths).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
