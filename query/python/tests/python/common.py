"""Traces and programs for the tests."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(os.environ["ESATTO_ROOT"])
QUERY = os.environ["ESATTO_QUERY"]
TRACES = ROOT / "tests/traces"
EVENTS = TRACES / "official-v56-track-events.pftrace"
STATS = TRACES / "official-v56-process-and-sys-stats.pftrace"


def query(*args, status=0):
    """Runs esatto-query, and returns its two outputs."""
    done = subprocess.run([QUERY, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    return done.stdout, done.stderr


def rows_of_program(*args):
    """The rows of esatto-query, as dictionaries."""
    return json.loads(query(*args, "--format", "json")[0])


def make_lake(folder="lake"):
    """Exports all traces into a lake of the current folder."""
    if not os.path.exists(folder):
        query("export", *sorted(TRACES.glob("*.pftrace")), "--to", folder, "--quiet")
    return folder


def damaged(name="damaged.pftrace"):
    """A trace whose last part is missing."""
    whole = EVENTS.read_bytes()
    pathlib.Path(name).write_bytes(whole[: len(whole) // 2 + 1])
    return name
