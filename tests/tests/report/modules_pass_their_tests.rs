//! The modules of the page are tested by themselves, in Node.js, and a linter judges them.

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
        assert!(passed.is_some_and(|passed| passed >= 43), "{text}");
        Ok(())
    });
}

#[test]
fn a_linter_has_nothing_to_say() {
    skip(|| {
        Peer::Browser.require()?;
        // The linter takes no path with "..".
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project").join("crates");
        let linter = esatto_tests::node_modules().join("node_modules/.bin/oxlint");
        let output = Command::new(linter)
            .arg("-c")
            .arg(crates.join("report/page/.oxlintrc.json"))
            .args([crates.join("report/page"), crates.join("ui-server/src/view/page.js")])
            .output()
            .expect("oxlint");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let files = text.lines().find_map(|line| line.split(" files").next()?.rsplit(' ').next()?.parse::<u32>().ok());
        assert!(files.is_some_and(|files| files >= 28), "{text}");
        Ok(())
    });
}
