//! Tables and unions.

use esatto_rust_text::Printer;

use super::context::{Context, ROOT, WIRE};
use super::messages::{decode_head, derives, put_head, rest_head};
use super::{names, notes};
use crate::model::{Declaration, Members};

pub(super) fn table(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, table: &Members) {
    let from = &declaration.name;
    let name = names::type_name(&from.name);
    notes(p, &declaration.notes, &format!("Table `{from}`."));
    derives(context, p, table.is_resource, ", Default");
    p.block_or_empty(&format!("pub struct {name}"), table.members.is_empty(), |p| {
        for member in &table.members {
            notes(p, &member.notes, &format!("`{}`, ordinal {}", member.name, member.ordinal));
            let (_, value) = context.member(from, &member.type_);
            p.field(&format!("pub {}", names::field(&member.name)), &format!("Option<{value}>"));
        }
    });
    p.gap();
    p.block(format!("impl {WIRE}::Wire for {name}"), |p| {
        head(p);
        rest_head(p, |p| {
            if table.members.is_empty() {
                p.line("let _ = value;");
                p.line("encoder.table(at, 0, |_, _| Ok(()))");
                return;
            }
            p.line("let mut last = 0;");
            for member in &table.members {
                p.block(format!("if value.{}.is_some()", names::field(&member.name)), |p| {
                    p.line(format!("last = {};", member.ordinal));
                });
            }
            p.block_with_end(
                "encoder.table(at, last, |encoder, table|",
                |p| {
                    for member in &table.members {
                        let args = [
                            "table".to_owned(),
                            member.ordinal.to_string(),
                            format!("value.{}.as_ref()", names::field(&member.name)),
                            format!("\"{}.{}\"", from.name, member.name),
                        ];
                        let (wire, _) = context.member(from, &member.type_);
                        p.call("", &format!("encoder.table_member::<{wire}>"), &args, "?;");
                    }
                    p.line("Ok(())");
                },
                "})",
            );
        });
        p.gap();
        decode_head(p, |p| {
            if table.members.is_empty() {
                p.line("decoder.table(place, |_, _| Ok(Self {}))");
                return;
            }
            p.block_with_end(
                "decoder.table(place, |decoder, table|",
                |p| {
                    p.line("let mut value = Self::default();");
                    for member in &table.members {
                        let args = [
                            "table".to_owned(),
                            member.ordinal.to_string(),
                            format!("\"{}.{}\"", from.name, member.name),
                        ];
                        let (wire, _) = context.member(from, &member.type_);
                        let head = format!("value.{} = ", names::field(&member.name));
                        p.call(&head, &format!("decoder.table_member::<{wire}>"), &args, "?;");
                    }
                    p.line("Ok(value)");
                },
                "})",
            );
        });
    });
}

