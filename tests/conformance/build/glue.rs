//! The code between both sides. For every message, it makes up a value of prost's type, writes it
//! with our writer, compares it with our reader, and turns it into our value.

use std::fmt::Write as _;

use crate::schema::{Field, File, Kind, Label, Message, all};

/// An implementation of `Pair` for every message, and the list of them.
pub(crate) fn code(files: &[File], seed: u64) -> String {
    let mut out = String::new();
    let mut names = Vec::new();
    for file in files {
        for message in file.messages.iter().flat_map(all) {
            names.push(message.path.rust());
            out += &pair(file, message);
        }
    }
    let list: String = names.iter().map(|name| format!("    case::<theirs::{name}>({name:?}),\n")).collect();
    let _ = write!(out, "/// What the schemas are made from.\npub const SCHEMA_SEED: u64 = {seed};\n");
    let _ = write!(out, "/// All messages.\npub const CASES: &[Case] = &[\n{list}];\n");
    out
}

fn pair(file: &File, message: &Message) -> String {
    let name = message.path.rust();
    let parts: Vec<Part<'_>> = message.fields.iter().map(|field| Part::new(file, message, field)).collect();
    let oneofs = oneofs(message, &parts);
    let lines = |code: &dyn Fn(&dyn Lines) -> String| {
        let parts = parts.iter().map(|part| code(part));
        parts.chain(oneofs.iter().map(|oneof| code(oneof))).collect::<String>()
    };
    format!(
        "impl Pair for theirs::{name} {{
    type Owned = ours::{name};
    type Writer<'w> = ours::{name}Writer<'w>;
    type Reader<'a, I> = ours::{name}Reader<'a, I>;
    fn random(random: &mut Random) -> Self {{
        Self {{
{}        }}
    }}
    fn write(&self, w: &mut Self::Writer<'_>) {{
{}    }}
    fn read(&self, bytes: &[u8]) {{
        self.check(ours::{name}Reader::new(bytes));
        self.check(ours::{name}Decoder::decode(bytes));
    }}
    fn check<I: Lookup>(&self, r: Self::Reader<'_, I>) {{
{}    }}
    fn to_ours(&self) -> Self::Owned {{
        ours::{name} {{
{}            ..Default::default()
        }}
    }}
}}
",
        lines(&|it| it.random()),
        lines(&|it| it.write()),
        lines(&|it| it.check()),
        lines(&|it| it.to_ours()),
    )
}

/// Lines that a field or a oneof adds to the four methods.
trait Lines {
    fn random(&self) -> String;
    fn write(&self) -> String;
    fn check(&self) -> String;
    fn to_ours(&self) -> String;
}

/// A field and the expressions for one value of it.
struct Part<'s> {
    field: &'s Field,
    packed: bool,
    name: String,
    /// Name of the message, for failed assertions.
    message: String,
    value: Expressions,
}

/// Expressions for a value of prost's, `v`, which is a reference.
struct Expressions {
    /// A random one.
    random: String,
    /// As an argument of a setter.
    argument: &'static str,
    /// The value in a form that can be compared; `ours` is the same for the result of a reader.
    theirs: &'static str,
    ours: &'static str,
    /// As ours.
    owned: &'static str,
    is_message: bool,
}

impl Expressions {
    fn of(kind: &Kind, implicit: bool) -> Self {
        let plain = |random: String, argument, theirs, ours, owned| Self {
            random,
            argument,
            theirs,
            ours,
            owned,
            is_message: false,
        };
        match kind {
            Kind::Message(path) => Self {
                random: format!("random.message::<theirs::{}>().into()", path.rust()),
                argument: "",
                theirs: "",
                ours: "",
                owned: "v.to_ours().into()",
                is_message: true,
            },
            Kind::Enum(found) => plain(
                format!("random.number_of(&{:?})", found.numbers),
                "(*v).into()",
                "*v",
                "i32::from(v)",
                "(*v).into()",
            ),
            Kind::Scalar("string") => {
                plain("random.string()".to_owned(), "v", "v.as_bytes()", "v", "v.as_str().into()")
            }
            Kind::Scalar("bytes") => plain("random.bytes()".to_owned(), "v", "v.as_slice()", "v", "v.clone()"),
            Kind::Scalar(name @ ("float" | "double")) => {
                // prost takes a negative zero for nothing at all.
                let zero = if implicit { " + 0.0" } else { "" };
                plain(format!("random.{name}(){zero}"), "*v", "v.to_bits()", "v.to_bits()", "*v")
            }
            Kind::Scalar("bool") => plain("random.bool()".to_owned(), "*v", "*v", "v", "*v"),
            Kind::Scalar(name) => {
                let method = match *name {
                    "int32" | "sint32" | "sfixed32" => "int32",
                    "int64" | "sint64" | "sfixed64" => "int64",
                    "uint32" | "fixed32" => "uint32",
                    _ => "uint64",
                };
                plain(format!("random.{method}()"), "*v", "*v", "v", "*v")
            }
        }
    }
}

