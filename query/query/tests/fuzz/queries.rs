//! Random queries.

use crate::expressions::{Expr, GREATEST, Generator, Scope, ScopeColumn};
use crate::schema::{Table, Type};

/// A query.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) sql: String,
    /// Its columns, with their names as expressions.
    pub(crate) columns: Vec<Expr>,
    pub(crate) rows: u128,
    /// The order of the rows is determined.
    pub(crate) is_ordered: bool,
}

/// Rows of a join without a common key.
const MAX_PAIRS: u128 = 60_000;

impl Generator<'_> {
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    /// A whole query.
    pub(crate) fn query(&mut self) -> Query {
        let mut query = match self.random.below(10) {
            0..=1 => self.set_operation(),
            2 => self.with_common_table(),
            _ => {
                let source = self.source(2);
                self.select(&source, None)
            }
        };
        let is_exact = query.columns.iter().all(|column| column.is_exact);
        if is_exact && self.random.chance(50) {
            let mut places: Vec<usize> = (1..=query.columns.len()).collect();
            for at in (1..places.len()).rev() {
                places.swap(at, self.random.below(at + 1));
            }
            let order: Vec<String> = places
                .iter()
                .map(|place| {
                    let direction = *self.random.of(&["", "", " desc", " asc nulls last", " desc nulls first"]);
                    format!("{place}{direction}")
                })
                .collect();
            query.sql += &format!(" order by {}", order.join(", "));
            query.is_ordered = true;
            if self.random.chance(60) {
                query.sql += &format!(" limit {}", self.random.below(30));
                if self.random.chance(30) {
                    query.sql += &format!(" offset {}", self.random.below(10));
                }
            }
        }
        query
    }

    /// `FROM`: its text and the columns that it offers.
    pub(crate) fn source(&mut self, depth: usize) -> (String, Scope) {
        let (mut sql, mut scope) = self.relation(depth);
        for _ in 0..self.random.weighted(&[50, 35, 15]) {
            let Some((more, joined)) = self.join(&scope) else { break };
            sql += &more;
            scope = joined;
        }
        (sql, scope)
    }

    fn relation(&mut self, depth: usize) -> (String, Scope) {
        if depth > 0 && self.random.chance(15) {
            let source = self.source(0);
            let query = self.select(&source, None);
            let alias = self.alias();
            let scope = derived(&query, &alias);
            return (format!("({}) {alias}", query.sql), scope);
        }
        let table = self.random.of(&self.schema.tables);
        let alias = self.alias();
        (format!("{} {alias}", table.name), table_scope(table, &alias))
    }

    /// A join with a table, nearly always by a reference.
    fn join(&mut self, scope: &Scope) -> Option<(String, Scope)> {
        let schema = self.schema;
        let alias = self.alias();
        let references: Vec<(&ScopeColumn, &Table, &str)> = scope
            .columns
            .iter()
            .filter_map(|column| {
                let (table, key) = column.refers_to?;
                Some((column, schema.table(table)?, key))
            })
            .collect();
        let small: Vec<&Table> =
            schema.tables.iter().filter(|table| table.rows.max(1).saturating_mul(scope.rows) <= MAX_PAIRS).collect();
        let (table, mut on) = if !references.is_empty() && self.random.chance(75) {
            let (column, table, key) = *self.random.of(&references);
            (table, format!("{} = {alias}.\"{key}\"", column.expr.sql))
        } else if !small.is_empty() {
            let table = *self.random.of(&small);
            let other = table_scope(table, &alias);
            let both = together(scope, &other);
            let kind = if self.random.chance(70) { Type::Int } else { Type::Text };
            match (self.column(scope, kind), self.column(&other, kind)) {
                (Some(a), Some(b)) if self.random.chance(70) => (table, format!("{} = {}", a.expr.sql, b.expr.sql)),
                _ if self.random.chance(30) => {
                    let scope = together(scope, &other);
                    return Some((format!(" cross join {} {alias}", table.name), scope));
                }
                _ => {
                    // DuckDB has no full join without an equality.
                    let join = *self.random.of(&["join", "left join", "right join"]);
                    let on = self.condition_of_join(&both);
                    return Some((format!(" {join} {} {alias} on {on}", table.name), both));
                }
            }
        } else {
            return None;
        };
        let both = together(scope, &table_scope(table, &alias));
        if self.random.chance(30) {
            on += &format!(" and {}", self.condition_of_join(&both));
        }
        let join = *self.random.of(&["join", "join", "left join", "left join", "right join", "full join"]);
        Some((format!(" {join} {} {alias} on {on}", table.name), both))
    }

    /// A condition of a join, without subqueries.
    fn condition_of_join(&mut self, scope: &Scope) -> String {
        let subqueries = core::mem::take(&mut self.subqueries);
        let condition = self.truth(scope, 1);
        self.subqueries = subqueries;
        condition
    }

    fn condition(&mut self, scope: &Scope) -> String {
        let mut parts = Vec::new();
        if self.random.chance(65) {
            parts.push(self.truth(scope, 3));
        }
        if self.subqueries > 0 && self.random.chance(20) {
            parts.push(self.condition_with_subquery(scope));
        }
        if parts.is_empty() { String::new() } else { format!(" where {}", parts.join(" and ")) }
    }

    /// A query over a source, with these types of columns if they are given.
    pub(crate) fn select(&mut self, source: &(String, Scope), kinds: Option<&[Type]>) -> Query {
        match self.random.below(10) {
            0..=2 => self.grouped(source, kinds),
            3 if kinds.is_none() && source.1.keys.is_some() => self.windowed(source),
            _ => self.plain(source, kinds),
        }
    }

    fn kinds(&mut self, scope: &Scope) -> Vec<Type> {
        (0..1 + self.random.below(4)).map(|_| self.any_type(scope)).collect()
    }

    fn plain(&mut self, (from, scope): &(String, Scope), kinds: Option<&[Type]>) -> Query {
        let kinds = kinds.map_or_else(|| self.kinds(scope), <[Type]>::to_vec);
        let columns: Vec<Expr> = kinds.iter().map(|kind| self.expr(scope, *kind, 2)).collect();
        let distinct = if self.random.chance(20) { "distinct " } else { "" };
        let condition = self.condition(scope);
        query(&format!("select {distinct}"), &columns, &format!("from {from}{condition}"), scope.rows)
    }

    /// A query with groups. Its columns are the groups and aggregates, and expressions of them.
    fn grouped(&mut self, (from, scope): &(String, Scope), kinds: Option<&[Type]>) -> Query {
        let mut groups: Vec<Expr> = Vec::new();
        for _ in 0..self.random.below(3) {
            let kind = self.any_type(scope);
            let subqueries = core::mem::take(&mut self.subqueries);
            let column = self.column(scope, kind);
            let group = if self.random.chance(60) { column.map(|column| column.expr) } else { None };
            // A number alone would be the place of a column.
            let group = group.unwrap_or_else(|| self.expr(scope, kind, 2));
            self.subqueries = subqueries;
            if group.sql.contains('"') && groups.iter().all(|other| other.sql != group.sql) {
                groups.push(group);
            }
        }
        let mut results = Scope { columns: Vec::new(), keys: None, rows: scope.rows };
        let samples = |group: &Expr| {
            let same = scope.columns.iter().find(|column| column.expr.sql == group.sql);
            same.map_or_else(Vec::new, |column| column.samples.clone())
        };
        for group in &groups {
            results.columns.push(ScopeColumn { expr: group.clone(), samples: samples(group), refers_to: None });
        }
        for _ in 0..1 + self.random.below(3) {
            let expr = self.aggregate(scope);
            results.columns.push(ScopeColumn { expr, samples: Vec::new(), refers_to: None });
        }
        let subqueries = core::mem::take(&mut self.subqueries);
        let columns: Vec<Expr> = match kinds {
            Some(kinds) => kinds.iter().map(|kind| self.expr(&results, *kind, 1)).collect(),
            None if self.random.chance(80) => results.columns.iter().map(|column| column.expr.clone()).collect(),
            None => self.kinds(&results).iter().map(|kind| self.expr(&results, *kind, 1)).collect(),
        };
        let having =
            if self.random.chance(30) { format!(" having {}", self.truth(&results, 2)) } else { String::new() };
        self.subqueries = subqueries;
        let condition = self.condition(scope);
        let keys: Vec<&str> = groups.iter().map(|group| &*group.sql).collect();
        let group_by = match &keys[..] {
            [] => String::new(),
            [_, _, ..] if self.random.chance(15) => format!(" group by rollup({})", keys.join(", ")),
            keys => format!(" group by {}", keys.join(", ")),
        };
        query("select ", &columns, &format!("from {from}{condition}{group_by}{having}"), scope.rows)
    }

    /// An aggregate of all rows or of those that fit.
    fn aggregate(&mut self, scope: &Scope) -> Expr {
        let subqueries = core::mem::take(&mut self.subqueries);
        let int = self.expr(scope, Type::Int, 1);
        let mut expr = match self.random.below(11) {
            0 | 1 => Expr::int(scope.rows, "count(*)".to_owned()),
            2 => {
                let kind = self.any_type(scope);
                Expr::int(scope.rows, format!("count({})", self.expr(scope, kind, 1).sql))
            }
            3 => {
                let kind = self.any_type(scope);
                Expr::int(scope.rows, format!("count(distinct {})", self.expr(scope, kind, 1).sql))
            }
            4 | 5 => {
                let function = if self.random.chance(50) { "min" } else { "max" };
                let kind = if self.random.chance(60) { Type::Int } else { Type::Text };
                let of = self.expr(scope, kind, 1);
                Expr { sql: format!("{function}({})", of.sql), ..of }
            }
            6 if int.bound.saturating_mul(scope.rows) < 1 << 53 => {
                Expr { is_exact: false, ..Expr::new(Type::Real, format!("avg({})", int.sql)) }
            }
            7 => match self.column(scope, Type::Real) {
                Some(column) => {
                    let function = if self.random.chance(50) { "avg" } else { "sum" };
                    Expr { is_exact: false, ..Expr::new(Type::Real, format!("{function}({})", column.expr.sql)) }
                }
                None => Expr::int(scope.rows, "count(*)".to_owned()),
            },
            8 => {
                let text = self.column(scope, Type::Text).map(|column| column.expr.sql);
                // A literal has no order.
                let text = text.unwrap_or_else(|| format!("cast({} as varchar)", int.sql));
                if text.contains('"') {
                    Expr::new(Type::Text, format!("string_agg({text}, ',' order by {text})"))
                } else {
                    Expr::int(scope.rows, "count(*)".to_owned())
                }
            }
            _ => {
                let bound = int.bound.saturating_mul(scope.rows);
                if bound < GREATEST {
                    let sql = format!("sum({})", int.sql);
                    Expr::int(bound, sql)
                } else {
                    Expr { sql: format!("max({})", int.sql), ..int }
                }
            }
        };
        if self.random.chance(15) {
            expr.sql += &format!(" filter (where {})", self.truth(scope, 1));
        }
        // A sum has 128 bits in DuckDB.
        if expr.sql.starts_with("sum(") && expr.kind == Type::Int {
            expr.sql = format!("cast({} as bigint)", expr.sql);
        }
        self.subqueries = subqueries;
        expr
    }

    fn windowed(&mut self, (from, scope): &(String, Scope)) -> Query {
        let keys = scope.keys.clone().unwrap_or_default();
        let mut columns: Vec<Expr> = self.kinds(scope).iter().map(|kind| self.expr(scope, *kind, 1)).collect();
        let subqueries = core::mem::take(&mut self.subqueries);
        for _ in 0..1 + self.random.below(2) {
            let partition = if self.random.chance(70) {
                let kind = self.any_type(scope);
                format!("partition by {}", self.expr(scope, kind, 0).sql)
            } else {
                String::new()
            };
            let first = self.any_type(scope);
            let direction = *self.random.of(&["", " desc"]);
            let total = match self.column(scope, first) {
                Some(column) => format!("{}{direction}, {}", column.expr.sql, keys.join(", ")),
                None => keys.join(", "),
            };
            let frame = *self.random.of(&[
                "",
                "",
                " rows between 2 preceding and current row",
                " rows between unbounded preceding and 1 following",
                " rows between 1 following and 3 following",
            ]);
            let over = format!("over ({partition} order by {total}{frame})");
            let unframed = format!("over ({partition} order by {total})");
            let kind = self.any_type(scope);
            let of = self.expr(scope, kind, 1);
            let int = self.expr(scope, Type::Int, 1);
            columns.push(match self.random.below(9) {
                0 => Expr::int(scope.rows, format!("row_number() {unframed}")),
                1 => {
                    let function = *self.random.of(&["rank", "dense_rank"]);
                    let by = self.expr(scope, kind, 1).sql;
                    // A literal has no order.
                    if by.contains('"') {
                        Expr::int(scope.rows, format!("{function}() over ({partition} order by {by}{direction})"))
                    } else {
                        Expr::int(scope.rows, format!("{function}() {unframed}"))
                    }
                }
                2 | 3 => {
                    let function = *self.random.of(&["lag", "lead"]);
                    Expr { sql: format!("{function}({}, {}) {unframed}", of.sql, 1 + self.random.below(3)), ..of }
                }
                4 => {
                    let function = *self.random.of(&["first_value", "last_value"]);
                    Expr { sql: format!("{function}({}) {over}", of.sql), ..of }
                }
                5 => Expr::int(scope.rows, format!("count({}) {over}", of.sql)),
                6 if int.bound.saturating_mul(scope.rows) < GREATEST => {
                    Expr::int(int.bound * scope.rows, format!("cast(sum({}) {over} as bigint)", int.sql))
                }
                7 => Expr::int(scope.rows, format!("ntile({}) {unframed}", 1 + self.random.below(5))),
                _ => {
                    let function = *self.random.of(&["min", "max"]);
                    Expr { sql: format!("{function}({}) {over}", int.sql), ..int }
                }
            });
        }
        let condition = self.condition(scope);
        self.subqueries = subqueries;
        query("select ", &columns, &format!("from {from}{condition}"), scope.rows)
    }

    fn set_operation(&mut self) -> Query {
        let first = self.source(1);
        let kinds = self.kinds(&first.1);
        let mut left = self.plain(&first, Some(&kinds));
        let columns = left.columns.clone();
        let is_like = self.random.chance(50);
        for _ in 0..1 + self.random.below(2) {
            let right = if is_like {
                // Parts of the same rows.
                let condition = self.condition(&first.1);
                query("select ", &columns, &format!("from {}{condition}", first.0), first.1.rows)
            } else {
                let source = self.source(1);
                self.select(&source, Some(&kinds))
            };
            let operation =
                *self.random.of(&["union", "union all", "except", "except all", "intersect", "intersect all"]);
            let both = left.columns.iter().zip(&right.columns);
            let both = both.map(|(a, b)| Expr { bound: a.bound.max(b.bound), ..a.clone() });
            left = Query {
                sql: format!("({}) {operation} ({})", left.sql, right.sql),
                columns: both.collect(),
                rows: left.rows + right.rows,
                is_ordered: false,
            };
        }
        left
    }

    fn with_common_table(&mut self) -> Query {
        let source = self.source(0);
        let inner = self.select(&source, None);
        let (name, first, second) = (format!("c{}", self.aliases), self.alias(), self.alias());
        let mut from = format!("{name} {first}");
        let mut scope = derived(&inner, &first);
        if inner.rows.saturating_mul(inner.rows) < MAX_PAIRS && self.random.chance(40) {
            let other = derived(&inner, &second);
            let (a, b) = (self.random.of(&scope.columns).clone(), other.columns[0].clone());
            let both = together(&scope, &other);
            let on = if a.expr.kind == b.expr.kind && a.expr.is_exact && b.expr.is_exact {
                format!("{} = {}", a.expr.sql, b.expr.sql)
            } else {
                "true".to_owned()
            };
            from += &format!(" join {name} {second} on {on}");
            scope = both;
        } else if let Some((more, joined)) = self.join(&scope) {
            from += &more;
            scope = joined;
        }
        let outer = self.select(&(from, scope), None);
        Query { sql: format!("with {name} as ({}) {}", inner.sql, outer.sql), ..outer }
    }

    /// A table that a column of the scope refers to, or any.
    fn subquery_table(&mut self, scope: &Scope) -> (String, Scope, Option<String>) {
        self.subqueries = self.subqueries.saturating_sub(1);
        let schema = self.schema;
        let alias = self.alias();
        let references: Vec<(&ScopeColumn, &Table, &str)> = scope
            .columns
            .iter()
            .filter_map(|column| {
                let (table, key) = column.refers_to?;
                Some((column, schema.table(table)?, key))
            })
            .collect();
        let (table, on) = if !references.is_empty() && self.random.chance(60) {
            let (column, table, key) = *self.random.of(&references);
            (table, Some(format!("{alias}.\"{key}\" = {}", column.expr.sql)))
        } else {
            let table = self.random.of(&schema.tables);
            let inner = table_scope(table, &alias);
            let on = match (self.column(&inner, Type::Int), self.column(scope, Type::Int)) {
                (Some(a), Some(b)) => Some(format!("{} = {}", a.expr.sql, b.expr.sql)),
                _ => None,
            };
            (table, on)
        };
        (format!("{} {alias}", table.name), table_scope(table, &alias), on)
    }

    /// A condition of a subquery: with the outer query if it is correlated.
    fn subquery_condition(&mut self, inner: &Scope, on: Option<String>, is_correlated: bool) -> String {
        let mut parts: Vec<String> = on.filter(|_| is_correlated).into_iter().collect();
        if self.random.chance(50) {
            parts.push(self.truth(inner, 1));
        }
        if parts.is_empty() { String::new() } else { format!(" where {}", parts.join(" and ")) }
    }

    pub(crate) fn scalar_subquery(&mut self, scope: &Scope) -> Expr {
        let (from, inner, on) = self.subquery_table(scope);
        let is_correlated = self.random.chance(50);
        let kept = core::mem::take(&mut self.subqueries);
        let of = match self.random.below(3) {
            0 => Expr::int(inner.rows, "count(*)".to_owned()),
            _ => {
                let function = *self.random.of(&["min", "max", "count"]);
                let of = self.expr(&inner, Type::Int, 0);
                Expr { sql: format!("{function}({})", of.sql), bound: of.bound.max(inner.rows), ..of }
            }
        };
        let condition = self.subquery_condition(&inner, on, is_correlated);
        self.subqueries = kept;
        Expr { sql: format!("(select {} from {from}{condition})", of.sql), ..of }
    }

    pub(crate) fn condition_with_subquery(&mut self, scope: &Scope) -> String {
        let (from, inner, on) = self.subquery_table(scope);
        let kept = core::mem::take(&mut self.subqueries);
        let not = if self.random.chance(40) { "not " } else { "" };
        let sql = if self.random.chance(50) {
            let condition = self.subquery_condition(&inner, on, true);
            format!("({not}exists (select {{1}} from {from}{condition}))")
        } else {
            let kind = if self.random.chance(70) { Type::Int } else { Type::Text };
            let left = self.expr(scope, kind, 0).sql;
            let column = self.expr(&inner, kind, 0).sql;
            let is_correlated = self.random.chance(25);
            let condition = self.subquery_condition(&inner, on, is_correlated);
            format!("({left} {not}in (select {column} from {from}{condition}))")
        };
        self.subqueries = kept;
        sql
    }
}

