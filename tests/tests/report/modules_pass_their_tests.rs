//! The modules of the page are tested by themselves, in Node.js.

use esatto_tests::{Peer, skip};
use std::path::Path;
use std::process::Command;

#[test]
fn in_node_js() {
    skip(|| {
        Peer::Browser.require()?;
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/report/page");
        let output = Command::new("node").arg("--test").arg("tests/").current_dir(page).output().expect("Node.js");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let passed = text.lines().find_map(|line| line.strip_prefix("# pass ")).and_then(|n| n.parse::<u32>().ok());
        assert!(passed.is_some_and(|passed| passed >= 30), "{text}");
        Ok(())
    });
}
