use std::collections::BTreeMap;
use std::process::Command;

use crate::abi_version::{AbiVersion, succeed};

/// Names of functions, and names of data with their sizes.
pub(crate) type Symbols = BTreeMap<String, Option<u64>>;

/// Returns the symbols that a version must export.
pub(crate) fn expected(version: AbiVersion) -> Symbols {
    let lines = include_str!("symbols.txt").lines().filter(|line| !line.starts_with('#'));
    let mut symbols: Symbols = lines
        .map(|line| match line.split_once(' ') {
            Some((name, size)) => (name.to_owned(), Some(size.parse().expect("a size"))),
            None => (line.to_owned(), None),
        })
        .collect();
    assert_eq!(symbols.len(), 82);
    if version == AbiVersion::V59 {
        let renamed = symbols.into_iter();
        symbols =
            renamed.map(|(name, size)| (name.replace("PerfettoStreamWriter", "PerfettoPbMsgWriter"), size)).collect();
        symbols.extend(
            ["PerfettoDsSetSupportsTracingV2", "PerfettoDsOnFlushArgsGetReason"].map(|name| (name.into(), None)),
        );
        assert_eq!(symbols.len(), 84);
    }
    symbols
}

fn output(program: &str, arguments: &[&str], version: AbiVersion) -> String {
    let output = succeed(Command::new(program).args(arguments).arg(version.library()));
    String::from_utf8(output.stdout).expect("text")
}

fn exported(version: AbiVersion) -> Symbols {
    let symbol = |line: &str| {
        let [_, size, kind, name] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("a symbol without size: {line}")
        };
        let size = u64::from_str_radix(size, 16).expect("a size");
        match kind {
            "T" => (name.to_owned(), None),
            // Not `V`, not `u`, and not in read-only memory.
            "B" | "D" => (name.to_owned(), Some(size)),
            _ => panic!("neither function nor data: {line}"),
        }
    };
    output("nm", &["-D", "--defined-only", "-S"], version).lines().map(symbol).collect()
}

#[test]
fn the_library_exports_them_with_kind_and_size_and_no_others() {
    for version in AbiVersion::ALL {
        let (expected, exported) = (expected(version), exported(version));
        let missing: Vec<_> = expected.keys().filter(|name| !exported.contains_key(*name)).collect();
        let more: Vec<_> = exported.keys().filter(|name| !expected.contains_key(*name)).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "{version:?}: missing: {missing:?}; not in the contract: {more:?}"
        );
        assert_eq!(expected, exported, "{version:?}");
    }
}

/// The list has each function and each data symbol that the contract declares, and no others.
#[test]
fn the_list_is_that_of_the_contract() {
    let spec = include_str!("../../../../docs/spec/c-abi.md");
    let before_v59 = spec.split("\n## 18 ").next().expect("some text");
    // Declarations are `… PerfettoName(` at the start of a line of C, and rows of the table of §3.
    let declared = before_v59.split("```").skip(1).step_by(2).flat_map(str::lines).filter_map(|line| {
        let (head, _) = line.split_once('(').filter(|_| !line.starts_with("typedef") && !line.starts_with(' '))?;
        let head =
            if line.starts_with("PERFETTO_ATOMIC(") { line.split_once(")* ")?.1.split_once('(')?.0 } else { head };
        head.rsplit([' ', '*']).next()
    });
    let inline = before_v59.lines().filter_map(|line| line.strip_prefix("`PerfettoThreadId ")?.split('(').next());
    let data = before_v59.lines().filter_map(|line| line.strip_prefix("| `perfetto_")?.split('`').next());
    let mut named: Vec<_> = declared.chain(inline).map(str::to_owned).collect();
    named.extend(data.map(|name| format!("perfetto_{name}")));
    named.sort();
    assert_eq!(named, expected(AbiVersion::V58).into_keys().collect::<Vec<_>>());
}

#[test]
fn programs_may_have_copies_of_the_data() {
    for version in AbiVersion::ALL {
        let symbols = output("readelf", &["-W", "-d", "--dyn-syms"], version);
        assert!(!symbols.contains("SYMBOLIC"), "the library does not see the program's copy");
        for line in symbols.lines().filter(|line| line.contains(" perfetto_")) {
            assert!(line.contains("OBJECT") && line.contains("GLOBAL") && line.contains("DEFAULT"), "{line}");
        }
        // A program may also replace functions, to wrap them.
        for line in symbols.lines().filter(|line| line.contains(" Perfetto")) {
            assert!(line.contains("FUNC") && line.contains("GLOBAL") && line.contains("DEFAULT"), "{line}");
        }
        // The library uses an address of the data that the dynamic linker fills in.
        let relocations = output("readelf", &["-W", "-r"], version);
        for name in
            ["perfetto_te_any_categories", "perfetto_te_any_categories_enabled", "perfetto_te_process_track_uuid"]
        {
            let is_it = |line: &str| line.contains("GLOB_DAT") && line.split_whitespace().any(|word| word == name);
            assert!(relocations.lines().any(is_it), "no such entry for {name}");
        }
    }
}