impl<'s> Part<'s> {
    fn new(file: &File, message: &Message, field: &'s Field) -> Self {
        let value = Expressions::of(&field.kind, matches!(field.label, Label::Implicit | Label::Map(_)));
        Self { field, packed: file.is_packed(field), name: field.name(), message: message.path.rust(), value }
    }

    fn write_one(&self) -> String {
        if self.value.is_message {
            format!("v.write(&mut w.{}());", self.name)
        } else {
            format!("w.{}({});", self.name, self.value.argument)
        }
    }

    /// Compares a value that may be absent: `theirs` is an optional reference to it.
    fn check_one(&self, theirs: &str) -> String {
        let (name, place) = (&self.name, self.place());
        if self.value.is_message {
            return format!(
                "match (r.{name}(), {theirs}) {{ (Some(r), Some(v)) => v.check(r), (None, None) => {{}}, _ => panic!({place}) }}\n"
            );
        }
        let expressions = &self.value;
        format!(
            "assert_eq!(r.{name}().map(|v| {}), {theirs}.map(|v| {}), {place});\n",
            expressions.ours, expressions.theirs
        )
    }

    fn check_map(&self, key: &Expressions) -> String {
        let (name, place) = (&self.name, self.place());
        let value = if self.value.is_message {
            "v.check(e.value().unwrap_or_default());".to_owned()
        } else {
            let Expressions { theirs, ours, .. } = self.value;
            format!("assert_eq!(e.value().map(|v| {ours}).unwrap_or_default(), {theirs}, {place});")
        };
        let theirs = key.theirs.replace('v', "k");
        format!(
            "{{ let entries: BTreeMap<_, _> = r.{name}().map(|e| (e.key().unwrap_or_default(), e)).collect();
assert_eq!(entries.len(), self.{name}.len(), {place});
for (k, v) in &self.{name} {{ let e = entries[&{theirs}]; {value} }} }}\n"
        )
    }

    /// A literal that says where.
    fn place(&self) -> String {
        format!("{:?}", format!("{}.{}", self.message, self.name))
    }
}

