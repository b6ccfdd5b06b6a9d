//! Generates Rust code that calls every setter of every message of the crate, from the macros that
//! declare them.

use std::fmt::Write;
use std::path::Path;

/// The declarations of a file: `pb_msg!(Name { field: type, kind, number, … })` and `pb_enum!(Name
/// { VARIANT: number, … })`.
struct Declaration {
    name: String,
    /// Its module, such as `config::trace_config`.
    module: String,
    is_enum: bool,
    entries: Vec<Vec<String>>,
}

/// Returns the text of a module with a function `all`, which the program includes.
pub(crate) fn program(protos: &Path) -> String {
    let mut declarations = Vec::new();
    read_folder(protos, "", &mut declarations);
    let place = |name: &str, module: &str| {
        let mut found = declarations.iter().filter(|declaration| declaration.name == name);
        let own = declarations.iter().find(|declaration| declaration.name == name && declaration.module == module);
        own.or_else(|| found.next()).unwrap_or_else(|| panic!("{name} is declared"))
    };
    let mut text = String::from("pub fn all() {\n");
    let mut fields = 0;
    for message in declarations.iter().filter(|declaration| !declaration.is_enum) {
        let Declaration { name, module, entries, .. } = message;
        let (mut calls, mut expected) = (String::new(), String::new());
        for entry in entries {
            let [field, kind, class, number] = &entry[..] else { panic!("{name}: {entry:?}") };
            let (value, decoded) = match (&class[..], &kind[..]) {
                ("msg", _) => ("|_| {}".to_owned(), "Delimited(b\"\")".to_owned()),
                ("enum", _) => {
                    let declared = place(kind, module);
                    let last = &declared.entries.last().expect("it has values")[1];
                    let value = format!("P::{}::{kind}::try_from({last}).expect(\"it is one\")", declared.module);
                    (value, format!("Varint({last})"))
                }
                (_, "String") => ("\"text\"".to_owned(), "Delimited(b\"text\")".to_owned()),
                (_, "bool") => ("true".to_owned(), "Varint(1)".to_owned()),
                (_, "f32") => ("1.5".to_owned(), "Fixed32(0x3fc0_0000)".to_owned()),
                (_, "f64") => ("1.5".to_owned(), "Fixed64(0x3ff8_0000_0000_0000)".to_owned()),
                (_, "i32" | "i64") => ("-2".to_owned(), "Varint(u64::MAX - 1)".to_owned()),
                (_, "u32") => ("u32::MAX".to_owned(), "Varint(u32::MAX as u64)".to_owned()),
                (_, "u64") => ("u64::MAX".to_owned(), "Varint(u64::MAX)".to_owned()),
                other => panic!("{name}: {other:?}"),
            };
            writeln!(calls, "        message.set_{field}({value});").expect("text");
            write!(expected, "({number}, PbDecoderField::{decoded}), ").expect("text");
            writeln!(text, "    number!(P::{module}, {name}, {field}, {number});").expect("text");
            fields += 1;
        }
        writeln!(text, "    check(\"{name}\", &[{expected}], |msg| {{").expect("text");
        writeln!(
            text,
            "        #[allow(unused_mut, unused_variables)]\n        let mut message = P::{module}::{name} {{ msg }};"
        )
        .expect("text");
        writeln!(text, "{calls}    }});").expect("text");
    }
    assert!(fields > 500, "only {fields} fields: the source is not what it was");
    text + "}\n"
}

fn read_folder(folder: &Path, module: &str, into: &mut Vec<Declaration>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let inside = |name: &str| if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
        if path.is_dir() {
            read_folder(&path, &inside(name), into);
        } else if let Some(name) = name.strip_suffix(".pz.rs") {
            read_file(&std::fs::read_to_string(&path).expect("text"), &inside(name), into);
        }
    }
}

fn read_file(text: &str, module: &str, into: &mut Vec<Declaration>) {
    for (macro_name, is_enum) in [("pb_msg!(", false), ("pb_enum!(", true)] {
        for declaration in text.split(macro_name).skip(1) {
            let (name, rest) = declaration.split_once('{').expect("a name");
            let body = rest.split('}').next().expect("a body");
            let entries = body.split('\n').map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
            let words =
                |line: &str| line.trim_end_matches(',').split([':', ',']).map(|word| word.trim().to_owned()).collect();
            let (name, module) = (name.trim().to_owned(), module.to_owned());
            into.push(Declaration { name, module, is_enum, entries: entries.map(words).collect() });
        }
    }
}
