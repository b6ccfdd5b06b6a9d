//! The two dialects. The generator writes `{7}` for a literal number, `{/}` for the division of
//! integers and `{like}` for the operator that ignores the case.

/// An engine's dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Esatto,
    DuckDb,
}

impl Dialect {
    pub(crate) fn render(self, sql: &str) -> String {
        let mut out = String::new();
        let mut rest = sql;
        while let Some((before, after)) = rest.split_once('{') {
            let (marker, after) = after.split_once('}').expect("a marker ends");
            out.push_str(before);
            out.push_str(&self.marker(marker));
            rest = after;
        }
        out + rest
    }

    fn marker(self, marker: &str) -> String {
        match (self, marker) {
            (Self::Esatto, "/") => "/".to_owned(),
            (Self::DuckDb, "/") => "//".to_owned(),
            (Self::Esatto, "like") => "like".to_owned(),
            (Self::DuckDb, "like") => "ilike".to_owned(),
            (Self::Esatto, number) if number.starts_with('-') => format!("({number})"),
            (Self::Esatto, number) => number.to_owned(),
            // An integer has 32 bits there, and 1.5 is a decimal number.
            (Self::DuckDb, number) => {
                let kind = if number.contains(['.', 'e']) { "double" } else { "bigint" };
                format!("({number})::{kind}")
            }
        }
    }
}
