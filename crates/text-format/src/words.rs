//! Words for values: `true`, `f`, `inf`, `nan`.

use prost_reflect::Kind;

/// Encodes a word (`true`, `inf`, …) for a scalar field, without a tag. Returns `None` if the type
/// does not know the word.
pub(crate) fn word(kind: &Kind, negative: bool, word: &str, out: &mut Vec<u8>) -> Option<()> {
    match kind {
        Kind::Bool if !negative => match word {
            "true" | "True" | "t" => out.push(1),
            "false" | "False" | "f" => out.push(0),
            _ => return None,
        },
        Kind::Float | Kind::Double => {
            let value = match word.to_ascii_lowercase().as_str() {
                "inf" | "infinity" => f32::INFINITY,
                "nan" => f32::NAN,
                _ => return None,
            };
            let value = if negative { -value } else { value };
            match kind {
                Kind::Float => out.extend(value.to_le_bytes()),
                _ => out.extend(f64::from(value).to_le_bytes()),
            }
        }
        _ => return None,
    }
    Some(())
}
