//! Random expressions. Their types are known, and the greatest absolute value of integers, so that
//! no operation overflows: DataFusion wraps around there, and DuckDB reports an error.

use crate::random::Random;
use crate::schema::{Schema, Type};

/// Integers stay below.
pub(crate) const GREATEST: u128 = 1 << 62;

/// An expression.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) sql: String,
    pub(crate) kind: Type,
    pub(crate) bound: u128,
    /// The same in all engines; sums of floating point numbers are not.
    pub(crate) is_exact: bool,
}

impl Expr {
    pub(crate) fn new(kind: Type, sql: String) -> Self {
        Self { sql, kind, bound: 0, is_exact: true }
    }

    pub(crate) fn int(bound: u128, sql: String) -> Self {
        Self { sql, kind: Type::Int, bound, is_exact: true }
    }
}

/// A column that expressions can name.
#[derive(Debug, Clone)]
pub(crate) struct ScopeColumn {
    pub(crate) expr: Expr,
    pub(crate) samples: Vec<String>,
    pub(crate) refers_to: Option<(&'static str, &'static str)>,
}

/// The columns that expressions can name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) columns: Vec<ScopeColumn>,
    /// Columns whose values together tell rows apart.
    pub(crate) keys: Option<Vec<String>>,
    /// The rows are at most these.
    pub(crate) rows: u128,
}

