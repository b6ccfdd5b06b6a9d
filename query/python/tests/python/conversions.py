"""Results as tables of pyarrow, pandas and polars, as streams and as tuples."""

import subprocess
import sys
import threading
import unittest

import pandas
import polars
import pyarrow

import esatto
from common import EVENTS, TRACES

SQL = "select id, ts, dur, name, parent_id, dur / 1000.0 as us, dur > 1000 as is_long from slice order by id"


class Conversions(unittest.TestCase):
    def setUp(self):
        self.session = esatto.open(EVENTS)

    def test_all_forms_have_the_same_rows(self):
        result = self.session.sql(SQL)
        rows = result.fetchall()
        self.assertEqual(len(rows), 1503)
        self.assertIs(type(rows[0][0]), int)
        self.assertIs(type(rows[0][3]), str)
        self.assertIs(type(rows[0][5]), float)
        self.assertIs(type(rows[0][6]), bool)
        self.assertEqual(list(result), rows)
        columns = ["id", "ts", "dur", "name", "parent_id", "us", "is_long"]
        self.assertEqual(result.columns, columns)

        table = result.to_arrow()
        self.assertIsInstance(table, pyarrow.Table)
        table.validate(full=True)
        self.assertEqual([tuple(row.values()) for row in table.to_pylist()], rows)
        self.assertEqual(result.arrow(), table)

        frame = result.to_polars()
        self.assertIsInstance(frame, polars.DataFrame)
        self.assertEqual(frame.rows(), rows)
        self.assertTrue(result.pl().equals(frame))

        frame = result.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame.columns), columns)
        none = frame.astype(object).where(frame.notna(), None)
        self.assertEqual([tuple(row) for row in none.itertuples(index=False)], rows)
        pandas.testing.assert_frame_equal(result.df(), frame)

    def test_times_with_nulls_stay_exact_in_pandas(self):
        sql = "select 9007199254740993 as ts union all select null order by ts"
        frame = self.session.sql(sql).to_pandas()
        self.assertEqual(str(frame["ts"].dtype), "Int64")
        self.assertEqual(frame["ts"][1], 9007199254740993)
        # The names of columns may repeat in pandas.
        frame = self.session.sql('select 1 as a, null + 1 as b, 2 as c').to_pandas()
        self.assertEqual(list(frame.columns), ["a", "b", "c"])
        chosen = self.session.sql(sql).to_pandas(integer_object_nulls=True)
        self.assertEqual(chosen["ts"].dtype, object)
        frame = self.session.sql(sql).to_pandas(split_blocks=True, self_destruct=True)
        self.assertEqual(frame["ts"][1], 9007199254740993)

    def test_packages_take_the_stream_itself(self):
        result = self.session.sql(SQL)
        table = pyarrow.table(result)
        self.assertEqual(table.num_rows, 1503)
        self.assertEqual(polars.DataFrame(result).height, 1503)
        self.assertEqual(pandas.DataFrame.from_arrow(result).shape, (1503, 7))
        self.assertEqual(pyarrow.schema(result), table.schema)
        self.assertEqual(pyarrow.schema(self.session.schema("slice")).names[0], "id")

    def test_rows_stream_in_batches(self):
        # The rows never end, and a reader that stops early gets its rows.
        endless = "with recursive t(n) as (select 1 union all select n + 1 from t) select n from t"
        reader = self.session.sql(endless).to_reader()
        self.assertIsInstance(reader, pyarrow.RecordBatchReader)
        for _ in range(3):
            self.assertGreater(reader.read_next_batch().num_rows, 0)
        del reader
        rows = iter(self.session.sql(endless))
        self.assertEqual([next(rows) for _ in range(100)], [(n + 1,) for n in range(100)])
        del rows
        # A stream that nobody reads costs nothing.
        for _ in range(100):
            self.session.sql(endless).__arrow_c_stream__()

    def test_a_stream_can_be_read_on_another_thread(self):
        result = self.session.sql(SQL)
        for reader in (result.to_reader(), pyarrow.RecordBatchReader.from_stream(result)):
            rows = []
            thread = threading.Thread(target=lambda: rows.append(reader.read_all().num_rows))
            thread.start()
            thread.join()
            self.assertEqual(rows, [1503])

    def test_a_stream_outlives_its_session(self):
        with esatto.open(EVENTS) as session:
            result = session.sql(SQL)
        del session
        self.assertEqual(result.to_arrow().num_rows, 1503)
        reader = result.to_reader()
        del result
        self.assertEqual(reader.read_all().num_rows, 1503)

    def test_collected_rows_are_kept(self):
        self.session.sql("create table t as select 1 as a")
        result = self.session.sql("select a from t").collect()
        lazy = self.session.sql("select a from t")
        self.session.sql("drop table t")
        self.assertEqual(result.fetchall(), [(1,)])
        self.assertEqual(result.to_arrow().to_pylist(), [{"a": 1}])
        # This one has begun, but its second reading runs the statement again.
        self.assertEqual(lazy.fetchall(), [(1,)])
        with self.assertRaisesRegex(esatto.Error, "there is no table 't'"):
            lazy.fetchall()

    def test_the_first_rows_are_shown_and_not_lost(self):
        result = self.session.sql("select id, name from slice order by id")
        shown = repr(result)
        self.assertEqual(shown.splitlines()[0].split(), ["id", "name"])
        self.assertEqual(len(shown.splitlines()), 13)
        self.assertEqual(shown.splitlines()[-1], "(the first 10 rows; there are more)")
        self.assertEqual(repr(result), shown)
        self.assertEqual(len(result.fetchall()), 1503)
        self.assertEqual(repr(self.session.sql("select 1 as a")), "a\n-\n1\n(1 row)")
        self.assertEqual(repr(self.session.sql("select 1 as a where false")), "a\n-\n(0 rows)")
        self.assertEqual(repr(self.session.sql("create view v as select 1")), "(no columns)")

    def test_what_is_shown_is_harmless(self):
        text = "<b onclick='x()'>$x$ & \x1b[31m \u202e" + "x" * 1000
        result = self.session.sql("select ? as \"<i>\"", [text])
        html = result._repr_html_()
        self.assertIn("<th>&lt;i&gt;</th>", html)
        self.assertIn("&lt;b onclick=&#39;x()&#39;&gt;&#36;x&#36; &amp;", html)
        self.assertNotIn("\x1b", html + repr(result))
        self.assertNotIn("\u202e", html + repr(result))
        self.assertLess(len(html), 500)
        self.assertEqual(result.fetchall(), [(text,)])

    def test_further_types_of_values(self):
        result = self.session.sql("select to_time(0) as t, x'00ff' as b, array_agg(a) as l, null as n"
            " from (select 1 as a union all select 1)")
        time, binary, items, null = result.fetchall()[0]
        self.assertRegex(time, r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{9}Z$")
        self.assertEqual((binary, items, null), (b"\x00\xff", "[1, 1]", None))
        self.assertEqual(result.to_arrow().column("l").to_pylist(), [[1, 1]])
        self.assertEqual(repr(result).count("\n"), 3)
        self.assertEqual(self.session.sql("create view w as select 1").to_arrow().num_columns, 0)

    def test_several_traces_have_their_columns(self):
        frame = esatto.open(f"{TRACES}/*.pftrace").sql("select trace_file, count(*) as n from slice group by 1").df()
        self.assertEqual(len(frame), 4)

    def test_no_package_is_needed_for_tuples(self):
        # -S: without the packages; -E: without PYTHONPATH.
        program = f"import esatto; print(esatto.open({str(EVENTS)!r}).sql('select count(*) from slice').fetchall())"
        done = subprocess.run([sys.executable, "-E", "-c", program], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("[(1503,)]\n", ""))
        for method, package in (("to_arrow", "pyarrow"), ("to_pandas", "pandas"), ("to_polars", "polars")):
            program = f"import esatto; esatto.open({str(EVENTS)!r}).sql('select 1').{method}()"
            done = subprocess.run([sys.executable, "-E", "-c", program], capture_output=True, text=True)
            expected = f"ModuleNotFoundError: {method}() needs the package {package}: pip install {package}"
            self.assertEqual(done.stderr.splitlines()[-1], expected)


if __name__ == "__main__":
    unittest.main()