impl Lines for Part<'_> {
    fn random(&self) -> String {
        let (name, value) = (&self.name, &self.value.random);
        match self.field.label {
            Label::Oneof(_) => String::new(),
            Label::Optional if self.value.is_message => {
                format!("{name}: random.optional(|random| {value}),\n")
            }
            Label::Optional => format!("{name}: random.optional(|random| {value}),\n"),
            Label::Implicit | Label::Required => format!("{name}: {value},\n"),
            Label::Repeated if self.value.is_message => format!("{name}: random.messages(),\n"),
            Label::Repeated => format!("{name}: random.many(|random| {value}),\n"),
            Label::Map(key) => {
                let key = Expressions::of(&Kind::Scalar(key), false).random;
                format!("{name}: random.many(|random| ({key}, {value})).into_iter().collect(),\n")
            }
        }
    }

    fn write(&self) -> String {
        let (name, argument) = (&self.name, self.value.argument);
        let one = self.write_one();
        match self.field.label {
            Label::Oneof(_) => String::new(),
            Label::Optional => format!("if let Some(v) = &self.{name} {{ {one} }}\n"),
            Label::Implicit | Label::Required => format!("{{ let v = &self.{name}; {one} }}\n"),
            Label::Repeated if self.packed => format!("w.{name}(self.{name}.iter().map(|v| {argument}));\n"),
            Label::Repeated => format!("for v in &self.{name} {{ {one} }}\n"),
            Label::Map(key) => {
                let key = Expressions::of(&Kind::Scalar(key), false).argument.replace('v', "k");
                if self.value.is_message {
                    format!(
                        "for (k, v) in &self.{name} {{ let mut e = w.{name}(); e.key({key}); v.write(&mut e.value()); }}\n"
                    )
                } else {
                    format!("for (k, v) in &self.{name} {{ w.{name}_entry({key}, {argument}); }}\n")
                }
            }
        }
    }

    fn check(&self) -> String {
        let name = &self.name;
        match self.field.label {
            Label::Oneof(_) => String::new(),
            Label::Optional => self.check_one(&format!("self.{name}.as_ref()")),
            Label::Required => self.check_one(&format!("Some(&self.{name})")),
            Label::Implicit => {
                let Expressions { theirs, ours, .. } = self.value;
                let place = self.place();
                format!(
                    "{{ let v = &self.{name}; assert_eq!(r.{name}().map(|v| {ours}).unwrap_or_default(), {theirs}, {place}); }}\n"
                )
            }
            Label::Repeated if self.value.is_message => format!(
                "assert_eq!(r.{name}().count(), self.{name}.len(), {0});\nr.{name}().zip(&self.{name}).for_each(|(r, v)| v.check(r));\n",
                self.place()
            ),
            Label::Repeated => {
                let Expressions { theirs, ours, .. } = self.value;
                let place = self.place();
                format!("assert!(r.{name}().map(|v| {ours}).eq(self.{name}.iter().map(|v| {theirs})), {place});\n")
            }
            Label::Map(key) => self.check_map(&Expressions::of(&Kind::Scalar(key), false)),
        }
    }

    fn to_ours(&self) -> String {
        let (name, owned) = (&self.name, self.value.owned);
        let value = match self.field.label {
            Label::Oneof(_) => return String::new(),
            Label::Optional => format!("self.{name}.as_ref().map(|v| {owned})"),
            Label::Implicit => format!("unless_default(&self.{name}).map(|v| {owned})"),
            Label::Required => format!("Some(&self.{name}).map(|v| {owned})"),
            Label::Repeated => format!("self.{name}.iter().map(|v| {owned}).collect()"),
            Label::Map(key) => {
                let key = Expressions::of(&Kind::Scalar(key), false).owned.replace('v', "k");
                format!("self.{name}.iter().map(|(k, v)| ({key}, {owned})).collect()")
            }
        };
        format!("{name}: {value},\n")
    }
}

/// A oneof of a message.
struct Oneof<'p> {
    name: String,
    /// The enumeration in both kinds of code.
    path: String,
    members: Vec<&'p Part<'p>>,
}

fn oneofs<'p>(message: &Message, parts: &'p [Part<'p>]) -> Vec<Oneof<'p>> {
    let members = |index| parts.iter().filter(move |part| part.field.label == Label::Oneof(index));
    let oneof = |index: usize| Oneof {
        name: format!("o{index}"),
        path: format!("{}::O{index}", message.path.module()),
        members: members(index).collect(),
    };
    (0..).map(oneof).take_while(|oneof| !oneof.members.is_empty()).collect()
}

impl Lines for Oneof<'_> {
    fn random(&self) -> String {
        let Self { name, path, members } = self;
        let arms: String = members
            .iter()
            .enumerate()
            .map(|(i, part)| {
                format!("{i} => Some(theirs::{path}::{}({})),\n", part.name.to_uppercase(), part.value.random)
            })
            .collect();
        format!("{name}: match random.below({}) {{\n{arms}_ => None,\n}},\n", members.len() + 1)
    }

    fn write(&self) -> String {
        let Self { name, path, members } = self;
        let arm = |part: &&Part<'_>| {
            format!("Some(theirs::{path}::{}(v)) => {{ {} }}\n", part.name.to_uppercase(), part.write_one())
        };
        format!("match &self.{name} {{\n{}None => {{}}\n}}\n", members.iter().map(arm).collect::<String>())
    }

    fn check(&self) -> String {
        let Self { name, path, members } = self;
        let check = |part: &&Part<'_>| {
            let variant = part.name.to_uppercase();
            part.check_one(&format!(
                "match &self.{name} {{ Some(theirs::{path}::{variant}(v)) => Some(v), _ => None }}"
            ))
        };
        members.iter().map(check).collect()
    }

    fn to_ours(&self) -> String {
        let Self { name, path, members } = self;
        let arm = |part: &&Part<'_>| {
            let variant = part.name.to_uppercase();
            format!("theirs::{path}::{variant}(v) => ours::{path}::{variant}({}),\n", part.value.owned)
        };
        let arms: String = members.iter().map(arm).collect();
        format!("{name}: self.{name}.as_ref().map(|one| match one {{\n{arms}}}),\n")
    }
}
