"""Opening traces and lakes; tables and columns; damaged traces."""

import os
import pathlib
import shutil
import unittest
import warnings

import esatto
from common import EVENTS, STATS, TRACES, damaged, make_lake, query


class Sessions(unittest.TestCase):
    def test_sources_are_texts_paths_patterns_and_lists(self):
        both = [str(EVENTS), STATS]
        for sources in ((EVENTS, str(STATS)), (both,), (f"{TRACES}/official-v56-[pt]r*.pftrace",)):
            with self.subTest(sources=sources):
                found = esatto.open(*sources).sql("select distinct trace_file from thread order by 1").fetchall()
                self.assertEqual(found, [(str(STATS),), (str(EVENTS),)])
        self.assertNotIn("trace_file", esatto.open(EVENTS).schema("slice"))
        self.assertIn("trace_file", esatto.open(EVENTS, trace_columns=True).schema("slice"))

    def test_a_trace_is_read_from_a_server(self):
        import functools
        import http.server
        import threading

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        handler = functools.partial(Handler, directory=TRACES)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_port}/{EVENTS.name}"
            # The server is in this process: it answers only if queries do without Python's lock.
            self.assertEqual(esatto.open(url).sql("select count(*) from slice").fetchall(), [(1503,)])
            server.shutdown()

    def test_a_lake_has_the_same_methods(self):
        place = make_lake()
        with esatto.open_lake(pathlib.Path(place)) as lake:
            self.assertEqual(repr(lake), "<esatto.Session of 'lake'>")
            self.assertIn("traces", lake.tables())
            self.assertEqual(lake.sql("select count(*) from traces").fetchall(), [(5,)])
            self.assertIn("trace_file", lake.schema("slice"))
            slices = lake.sql("select count(*) from thread_slice").to_arrow().to_pylist()
            same = esatto.open(place).sql("select count(*) from thread_slice").to_arrow().to_pylist()
            self.assertEqual(slices, same)
        self.assertEqual(repr(lake), "<esatto.Session, closed>")
        with self.assertRaisesRegex(esatto.Error, "the session is closed"):
            lake.tables()
        with self.assertRaisesRegex(esatto.Error, "is no lake: .*lake.json is missing"):
            esatto.open_lake(TRACES)
        with self.assertRaisesRegex(esatto.Error, "one lake, and nothing beside it"):
            esatto.open(place, EVENTS)

    def test_tables_and_columns_are_listed(self):
        session = esatto.open(EVENTS)
        tables = session.tables()
        for table in ("slice", "thread", "sched", "thread_slice", "cpu_utilization"):
            self.assertIn(table, tables)
        self.assertEqual(tables, sorted(tables))
        self.assertIn("extract_arg", session.functions())
        schema = session.schema("slice")
        self.assertEqual(schema.names[:3], ["id", "ts", "dur"])
        self.assertEqual(len(schema), len(schema.names))
        column = schema["name"]
        self.assertEqual((column.name, column.type, column.nullable), ("name", "Utf8View", True))
        self.assertEqual(column, schema[schema.names.index("name")])
        self.assertEqual(schema[-1].name, schema.names[-1])
        self.assertEqual(column.doc, "Its name.")
        self.assertIn("nanoseconds", schema["ts"].doc)
        self.assertTrue(schema.doc)
        self.assertIn("Its duration in nanoseconds", repr(schema))
        self.assertEqual([column.name for column in schema], schema.names)
        # A view that no statement has named.
        view = session.schema("thread_slice")
        self.assertIn("thread_name", view)
        self.assertIsNone(view["thread_name"].doc)
        self.assertEqual(view.names, session.sql("select * from thread_slice").schema.names)
        with self.assertRaises(KeyError):
            schema["nmae"]
        with self.assertRaises(IndexError):
            schema[len(schema)]
        with self.assertRaisesRegex(esatto.Error, "there is no table 'slcie'; perhaps 'slice'"):
            session.schema("slcie")

    def test_statements_share_a_session(self):
        session = esatto.open(EVENTS)
        self.assertEqual(session.sql("create view long as select * from slice where dur > 1000").columns, [])
        count = session.sql("select count(*) as n from long").fetchall()
        self.assertGreater(count[0][0], 0)
        result = session.sql("create table t as select 7 as a; select a from t; drop view long")
        self.assertEqual(result.fetchall(), [(7,)])
        with self.assertRaises(esatto.Error):
            session.sql("select * from long")

    def test_parameters_are_values(self):
        session = esatto.open(EVENTS)
        one = lambda sql, parameters: session.sql(sql, parameters).fetchall()[0][0]
        long = one("select count(*) from slice where dur > 1000", None)
        self.assertTrue(0 < long < 1503, long)
        self.assertEqual(one("select count(*) from slice where dur > $1", [1000]), long)
        self.assertEqual(one("select count(*) from slice where name = ?", ("frame",)), 300)
        self.assertEqual(one("select count(*) from slice where name = $name", {"name": "frame"}), 300)
        self.assertEqual(one("select :a + @b", {"a": 1, "$b": 2}), 3)
        for value in (0, -5, 2**63 - 1, -(2**63), 1.5, -2.0, 1e300, 5e-324, "", "it's", "42", "'", "ä\n\0;--", True, None):
            with self.subTest(value=value):
                found = one("select $1", [value])
                self.assertEqual((type(found), found), (type(value), value))

        import numpy

        self.assertEqual(one("select ?", [numpy.int64(7)]), 7)
        self.assertEqual(one("select ?", [numpy.float32(1.5)]), 1.5)
        # They are for one call alone.
        with self.assertRaisesRegex(esatto.Error, "the parameter '1' has no value"):
            session.sql("select $1")

    def test_damaged_traces_are_warned_of_once(self):
        name = damaged()
        session = esatto.open(name)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kept = session.sql("select count(*) from slice").fetchall()[0][0]
            session.sql("select count(*) from thread").fetchall()
        self.assertEqual([warning.category for warning in caught], [esatto.DamagedTraceWarning])
        self.assertEqual(caught[0].filename, __file__)
        self.assertGreater(kept, 0)
        reason = str(caught[0].message)
        # The text is that of the program.
        _, stderr = query(name, "select count(*) from slice", status=3)
        self.assertEqual(stderr.splitlines()[0], f"esatto-query: {reason}")
        self.assertEqual([f"{path}: {why}" for path, why in session.damaged().items()], [reason])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(esatto.DamagedTraceWarning):
                esatto.open(name).sql("select count(*) from slice").fetchall()
        with self.assertWarns(esatto.DamagedTraceWarning):
            self.assertEqual(esatto.open(name, broken="skip").sql("select count(*) from slice").fetchall(), [(0,)])

    def test_damaged_traces_of_a_pattern_are_skipped(self):
        os.makedirs("some", exist_ok=True)
        for number in range(25):
            damaged(f"some/{number:02}.pftrace")
        shutil.copy(EVENTS, "some/whole.pftrace")
        sql = "select trace_file, count(*) as n from slice group by 1"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = esatto.open("some/*.pftrace")
            rows = session.sql(sql).fetchall()
        self.assertEqual(rows, [("some/whole.pftrace", 1503)])
        texts = [str(warning.message) for warning in caught]
        named = [text for text in texts if not text.startswith("…")]
        counted = [int(text.split()[2]) for text in texts if text not in named]
        self.assertEqual((len(set(named)), sum(counted)), (20, 5), texts)
        self.assertEqual(len(named), 20)
        self.assertEqual(len(session.damaged()), 25)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept = esatto.open("some/*.pftrace", broken="keep").sql(sql).fetchall()
        self.assertEqual(len(kept), 26)
        # A stream that another package reads warns, too.
        with self.assertWarns(esatto.DamagedTraceWarning):
            esatto.open("some/*.pftrace").sql(sql).to_reader().read_all()


if __name__ == "__main__":
    unittest.main()
