//! The tables that queries ask, with facts about their values.

use esatto_lake::derived;
use esatto_tables::{Kind, TableDef};

use crate::duckdb::DuckDb;
use crate::rows::Cell;

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// An integer.
    Int,
    /// A floating point number.
    Real,
    /// A text.
    Text,
    /// A truth value.
    Truth,
}

pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// The greatest absolute value of an integer.
    pub(crate) bound: u128,
    /// Some of its values, as literals.
    pub(crate) samples: Vec<String>,
    /// The table and the column that its values refer to.
    pub(crate) refers_to: Option<(&'static str, &'static str)>,
}

pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) rows: u128,
    pub(crate) columns: Vec<Column>,
    /// A column without equal values.
    pub(crate) key: Option<&'static str>,
}

pub(crate) struct Schema {
    pub(crate) tables: Vec<Table>,
}

/// Columns that tell traces apart, and are in the tables of raw traces and of lakes.
const TRACE_COLUMNS: [&str; 3] = ["trace_file", "trace_uuid", "trace_system_name"];

impl Schema {
    /// Reads the facts from DuckDB. Tables without rows are a few of all.
    pub(crate) fn read(peer: &mut DuckDb) -> Self {
        let mut ask = |sql: &str| peer.ask(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
        for table in esatto_lake::DERIVED_TABLES {
            let own: Vec<&str> =
                esatto_tables::table(table.name).expect("it is a table").columns.iter().map(|own| own.name).collect();
            let condition = table.condition.map_or_else(String::new, |condition| format!(" where {condition}"));
            ask(&format!(
                "create view {} as select \"{}\", \"{}\" from {}{condition}",
                table.name,
                own.join("\", \""),
                TRACE_COLUMNS.join("\", \""),
                table.of,
            ));
        }
        let mut tables = Vec::new();
        for table in esatto_tables::tables() {
            let Cell::Int(rows) = ask(&format!("select count(*) from {}", table.name))[0][0] else { continue };
            let rows = rows.unsigned_abs();
            if rows == 0 && !matches!(table.name, "perf_sample" | "flow") {
                continue;
            }
            let columns = columns(table, &mut ask);
            let key = table.columns.iter().find(|column| column.is_key).map(|column| column.name);
            tables.push(Table { name: table.name, rows, columns, key });
        }
        assert!(tables.iter().any(|table| derived(table.name).is_some()), "views are asked");
        Self { tables }
    }

    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

fn columns(table: &TableDef, ask: &mut impl FnMut(&str) -> Vec<Vec<Cell>>) -> Vec<Column> {
    let mut columns = Vec::new();
    let own = table.columns.iter().map(|column| {
        let kind = match column.kind {
            Kind::Text => Type::Text,
            Kind::Real => Type::Real,
            _ => Type::Int,
        };
        (column.name, kind, column.refers_to)
    });
    for (name, kind, refers_to) in own.chain(TRACE_COLUMNS.map(|name| (name, Type::Text, None))) {
        let mut bound = 0;
        if kind == Type::Int {
            let range = ask(&format!("select min(\"{name}\"), max(\"{name}\") from {}", table.name));
            for cell in &range[0] {
                if let Cell::Int(value) = cell {
                    bound = bound.max(value.unsigned_abs());
                }
            }
        }
        let sql = format!(
            "select v from (select \"{name}\" as v, count(*) as n from {} where \"{name}\" is not null group by 1)
                order by hash(v), v limit 12",
            table.name
        );
        let samples = ask(&sql).iter().filter_map(|row| literal(&row[0])).collect();
        columns.push(Column { name: name.to_owned(), kind, bound, samples, refers_to });
    }
    columns
}

/// Writes a value as a literal of the generator; `None` if it has a character of the generator's.
pub(crate) fn literal(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Int(value) => {
            i64::try_from(*value).ok().filter(|value| *value != i64::MIN).map(|value| format!("{{{value}}}"))
        }
        Cell::Real(value) if value.is_finite() && value.abs() < 1e15 => Some(format!("{{{value:?}}}")),
        Cell::Text(text) if text.len() < 60 && !text.contains(['{', '}']) && !text.chars().any(char::is_control) => {
            Some(format!("'{}'", text.replace('\'', "''")))
        }
        _ => None,
    }
}