pub(super) fn union(context: &Context<'_>, p: &mut Printer, declaration: &Declaration, union: &Members) {
    let from = &declaration.name;
    let name = names::type_name(&from.name);
    let unknown = unknown(union);
    notes(p, &declaration.notes, &format!("Union `{from}`."));
    derives(context, p, union.is_resource, "");
    p.block(format!("pub enum {name}"), |p| {
        for member in &union.members {
            notes(p, &member.notes, &format!("`{}`, ordinal {}", member.name, member.ordinal));
            let (_, value) = context.member(from, &member.type_);
            p.line(format!("{}({value}),", names::variant(&member.name)));
        }
        if let Some(unknown) = &unknown {
            p.doc("Member that this program does not know. Its content is dropped, so that it cannot be sent.");
            p.block_with_end(
                unknown,
                |p| {
                    p.doc("The ordinal.");
                    p.line("ordinal: u64,");
                },
                "},",
            );
        }
    });
    p.gap();
    p.block(format!("impl {name}"), |p| {
        p.doc("Returns the ordinal of the member.");
        p.line("#[must_use]");
        p.block("pub const fn ordinal(&self) -> u64", |p| {
            p.block("match self", |p| {
                for member in &union.members {
                    p.line(format!("Self::{}(_) => {},", names::variant(&member.name), member.ordinal));
                }
                if let Some(unknown) = &unknown {
                    p.line(format!("Self::{unknown} {{ ordinal }} => *ordinal,"));
                }
            });
        });
    });
    p.gap();
    p.block(format!("impl {WIRE}::Wire for {name}"), |p| {
        head(p);
        rest_head(p, |p| {
            p.line("let envelope = encoder.union(at, value.ordinal());");
            p.block("match value", |p| {
                for member in &union.members {
                    let (wire, _) = context.member(from, &member.type_);
                    let args =
                        ["value".to_owned(), "envelope".to_owned(), format!("\"{}.{}\"", from.name, member.name)];
                    let pattern = format!("Self::{}(value)", names::variant(&member.name));
                    p.arm_call(&pattern, &format!("encoder.envelope::<{wire}>"), &args);
                }
                if let Some(unknown) = &unknown {
                    let value =
                        format!("{{ let _ = envelope; Err({ROOT}::EncodeError::unknown_ordinal(*ordinal, at)) }}");
                    p.arm(&format!("Self::{unknown} {{ ordinal }}"), &value);
                }
            });
        });
        p.gap();
        decode_head(p, |p| {
            p.block("match decoder.union(place)?", |p| {
                for member in &union.members {
                    let (wire, _) = context.member(from, &member.type_);
                    let args = format!("place, \"{}.{}\"", from.name, member.name);
                    let value =
                        format!("decoder.union_member::<{wire}>({args}).map(Self::{})", names::variant(&member.name));
                    p.arm(&member.ordinal.to_string(), &value);
                }
                p.line(format!("0 => Err({ROOT}::DecodeError::new({ROOT}::Reason::Absent, place.offset())),"));
                match &unknown {
                    Some(unknown) => {
                        let value =
                            format!("decoder.unknown_union_member(place).map(|()| Self::{unknown} {{ ordinal }})");
                        p.arm("ordinal", &value);
                    }
                    None => p.line(format!(
                        "ordinal => Err({ROOT}::DecodeError::unknown_ordinal(ordinal, place.offset())),"
                    )),
                }
            });
        });
    });
    p.gap();
    p.block(format!("impl {WIRE}::OptionalWire for {name}"), |p| {
        p.line("type OptionalValue = Option<Box<Self>>;");
        p.line("const OPTIONAL_SIZE: usize = 16;");
        p.line("const OPTIONAL_ALIGN: usize = 8;");
        p.gap();
        p.line("fn put_optional(_: &Option<Box<Self>>, _: &mut [u8]) {}");
        p.gap();
        let args = [
            "value: &'v Option<Box<Self>>".to_owned(),
            format!("encoder: &mut {WIRE}::Encoder<'_, 'v>"),
            "at: usize".to_owned(),
        ];
        let returns = format!(" -> Result<(), {ROOT}::EncodeError>");
        p.function_with("fn encode_optional_rest<'v>", &args, &returns, |p| {
            p.line(format!(
                "value.as_ref().map_or(Ok(()), |value| <Self as {WIRE}::Wire>::encode_rest(value, encoder, at))"
            ));
        });
        p.gap();
        let args = [format!("decoder: &mut {WIRE}::Decoder<'b>"), format!("place: {WIRE}::Place<'b>")];
        let returns = format!(" -> Result<Option<Box<Self>>, {ROOT}::DecodeError>");
        p.function_with("fn decode_optional<'b>", &args, &returns, |p| {
            p.block("if decoder.union(place)? == 0", |p| p.line("return Ok(None);"));
            p.line(format!("<Self as {WIRE}::Wire>::decode(decoder, place).map(|value| Some(Box::new(value)))"));
        });
    });
}

fn head(p: &mut Printer) {
    p.line("type Value = Self;");
    p.line("const SIZE: usize = 16;");
    p.line("const ALIGN: usize = 8;");
    p.line("const HAS_REST: bool = true;");
    p.gap();
    put_head(p, None);
    p.gap();
}

/// Returns the variant for unknown members, if the union is flexible.
fn unknown(union: &Members) -> Option<String> {
    if union.is_strict {
        return None;
    }
    let mut name = "Unknown".to_owned();
    while union.members.iter().any(|member| names::variant(&member.name) == name) {
        name.push('_');
    }
    Some(name)
}
