"""Mistakes raise exceptions with the texts of esatto-query."""

import os
import pickle
import unittest
import warnings

import esatto
from common import EVENTS, query


class Mistakes(unittest.TestCase):
    def setUp(self):
        self.session = esatto.open(EVENTS)

    def test_errors_in_sql_have_the_text_of_the_program(self):
        for sql in (
            "select nmae from slice",
            "select *\nfrom slcie",
            "select from",
            "choose 1",
            "select 1 +",
            "select extract_rag(1, 'a')",
            "insert into slice values (1)",
            "copy slice to 'file.csv'",
            "select * from 'other.pftrace'",
            "select 1;\nselect 1; select )",
            "select " + "x" * 200,
            "select cast('a' as int) / name from slice",
        ):
            with self.subTest(sql=sql):
                _, stderr = query(EVENTS, sql, status=1)
                with self.assertRaises(esatto.Error) as caught:
                    self.session.sql(sql).fetchall()
                self.assertEqual(f"esatto-query: {caught.exception}\n", stderr)

    def test_the_place_and_the_remedy_are_attributes(self):
        with self.assertRaises(esatto.Error) as caught:
            self.session.sql("select ts,\n  nmae from slice")
        error = caught.exception
        self.assertEqual((error.line, error.column), (2, 3))
        self.assertEqual((error.message, error.help), ("there is no column 'nmae'", "perhaps 'name'"))
        self.assertEqual(str(error).splitlines()[-2:], ["    nmae from slice", "    ^"])
        with self.assertRaises(esatto.Error) as caught:
            esatto.open("missing.pftrace")
        error = caught.exception
        self.assertEqual((error.line, error.column, error.help), (None, None, None))
        # As processes of a pool pass exceptions on.
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.message, copy.line), (str(error), error.message, None))

    def test_remedies_are_those_of_python(self):
        for sql, parameters, help in (
            ("select ?, ?", [1], "give a list with at least 2 values as the second argument of sql()"),
            ("select $tid", None, "give {'tid': VALUE} as the second argument of sql()"),
        ):
            with self.assertRaises(esatto.Error) as caught:
                self.session.sql(sql, parameters)
            self.assertEqual(caught.exception.help, help)
        with self.assertRaises(esatto.Error) as caught:
            session = esatto.open(EVENTS, memory_limit="1M")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                big = "select array_agg(s.name || t.name || s.id) from slice s, slice t"
                session.sql(big).fetchall()
        self.assertIn("does not fit in memory", str(caught.exception))
        self.assertIn("raise memory_limit, or", caught.exception.help)

    def test_errors_while_rows_are_read(self):
        # The last row fails: the query has begun.
        sql = "select cast(name as bigint) from slice"
        result = self.session.sql(sql)
        read_all = lambda: result.to_reader().read_all()
        for read in (read_all, result.fetchall, result.to_arrow, result.to_pandas, result.to_polars, result.collect):
            with self.subTest(read=read), self.assertRaises(esatto.Error) as caught:
                read()
            self.assertIn("Cannot cast", str(caught.exception))
        with self.assertRaises(esatto.Error):
            repr(result)
        # Other packages have exceptions of their own, with our text.
        import polars
        import pyarrow

        with self.assertRaisesRegex(Exception, "Cannot cast"):
            pyarrow.table(result)
        with self.assertRaisesRegex(BaseException, "Cannot cast"):
            polars.DataFrame(result)
        # A text of C ends at a NUL, ours may have one.
        with self.assertRaisesRegex(Exception, "Cannot cast"):
            pyarrow.table(self.session.sql("select cast(? || name as bigint) from slice", ["a\0b"]))

    def test_wrong_arguments(self):
        for error, call in (
            (TypeError, lambda: esatto.open()),
            (TypeError, lambda: esatto.open(3)),
            (ValueError, lambda: esatto.open(EVENTS, broken="perhaps")),
            (ValueError, lambda: esatto.open(EVENTS, threads=0)),
            (ValueError, lambda: esatto.open(EVENTS, memory_limit="8Q")),
            (ValueError, lambda: esatto.open(EVENTS, memory_limit=1)),
            (ValueError, lambda: esatto.open(os.fsdecode(b"\xff"))),
            (TypeError, lambda: self.session.sql()),
            (TypeError, lambda: self.session.sql("select ?", 1)),
            (TypeError, lambda: self.session.sql("select ?", "text")),
            (TypeError, lambda: self.session.sql("select ?", [object()])),
            (TypeError, lambda: self.session.sql("select ?", {1: 2})),
            (ValueError, lambda: self.session.sql("select ?", [2**63])),
            (ValueError, lambda: self.session.sql("select ?", [float("nan")])),
            (ValueError, lambda: self.session.sql("select ?", [float("inf")])),
            (esatto.Error, lambda: self.session.sql("")),
            (esatto.Error, lambda: self.session.sql(" ; -- nothing")),
            (esatto.Error, lambda: self.session.sql("select 1; select 2")),
            (esatto.Error, lambda: esatto.open("missing/*.pftrace")),
            (esatto.Error, lambda: esatto.open(".")),
            (esatto.Error, lambda: esatto.open_lake("http://127.0.0.1:1/lake")),
            (TypeError, lambda: esatto.Session()),
            (TypeError, lambda: esatto.Result()),
        ):
            with self.subTest(error=error), self.assertRaises(error) as caught:
                call()
            self.assertTrue(str(caught.exception))
        with self.assertRaisesRegex(esatto.Error, "cannot read missing.pftrace: No such file"):
            esatto.open("missing.pftrace")
        with self.assertRaisesRegex(esatto.Error, "is a folder and no lake: lake.json is missing; name the traces"):
            esatto.open(".")

    def test_a_file_that_is_no_trace(self):
        with self.assertWarns(esatto.DamagedTraceWarning):
            rows = esatto.open(__file__).sql("select count(*) from slice").fetchall()
        self.assertEqual(rows, [(0,)])

    def test_a_child_process_opens_its_own_traces(self):
        self.assertEqual(self.session.sql("select count(*) from slice").fetchall(), [(1503,)])
        rows = iter(self.session.sql("select 1 union all select 2"))
        next(rows)
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            # Python warns of forks in processes with threads.
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            text = "none"
            try:
                self.session.sql("select 1")
            except esatto.Error as error:
                text = str(error)
            try:
                list(rows)
            except esatto.Error as error:
                text += f" {str(error) == text}"
            text += f" {esatto.open(EVENTS).sql('select count(*) from slice').fetchall()}"
            os.write(writing, text.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertRegex(text, r"^the session was opened before this process was forked; .* True \[\(1503,\)\]$")


if __name__ == "__main__":
    unittest.main()