/// A generator of SQL.
pub(crate) struct Generator<'a> {
    pub(crate) random: Random,
    pub(crate) schema: &'a Schema,
    pub(crate) aliases: usize,
    /// Subqueries that may follow.
    pub(crate) subqueries: usize,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(schema: &'a Schema, seed: u64) -> Self {
        Self { random: Random::new(seed), schema, aliases: 0, subqueries: 3 }
    }

    pub(crate) fn expr(&mut self, scope: &Scope, kind: Type, depth: usize) -> Expr {
        match kind {
            Type::Int => self.int(scope, depth),
            Type::Real => Expr::new(kind, self.real(scope, depth)),
            Type::Text => Expr::new(kind, self.text(scope, depth)),
            Type::Truth => Expr::new(kind, self.truth(scope, depth)),
        }
    }

    pub(crate) fn any_type(&mut self, scope: &Scope) -> Type {
        let kinds = [Type::Int, Type::Text, Type::Real, Type::Truth];
        let kind = kinds[self.random.weighted(&[10, 7, 2, 1])];
        if scope.columns.iter().any(|column| column.expr.kind == kind) { kind } else { Type::Int }
    }

    /// A column, if there is one of this type.
    pub(crate) fn column(&mut self, scope: &Scope, kind: Type) -> Option<ScopeColumn> {
        let of_kind = |column: &&ScopeColumn| column.expr.kind == kind && column.expr.is_exact;
        let columns: Vec<&ScopeColumn> = scope.columns.iter().filter(of_kind).collect();
        (!columns.is_empty()).then(|| (*self.random.of(&columns)).clone())
    }

    /// A literal, often a value that a column of the scope has.
    pub(crate) fn literal(&mut self, scope: &Scope, kind: Type) -> Expr {
        if self.random.chance(60)
            && let Some(column) = self.column(scope, kind)
            && !column.samples.is_empty()
        {
            let sql = self.random.of(&column.samples).clone();
            return Expr { sql, ..column.expr };
        }
        match kind {
            Type::Int => {
                let values = [0, 1, -1, 2, 3, 7, 10, 100, 1000, 65_536, 1_000_000];
                let value: i64 = *self.random.of(&values);
                Expr::int(value.unsigned_abs().into(), format!("{{{value}}}"))
            }
            Type::Real => Expr::new(kind, format!("{{{:?}}}", *self.random.of(&[0.0, 1.0, -1.5, 0.25, 100.0, 1e6]))),
            Type::Text => {
                let texts = ["", "a", "Running", "main", "e", "_", "x y", "unknown", "Ä", "it''s"];
                Expr::new(kind, format!("'{}'", self.random.of(&texts)))
            }
            Type::Truth => Expr::new(kind, (*self.random.of(&["true", "false"])).to_owned()),
        }
    }

    fn leaf(&mut self, scope: &Scope, kind: Type) -> Expr {
        if self.random.chance(75)
            && let Some(column) = self.column(scope, kind)
        {
            return column.expr;
        }
        self.literal(scope, kind)
    }

    fn int(&mut self, scope: &Scope, depth: usize) -> Expr {
        if depth == 0 || self.random.chance(30) {
            return self.leaf(scope, Type::Int);
        }
        let below = depth - 1;
        match self.random.below(15) {
            0..=3 => {
                let (a, b) = (self.int(scope, below), self.int(scope, below));
                let (op, bound) = match self.random.below(3) {
                    0 => ("+", a.bound + b.bound),
                    1 => ("-", a.bound + b.bound),
                    _ => ("*", a.bound.saturating_mul(b.bound)),
                };
                if bound < GREATEST { Expr::int(bound, format!("({} {op} {})", a.sql, b.sql)) } else { a }
            }
            4 => {
                let (a, b) = (self.int(scope, below), self.leaf(scope, Type::Int));
                if a.bound < GREATEST { Expr::int(a.bound, format!("({} {{/}} {})", a.sql, b.sql)) } else { a }
            }
            5 => {
                let (a, b) = (self.int(scope, below), self.leaf(scope, Type::Int));
                if a.bound < GREATEST { Expr::int(a.bound, format!("({} % {})", a.sql, b.sql)) } else { a }
            }
            6 => {
                let a = self.int(scope, below);
                if a.bound < GREATEST { Expr::int(a.bound, format!("abs({})", a.sql)) } else { a }
            }
            7 => {
                let text = self.text(scope, below);
                Expr::int(1 << 32, format!("cast(length({text}) as bigint)"))
            }
            8 => {
                let truth = self.truth(scope, below);
                Expr::int(1, format!("cast({truth} as bigint)"))
            }
            9 => {
                let (a, b) = (self.int(scope, below), self.int(scope, below));
                let function = if self.random.chance(50) { "greatest" } else { "least" };
                Expr::int(a.bound.max(b.bound), format!("{function}({}, {})", a.sql, b.sql))
            }
            10 => {
                let a = self.int(scope, below);
                let mask: u128 = *self.random.of(&[1, 7, 255, 4095]);
                Expr::int(mask, format!("({} & {{{mask}}})", a.sql))
            }
            11 => {
                let a = self.int(scope, below);
                if a.bound < GREATEST { Expr::int(a.bound, format!("(- {})", a.sql)) } else { a }
            }
            12 if self.subqueries > 0 => self.scalar_subquery(scope),
            _ => {
                let (a, b) = (self.int(scope, below), self.int(scope, below));
                let sql = self.choice(scope, &a.sql, &b.sql, below);
                Expr::int(a.bound.max(b.bound), sql)
            }
        }
    }

    fn real(&mut self, scope: &Scope, depth: usize) -> String {
        if depth == 0 || self.random.chance(30) {
            return self.leaf(scope, Type::Real).sql;
        }
        let below = depth - 1;
        match self.random.below(8) {
            0..=2 => {
                let op = *self.random.of(&["+", "-", "*"]);
                format!("({} {op} {})", self.real(scope, below), self.leaf(scope, Type::Real).sql)
            }
            3 => format!("({} / {{{:?}}})", self.real(scope, below), *self.random.of(&[2.0, -0.5, 3.0, 1e9])),
            4 => format!("cast({} as double)", self.int(scope, below).sql),
            5 => {
                let function = *self.random.of(&["abs", "floor", "ceil", "round"]);
                format!("{function}({})", self.real(scope, below))
            }
            _ => {
                let (a, b) = (self.real(scope, below), self.real(scope, below));
                self.choice(scope, &a, &b, below)
            }
        }
    }

    fn text(&mut self, scope: &Scope, depth: usize) -> String {
        if depth == 0 || self.random.chance(40) {
            return self.leaf(scope, Type::Text).sql;
        }
        let below = depth - 1;
        let inner = self.text(scope, below);
        match self.random.below(12) {
            0 => format!("upper({inner})"),
            1 => format!("lower({inner})"),
            2 => format!("substr({inner}, {{{}}}, {{{}}})", 1 + self.random.below(4), self.random.below(5)),
            3 => format!(
                "replace({inner}, '{}', '{}')",
                self.random.of(&["a", "e", "_", "an"]),
                self.random.of(&["", "X", "ee"])
            ),
            4 => format!("trim({inner})"),
            5 => format!("({inner} || {})", self.text(scope, below)),
            6 => format!("cast({} as varchar)", self.int(scope, below).sql),
            7 => format!("left({inner}, {{{}}})", self.random.below(6)),
            8 => format!("right({inner}, {{{}}})", self.random.below(6)),
            9 => format!("concat({inner}, {})", self.text(scope, below)),
            _ => {
                let other = self.text(scope, below);
                self.choice(scope, &inner, &other, below)
            }
        }
    }

    /// One of two values.
    fn choice(&mut self, scope: &Scope, a: &str, b: &str, depth: usize) -> String {
        match self.random.below(5) {
            0 => format!("coalesce({a}, {b})"),
            1 => format!("nullif({a}, {b})"),
            2 => format!("case when {} then {a} end", self.truth(scope, depth)),
            3 => {
                let kind = if self.random.chance(50) { Type::Int } else { Type::Text };
                let (of, first) = (self.leaf(scope, kind).sql, self.literal(scope, kind).sql);
                let second = self.literal(scope, kind).sql;
                format!("case {of} when {first} then {a} when {second} then {b} else {a} end")
            }
            _ => {
                let (first, second) = (self.truth(scope, depth), self.truth(scope, depth));
                format!("case when {first} then {a} when {second} then {b} else {a} end")
            }
        }
    }

    /// A condition.
    pub(crate) fn truth(&mut self, scope: &Scope, depth: usize) -> String {
        if depth > 0 && self.random.chance(45) {
            let below = depth - 1;
            return match self.random.below(9) {
                0..=2 => format!("({} and {})", self.truth(scope, below), self.truth(scope, below)),
                3..=5 => format!("({} or {})", self.truth(scope, below), self.truth(scope, below)),
                6 => format!("(not {})", self.truth(scope, below)),
                7 if self.subqueries > 0 => self.condition_with_subquery(scope),
                _ => {
                    let inner = self.truth(scope, below);
                    let tests = ["is null", "is not null", "is true", "is not true", "is false", "is not false"];
                    format!("({inner} {})", self.random.of(&tests))
                }
            };
        }
        let kind = self.any_type(scope);
        if kind == Type::Truth {
            return self.leaf(scope, kind).sql;
        }
        let depth = depth.saturating_sub(1);
        let left = match self.column(scope, kind) {
            Some(column) if self.random.chance(50) => column.expr.sql,
            _ => self.expr(scope, kind, depth).sql,
        };
        let not = if self.random.chance(30) { "not " } else { "" };
        match self.random.below(10) {
            0..=3 => {
                let op = *self.random.of(&["=", "<>", "<", "<=", ">", ">="]);
                let right =
                    if self.random.chance(60) { self.literal(scope, kind) } else { self.expr(scope, kind, depth) };
                format!("({left} {op} {})", right.sql)
            }
            4 => {
                let (low, high) = (self.literal(scope, kind).sql, self.leaf(scope, kind).sql);
                format!("({left} {not}between {low} and {high})")
            }
            5 => {
                let mut items: Vec<String> =
                    (0..1 + self.random.below(4)).map(|_| self.literal(scope, kind).sql).collect();
                if self.random.chance(15) {
                    items.push("null".to_owned());
                }
                format!("({left} {not}in ({}))", items.join(", "))
            }
            6 if kind == Type::Text => format!("({left} {not}{{like}} {})", self.pattern(scope)),
            7 => {
                let right = self.leaf(scope, kind).sql;
                format!("({left} is {not}distinct from {right})")
            }
            8 if kind == Type::Text => format!("starts_with({left}, {})", self.pattern(scope).replace('%', "")),
            _ => format!("({left} is {not}null)"),
        }
    }

    /// A pattern that some values match.
    fn pattern(&mut self, scope: &Scope) -> String {
        let sample = self.literal(scope, Type::Text).sql;
        let letters: Vec<char> = sample[1..sample.len() - 1].chars().filter(|&ch| ch != '\'').collect();
        let from = self.random.below(letters.len() + 1);
        let to = from + self.random.below(letters.len() + 1 - from);
        let part: String = letters[from..to].iter().collect();
        let pattern = match self.random.below(5) {
            0 => format!("{part}%"),
            1 => format!("%{part}"),
            2 => format!("%{part}%"),
            3 => format!("_{part}%"),
            _ => letters.iter().collect(),
        };
        format!("'{pattern}'")
    }
}
