"""Ctrl-C ends a query, and other threads run while it does."""

import signal
import subprocess
import sys
import threading
import unittest

import esatto
from common import EVENTS

# It never ends.
ENDLESS = "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t"

PROGRAM = """
import threading, time
# Their import takes longer than the test waits.
import pandas, polars, pyarrow
import esatto

session = esatto.open({trace!r})
session.sql("select count(*) from slice").fetchall()

def read(result):
    {read}

def stream(reader, result):
    # A package that reads Arrow's C stream has an exception of its own. Python's comes after it.
    try:
        reader(result)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        assert "interrupted" in str(error), repr(error)
        while True:
            time.sleep(0.01)

# Python runs on while the query does, and tells the test.
result = session.sql({sql!r})
try:
    threading.Timer(0.3, lambda: print("running", flush=True)).start()
    read(result)
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("not interrupted", flush=True)
# The session works on, and the process ends although a thread may still compute.
print(session.sql("select count(*) from thread").fetchall(), flush=True)
"""


class Interrupts(unittest.TestCase):
    def interrupt(self, read):
        program = PROGRAM.format(trace=str(EVENTS), sql=ENDLESS, read=read)
        child = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            self.assertEqual(child.stdout.readline(), "running\n", child.poll() and child.stderr.read())
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.stdout.readline(), "interrupted\n")
            self.assertEqual(child.stdout.readline(), "[(12,)]\n")
            self.assertEqual((child.wait(), child.stderr.read()), (0, ""))
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
            child.stderr.close()

    def test_ctrl_c_ends_every_way_to_read(self):
        for read in (
            "result.fetchall()",
            "next(iter(result))",
            "repr(result)",
            "result.to_arrow()",
            "result.to_pandas()",
            "result.to_polars()",
            "result.to_reader().read_all()",
            "stream(pyarrow.table, result)",
            "stream(polars.DataFrame, result)",
            "stream(pandas.DataFrame.from_arrow, result)",
        ):
            with self.subTest(read=read):
                self.interrupt(read)

    def test_other_threads_run_while_a_query_does(self):
        session = esatto.open(EVENTS)
        thread = threading.Thread(target=lambda: session.sql(ENDLESS).fetchall(), daemon=True)
        thread.start()
        # If the query held Python's lock, or the session's, nothing would happen here.
        for _ in range(5):
            self.assertEqual(session.sql("select count(*) from slice").fetchall(), [(1503,)])
        self.assertTrue(thread.is_alive())

    def test_handlers_of_signals_may_query(self):
        # The handler runs inside of a wait, and reads a stream by a package that gives Python's
        # lock away.
        program = f"""
import os, signal, threading
import pyarrow
import esatto

session = esatto.open({str(EVENTS)!r})

class Done(Exception):
    pass

def handler(*_):
    print(pyarrow.table(session.sql("select count(*) as n from slice")).to_pylist(), flush=True)
    raise Done

signal.signal(signal.SIGUSR1, handler)
try:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
    session.sql({ENDLESS!r}).fetchall()
except Done:
    print("done")
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[{'n': 1503}]\ndone\n", ""))


if __name__ == "__main__":
    unittest.main()
