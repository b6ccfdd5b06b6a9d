//! Statements, parameters, functions and views.

use std::io::Write as _;
use std::process::Stdio;

use crate::{TRACE, csv, folder, rows, trace};

#[test]
fn tables_and_views_made_by_statements_last_until_the_end() {
    let sql = "create table long as select name, dur from slice where dur > 1000;
        create view names as select distinct name from long;
        select count(*) as n from names; drop view names";
    assert_eq!(csv(sql), "4\n");
}

#[test]
fn sql_comes_from_a_file_or_the_standard_input() {
    let path = folder("sql").join("query.sql");
    std::fs::write(&path, "-- a comment\nselect count(*) as n from slice;\n").expect("a file can be written");
    assert_eq!(rows(&[&trace(TRACE), "-f", &path.to_string_lossy(), "--format", "csv"]), "n\n1503\n");
    let mut command = crate::command(&[&trace(TRACE), "-f", "-", "--format", "csv"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
    child.stdin.take().expect("a pipe").write_all(b"select 1 as one").expect("it reads");
    assert_eq!(child.wait_with_output().expect("it ends").stdout, b"one\n1\n");
}

#[test]
fn parameters_have_types() {
    let sql = "select count(*) as n, typeof_name from (select 'x' as typeof_name) t, slice
        where name = $name and depth = :depth and dur > ? group by 2";
    let args = ["--param", "name=draw", "-p", "depth=1", "-p", "1=0", "--format", "csv"];
    let mut all = vec![trace(TRACE), sql.to_owned()];
    all.extend(args.map(str::to_owned));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(rows(&all), "n,typeof_name\n300,x\n");
    // A value cannot end the text that it is.
    let sql = "select $v as v";
    let value = "v=' or 1=1; --";
    assert_eq!(rows(&[&trace(TRACE), sql, "-p", value, "--format", "csv"]), "v\n' or 1=1; --\n");
}

#[test]
fn names_of_tables_and_columns_have_no_case() {
    assert_eq!(csv("SELECT Count(*) AS N FROM SLICE WHERE NAME = 'frame' AND Slice.DEPTH = 0"), "300\n");
}

#[test]
fn times_and_durations_are_converted() {
    assert_eq!(csv("select dur_ms(1500000), dur_ms(-1)"), "1.5,\n");
    let time = csv("select to_time(min(ts)) as t, to_realtime(min(ts)) > 1700000000000000000 from slice");
    assert!(time.starts_with("2026-") && time.ends_with("Z,true\n"), "{time}");
}

#[test]
fn self_time_is_the_time_without_inner_slices() {
    let sql = "select sum(self_dur) = (select sum(dur) from slice where depth = 0) as same from slice_self_dur";
    assert_eq!(csv(sql), "true\n");
}

#[test]
fn trees_of_slices_can_be_joined() {
    let sql = "select s.depth, count(a.id) as n, max(a.distance) as far
        from slice s join ancestors() a on a.start_id = s.id group by 1 order by 1";
    let by_join = csv(sql);
    assert!(by_join.lines().next().is_some_and(|line| line.starts_with("1,")), "{by_join}");
    assert!(by_join.lines().all(|line| {
        let numbers: Vec<u64> = line.split(',').map(|cell| cell.parse().expect("a number")).collect();
        numbers[0] == numbers[2] && numbers[1].is_multiple_of(numbers[0])
    }));
    let down = csv("select count(*) from slice s join descendants() d on d.start_id = s.id");
    let up = csv("select count(*) from ancestors()");
    assert_eq!(down, up);
    assert_eq!(csv("select count(*) from ancestors(-1)"), "0\n");
    assert_eq!(csv("select count(*) from descendants(9223372036854775807)"), "0\n");
    assert_eq!(csv("select count(*) from flow_following(null)"), "0\n");
}

#[test]
fn utilization_is_between_nothing_and_all() {
    let trace = trace("official-v56-long-two-buffers.pftrace");
    let sql = "select count(*) as n, min(utilization) >= 0 and max(utilization) <= 1 as fits from cpu_utilization";
    let text = rows(&[&trace, sql, "--format", "csv"]);
    assert!(text == "n,fits\n0,\n" || text.ends_with(",true\n"), "{text}");
}

#[test]
fn every_table_and_view_can_be_read() {
    let views = esatto_query::views().map(|(name, _)| name);
    for name in esatto_tables::tables().iter().map(|table| table.name).chain(views) {
        for columns in [&[][..], &["--trace-columns"]] {
            let sql = format!("select * from {name} limit 3");
            let mut args = vec![trace(TRACE), sql, "--format".to_owned(), "json".to_owned()];
            args.extend(columns.iter().map(|&arg| arg.to_owned()));
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let text = rows(&args);
            let found: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let first = &found[0];
            assert!(first.is_null() || first.get("trace_file").is_some() != columns.is_empty(), "{name}: {first}");
        }
    }
}

/// In a build of DataFusion alone these answers are wrong.
#[test]
fn null_is_not_false_beside_a_membership() {
    let values = "with v as (select * from (values (1), (2), (null)) as t(x)), n as (select * from (values (1), (null)) as t(y))";
    let count = |condition: &str| csv(&format!("{values} select count(*) as n from v where {condition}"));
    assert_eq!(count("x in (select y from n)"), "1\n");
    assert_eq!(count("x not in (select y from n)"), "0\n");
    assert_eq!(count("(x in (select y from n)) is null"), "2\n");
    assert_eq!(count("x > 5 or x not in (select y from n)"), "0\n");
    assert_eq!(count("not (x > 5 or x in (select y from n))"), "0\n");
    assert_eq!(count("not (x > 5 or x in (select y from n where y is not null))"), "1\n");
    assert_eq!(count("5 not in (select y from n)"), "0\n");
    assert_eq!(count("5 not in (select y from n where y is not null)"), "3\n");
    // Nothing is in an empty set, not even NULL.
    assert_eq!(count("x not in (select y from n where n.y = v.x)"), "2\n");
    assert_eq!(count("x > 5 or x not in (select y from n where y > 5)"), "3\n");
}

#[test]
fn a_condition_without_columns_removes_the_row_of_an_aggregate() {
    let count = |rows: &str| csv(&format!("select count(*) as n from {rows} where (select count(*) from thread) < 0"));
    assert_eq!(count("(select max(ts) as m from slice)"), "0\n");
    assert_eq!(
        count("(select m + 1 as m from (select max(ts) as m from slice)) as a, (select min(ts) from slice)"),
        "0\n"
    );
    assert_eq!(count("(select count(*) as m from (select max(ts) as ts from slice) group by ts)"), "0\n");
    // A column that is a constant.
    let sql = "select count(*) as n from (select max(ts) as m, 2 - 10 as c from slice) where c is distinct from c";
    assert_eq!(csv(sql), "0\n");
}

#[test]
fn set_operations_with_all_count_each_row() {
    let rows = |operation: &str| {
        csv(&format!(
            "select x from (values (1), (1), (1), (2), (null), (null)) as a(x) {operation}
            select y from (values (1), (3), (null)) as b(y) order by 1"
        ))
    };
    assert_eq!(rows("except all"), "\"\"\n1\n1\n2\n");
    assert_eq!(rows("intersect all"), "\"\"\n1\n");
    assert_eq!(rows("except"), "2\n");
    let nested =
        "select count(*) from (select 1 as x union all select 1 except all select 1 intersect all select 2) as t";
    assert_eq!(csv(nested), "2\n");
    assert_eq!(csv("select t.x from (select 1 as x except all select 2) as t"), "1\n");
    let output = crate::run(&[&trace(TRACE), "select * from slice except all select * from slice"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("EXCEPT ALL needs the names of the columns"), "{message}");
}

#[test]
fn signs_and_row_numbers_are_those_of_integers() {
    assert_eq!(csv("select -(x & 1) as a, -x as b, - 3 as c from (values (6)) as t(x)"), "0,-6,-3\n");
    assert_eq!(csv("select arrow_typeof(row_number() over () - 5) as t from (values (1)) as v(x)"), "Int64\n");
}

/// DataFusion takes the order of a constant for granted, also behind a join that has lost it.
#[test]
fn orders_in_aggregates_hold_behind_joins() {
    let sql = "select a.n, length(string_agg(b.k, ',' order by b.k)) as l
        from (select distinct depth as n, 'tick' as k from slice where depth = 0) a
        join (select name as c, 'tick' as k from slice) b on a.k = b.c group by a.n";
    for threads in ["1", "3"] {
        let all = rows(&[&trace(TRACE), sql, "--threads", threads, "--format", "csv"]);
        assert_eq!(all, format!("n,l\n0,{}\n", 300 * 5 - 1), "{threads} threads");
    }
}

/// DataFusion moves a condition that is always false below the aggregate, whose row then stays.
#[test]
fn joins_on_false_conditions_have_no_rows() {
    for condition in ["1 = 2", "'e' in ('work', 'a')", "null"] {
        let sql = format!(
            "select n * (n % t.utid) as x from (select count(*) as n from slice)
             left join thread t on {condition} where t.utid < 100"
        );
        assert_eq!(csv(&sql), "", "{sql}");
        let sql =
            format!("select n, t.utid as u from (select count(*) as n from slice) left join thread t on {condition}");
        assert_eq!(csv(&sql), "1503,\n", "{sql}");
    }
}

/// DataFusion takes NULL in the condition on the outer query for an unknown member.
#[test]
fn rows_without_a_partner_are_in_no_set() {
    let from = "from slice a left join thread b on a.id = b.utid + 100000";
    let set = "(select 'x' from thread c where c.utid = b.utid)";
    assert_eq!(csv(&format!("select count(*) as n {from} where 'x' not in {set}")), "1503\n");
    assert_eq!(csv(&format!("select count(*) as n {from} where not ('x' in {set})")), "1503\n");
    assert_eq!(csv(&format!("select count(*) as n {from} where 'x' in {set}")), "0\n");
    assert_eq!(csv(&format!("select count(*) as n {from} where not ('x' not in {set})")), "0\n");
}

/// Groups of one text have a way of their own. A second group, which is the same in all rows, takes
/// DataFusion's.
#[test]
fn groups_of_one_text_are_those_of_texts() {
    let texts = [
        "name",
        "case when depth = 0 then null else name end",
        "concat(name, ' with a text that does not fit into a view')",
        "cast(id as varchar)",
        "concat('the slice with the number ', cast(id as varchar))",
        "''",
    ];
    for text in texts {
        for condition in ["true", "dur < 0", "depth > 0"] {
            let ask = |groups: &str, threads: &str| {
                let sql = format!(
                    "select text, count(*) as n, count(dur) filter (where dur > 5000) as m, sum(dur) as s,
                        min(ts) as a, max(name) as b, avg(depth) as c
                     from (select {text} as text, depth * 0 as zero, * from slice) where {condition}
                     group by {groups} order by text"
                );
                rows(&[&trace(TRACE), &sql, "--threads", threads, "--format", "csv"])
            };
            let expected = ask("text, zero", "1");
            for threads in ["1", "3"] {
                assert_eq!(ask("text", threads), expected, "{text} where {condition}, {threads} threads");
            }
        }
    }
}