fn query(select: &str, columns: &[Expr], rest: &str, rows: u128) -> Query {
    let list: Vec<String> = columns.iter().enumerate().map(|(at, column)| format!("{} as c{at}", column.sql)).collect();
    Query { sql: format!("{select}{} {rest}", list.join(", ")), columns: columns.to_vec(), rows, is_ordered: false }
}

/// The columns of a query in `FROM`.
fn derived(query: &Query, alias: &str) -> Scope {
    let column = |(at, column): (usize, &Expr)| ScopeColumn {
        expr: Expr { sql: format!("{alias}.\"c{at}\""), ..column.clone() },
        samples: Vec::new(),
        refers_to: None,
    };
    Scope { columns: query.columns.iter().enumerate().map(column).collect(), keys: None, rows: query.rows }
}

fn table_scope(table: &Table, alias: &str) -> Scope {
    let columns = table.columns.iter().map(|column| ScopeColumn {
        expr: Expr {
            sql: format!("{alias}.\"{}\"", column.name),
            kind: column.kind,
            bound: column.bound,
            is_exact: true,
        },
        samples: column.samples.clone(),
        refers_to: column.refers_to,
    });
    let keys = table.key.map(|key| vec![format!("{alias}.\"{key}\"")]);
    Scope { columns: columns.collect(), keys, rows: table.rows.max(1) }
}

fn together(a: &Scope, b: &Scope) -> Scope {
    let keys = a.keys.iter().zip(&b.keys).map(|(a, b)| [a.clone(), b.clone()].concat()).next();
    let columns = a.columns.iter().chain(&b.columns).cloned().collect();
    // An outer join keeps the rows of both.
    Scope { columns, keys, rows: a.rows.saturating_mul(b.rows).saturating_add(a.rows + b.rows) }
}
