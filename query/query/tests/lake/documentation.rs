//! The pages of the documentation: their examples run, and they name what there is.

use crate::peer::skip;
use crate::readers::{python, require};
use crate::{TRACE, export, folder, root, trace};

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).expect("the page is there")
}

/// Blocks of code in a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    page.split(&*begin).skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn commands_of_the_how_to_run() {
    let folder = folder("how-to");
    std::fs::create_dir(folder.join("traces")).expect("a folder can be made");
    std::fs::copy(trace(TRACE), folder.join("traces/a.pftrace")).expect("a trace can be copied");
    std::fs::copy(trace("official-v56-deflate.pftrace"), folder.join("ci.pftrace")).expect("a trace can be copied");
    let page = page("how-to/lake-of-traces.md");
    let mut count = 0;
    for block in blocks(&page, "sh").into_iter().filter(|block| !block.contains("s3:")) {
        count += 1;
        let script = block.replace("esatto query", "\"$PROGRAM\"").replace("esatto export", "\"$PROGRAM\" export");
        let script = script.replace("esatto lake", "\"$PROGRAM\" lake");
        let output = std::process::Command::new("sh")
            .args(["-e", "-c", &script])
            .current_dir(&folder)
            .env("PROGRAM", env!("CARGO_BIN_EXE_esatto-query"))
            .output()
            .expect("sh runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{block}: {stderr}");
        assert!(!output.stdout.is_empty(), "{block}");
    }
    assert!(count >= 4, "{count} examples");
}

#[test]
fn programs_of_the_how_to_run() {
    skip(|| {
        let readers = require()?;
        let lake = folder("how-to-python").join("lake");
        export(&[&trace(TRACE)], &lake, &["--partition", "date,host"]);
        let page = page("how-to/lake-of-traces.md");
        let blocks = blocks(&page, "python");
        assert!(blocks.len() >= 2, "{} examples", blocks.len());
        for block in blocks {
            let program = block.replace("\"lake", &format!("\"{}", lake.display()));
            let program = program.replace("'lake", &format!("'{}", lake.display()));
            assert!(!python(&readers, &program, &[]).is_empty(), "{block}");
        }
        Ok(())
    });
}

#[test]
fn the_layout_is_the_one_of_the_page() {
    let page = page("reference/lake.md");
    for field in esatto_lake::catalogue_schema().fields() {
        assert!(page.contains(&format!("`{}`", field.name())), "{}", field.name());
    }
    for (name, _) in esatto_lake::TRACE_COLUMNS {
        assert!(page.contains(&format!("| `{name}` | text |")), "{name}");
    }
    for derived in esatto_lake::DERIVED_TABLES {
        assert!(page.contains(&format!("| `{}` | ", derived.name)), "{}", derived.name);
    }
    assert!(page.contains(&format!("`schema_version` is {}.", esatto_lake::SCHEMA_VERSION)));
}
