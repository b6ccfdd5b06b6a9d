//! The queries of `tests/queries`, and statements of many shapes.

/// A query: its name and its text.
pub(crate) struct Query {
    pub(crate) name: String,
    pub(crate) sql: String,
}

/// Reads the queries of a text. A query follows a line `-- name`, and ends with a semicolon.
fn parse(stem: &str, text: &str) -> Vec<Query> {
    let parts = text.split(";\n").filter(|part| !part.trim().is_empty());
    let query = |part: &str| {
        let (comment, sql) = part.trim().split_once('\n').expect("a name and a query");
        let name = comment.strip_prefix("-- ").expect("a query has a name");
        Query { name: format!("{stem}: {name}"), sql: sql.to_owned() }
    };
    parts.map(query).collect()
}

/// Returns the queries that are compared with Perfetto's trace processor elsewhere.
pub(crate) fn of_the_trace_processor() -> Vec<Query> {
    let folder = crate::root().join("tests/queries");
    let mut queries = Vec::new();
    for folder in [folder.clone(), folder.join("stdlib")] {
        for entry in std::fs::read_dir(folder).expect("the folder of queries is there") {
            let path = entry.expect("it can be read").path();
            if path.extension().is_some_and(|extension| extension == "sql") {
                let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
                queries.extend(parse(&stem, &std::fs::read_to_string(&path).expect("a query can be read")));
            }
        }
    }
    queries
}

/// Returns statements of the shapes in which rows of several tasks could be put together wrongly.
pub(crate) fn of_all_shapes() -> Vec<Query> {
    parse("shapes", include_str!("shapes.sql"))
}
