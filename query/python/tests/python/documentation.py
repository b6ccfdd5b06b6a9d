"""The notebook, the examples of the documentation, and help()."""

import base64
import contextlib
import io
import os
import pathlib
import pydoc
import re
import shutil
import unittest
import warnings

import nbclient
import nbformat

import esatto
from common import EVENTS, ROOT, make_lake


class Documentation(unittest.TestCase):
    def test_the_notebook_runs_and_draws(self):
        shutil.copy(EVENTS, "demo.pftrace")
        path = ROOT / "query/python/examples/slices.ipynb"
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.assertTrue(all(not cell.outputs for cell in cells), "the repository keeps no outputs")
        # A kernel draws into the notebook, whatever the environment says.
        del os.environ["MPLBACKEND"]
        client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3")
        client.execute(cwd=".")
        outputs = [output for cell in cells for output in cell.outputs]
        self.assertEqual([output for output in outputs if output.output_type in ("error", "stream")], [])
        data = [output.data for output in outputs]
        pictures = [base64.b64decode(entry["image/png"]) for entry in data if "image/png" in entry]
        self.assertEqual(len(pictures), 1)
        self.assertTrue(pictures[0].startswith(b"\x89PNG"))
        self.assertGreater(len(pictures[0]), 5000)
        tables = [entry["text/html"] for entry in data if "text/html" in entry]
        self.assertEqual(len(tables), 2)
        self.assertIn("<td style=\"text-align: left\">frame</td>", tables[0])
        self.assertIn("Its duration in nanoseconds", data[0]["text/plain"])

    def test_the_examples_run(self):
        shutil.copy(EVENTS, "demo.pftrace")
        os.makedirs("traces", exist_ok=True)
        for copy in ("a.pftrace", "b.pftrace", "traces/a.pftrace"):
            shutil.copy(EVENTS, copy)
        make_lake()
        for page in ("docs/how-to/query-from-python.md", "query/python/README.md"):
            text = (ROOT / page).read_text()
            blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            self.assertTrue(blocks, page)
            names = {"__name__": "example"}
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                # Nobody serves http://host.
                warnings.simplefilter("error")
                for block in blocks:
                    exec(compile(block, page, "exec"), names)
            self.assertIn("frame", printed.getvalue())
        # The comments of the page are true.
        with self.assertRaises(esatto.Error) as caught:
            names["trace"].sql("select nmae from slice")
        error = caught.exception
        line = f"print(error.line, error.column, error.help) # {error.line} {error.column} {error.help}\n"
        self.assertIn(line, (ROOT / "docs/how-to/query-from-python.md").read_text())

    def test_the_page_lists_all_methods(self):
        text = (ROOT / "docs/how-to/query-from-python.md").read_text()
        own = [name for kind in (esatto.Result, esatto.Session) for name in vars(kind) if not name.startswith("_")]
        own += [name for name in vars(esatto) if not name.startswith("_") and name not in ("esatto", "Column")]
        # Described with its table, and by the types of others.
        own = set(own) - {"columns", "close", "Result", "RowIterator", "Schema", "Session", "Column"}
        self.assertEqual({name for name in own if name not in text}, set())

    def test_help_explains_the_module(self):
        text = pydoc.plain(pydoc.render_doc(esatto))
        for part in (
            "SQL over Perfetto traces.",
            'trace = esatto.open("demo.pftrace")',
            "open(*sources, broken=None, trace_columns=False, memory_limit=None, threads=None)",
            "sql(self, /, sql, parameters=None)",
            "Returns a pandas.DataFrame.",
            "A trace is damaged",
        ):
            self.assertIn(part, text)
        for kind in (esatto.Session, esatto.Result, esatto.Schema, esatto.Column, esatto.Error):
            self.assertTrue(kind.__doc__)
            self.assertEqual(kind.__module__, "esatto")
        for name, item in [*vars(esatto.Session).items(), *vars(esatto.Result).items()]:
            if not name.startswith("_"):
                self.assertTrue(item.__doc__, name)
        for function in (esatto.open, esatto.open_lake):
            self.assertTrue(function.__doc__)
        self.assertRegex(esatto.__version__, r"^\d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
