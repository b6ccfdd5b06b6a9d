"""The same rows from the module, from esatto-query, from the trace processor and from DuckDB."""

import json
import os
import pathlib
import subprocess
import unittest

import duckdb

import esatto
from common import EVENTS, ROOT, STATS, TRACES, make_lake, rows_of_program

QUERIES = [
    "select count(*) as n from slice",
    "select name, count(*) as n, sum(dur) as total from slice group by name order by name",
    "select s.name, t.name as thread, t.tid, count(*) as n from slice s join thread_track tt on s.track_id = tt.id"
    " join thread t on tt.utid = t.utid group by s.name, t.name, t.tid order by 1, 2, 3",
    "select p.name, p.pid, t.tid, t.name as thread from thread t left join process p on t.upid = p.upid"
    " order by p.pid, t.tid",
    "select t.name, count(*) as n, min(c.value) as least, max(c.value) as most from counter c"
    " join counter_track t on c.track_id = t.id group by t.name order by t.name",
    "select key, count(*) as n, sum(int_value) as total from args group by key order by key",
    "select ts, dur, name, parent_id, depth from slice order by id limit 500",
]


def plain(value):
    """A value as the trace processor's JSON has it."""
    return float(value) if isinstance(value, float) and value.is_integer() else value


def rows(result):
    return [[plain(value) for value in row] for row in result]


class Peers(unittest.TestCase):
    maxDiff = None

    def test_the_program_gives_the_same_rows(self):
        for trace in sorted(TRACES.glob("*.pftrace")):
            session = esatto.open(trace)
            for sql in QUERIES:
                with self.subTest(trace=trace.name, sql=sql):
                    result = session.sql(sql)
                    ours = [dict(zip(result.columns, row)) for row in result]
                    self.assertEqual(ours, rows_of_program(trace, sql))

    def test_a_pattern_and_a_lake_give_the_rows_of_the_program(self):
        sql = "select trace_file, name, count(*) as n, sum(dur) as total from slice group by 1, 2 order by 1, 2"
        for source in (f"{TRACES}/*.pftrace", make_lake()):
            with self.subTest(source=source):
                result = esatto.open(source).sql(sql)
                ours = [dict(zip(result.columns, row)) for row in result]
                self.assertGreater(len(ours), 10)
                self.assertEqual(ours, rows_of_program(source, sql))

    def test_the_trace_processor_gives_the_same_rows(self):
        peers = pathlib.Path(os.environ["PEERS_DIR"])
        if not (peers / "ui/version").exists():
            self.skipTest("no peers: run 'cargo xtask peers ui'")
        for trace in (EVENTS, STATS):
            session = esatto.open(trace)
            for sql in QUERIES:
                with self.subTest(trace=trace.name, sql=sql):
                    tp = [ROOT / "xtask/peers/tp", "--json", trace, "-f", "-"]
                    done = subprocess.run(tp, input=sql, capture_output=True, text=True, check=True)
                    theirs = [list(row.values()) for row in json.loads(done.stdout)]
                    self.assertEqual(rows(session.sql(sql)), [[plain(value) for value in row] for row in theirs])

    def test_duckdb_reads_our_streams_and_gives_the_same_rows(self):
        tables = ["slice", "thread", "process", "thread_track", "counter", "counter_track", "args"]
        for trace in (EVENTS, STATS):
            session = esatto.open(trace)
            database = duckdb.connect()
            database.execute("set timezone = 'UTC'")
            for table in tables:
                # DuckDB finds the variable, and asks it for Arrow's C stream.
                stream = session.sql(f"select * from {table}")
                database.execute(f"create table {table} as select * from stream")
            for sql in QUERIES:
                with self.subTest(trace=trace.name, sql=sql):
                    theirs = [[plain(value) for value in row] for row in database.execute(sql.replace(
                        "order by p.pid, t.tid", "order by p.pid nulls first, t.tid nulls first").replace(
                        "order by 1, 2, 3", "order by 1 nulls first, 2 nulls first, 3 nulls first").replace(
                        "order by key", "order by key nulls first")).fetchall()]
                    self.assertEqual(rows(session.sql(sql)), theirs)


if __name__ == "__main__":
    unittest.main()
