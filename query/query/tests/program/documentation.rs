//! The page of the documentation: its examples run, and it names every view and function.

use crate::{TRACE, root, trace};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/how-to/query-a-trace.md")).expect("the page is there")
}

#[test]
fn its_examples_run() {
    let page = page();
    let mut count = 0;
    for block in page.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default().replace("\\\n", " ");
        if !block.starts_with("esatto query") {
            continue;
        }
        count += 1;
        let script = block
            .replace("esatto query", "\"$PROGRAM\"")
            .replace("demo.pftrace", "\"$TRACE\"")
            .replace("traces/*.pftrace", &root().join("tests/traces/*.pftrace").to_string_lossy());
        let output = std::process::Command::new("sh")
            .args(["-e", "-c", &script])
            .env("PROGRAM", env!("CARGO_BIN_EXE_esatto-query"))
            .env("TRACE", trace(TRACE))
            .output()
            .expect("sh runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{block}: {stderr}");
        assert!(!output.stdout.is_empty(), "{block}");
    }
    assert!(count >= 3, "{count} examples");
}

#[test]
fn it_names_all_views() {
    let page = page();
    for (name, _) in esatto_query::views() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn functions_that_it_names_exist() {
    let page = page();
    let tables = page.split("| function | result |").nth(1).and_then(|rest| rest.split("\n## ").next());
    let first_cells = tables
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.contains("time_to_ms"))
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let names: Vec<String> = first_cells
        .flat_map(|cell| cell.split("`, `").map(str::to_owned).collect::<Vec<_>>())
        .map(|name| name.split(['(', '`']).next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    let message = |sql: String| crate::stderr(&crate::run(&[&trace(TRACE), &sql]));
    for name in names {
        let is_function = !message(format!("explain select {name}()")).contains("there is no function");
        let is_table = || !message(format!("explain select * from {name}()")).contains("there is no table function");
        assert!(is_function || is_table(), "{name}");
    }
    assert!(message("explain select none()".to_owned()).contains("there is no function 'none'"));
}
