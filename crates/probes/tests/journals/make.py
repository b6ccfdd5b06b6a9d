#!/usr/bin/env python3
"""Writes the journal files of this folder, and what journalctl reads from them.

Needs systemd-journal-remote and journalctl of systemd 254 or later, and zstd. Options: the commands
that start the two programs.

The files are mostly empty hash tables, so they are kept compressed. `entries` has what
`journalctl -o json --all` reads from each of the files, as far as the tests compare it.
"""

import json
import os
import subprocess
import sys

REMOTE, JOURNALCTL = sys.argv[1:3] if len(sys.argv) == 3 else ("systemd-journal-remote", "journalctl")
BOOT = "0123456789abcdef0123456789abcdef"
FIELDS = [
    "__SEQNUM", "__REALTIME_TIMESTAMP", "__MONOTONIC_TIMESTAMP", "_PID", "_TID", "_UID", "_GID", "PRIORITY",
    "SYSLOG_IDENTIFIER", "MESSAGE", "_COMM", "_EXE", "_SYSTEMD_UNIT", "_HOSTNAME", "_TRANSPORT",
]


def entries():
    """Yields entries as lists of fields and values."""
    common = [("_BOOT_ID", BOOT), ("_HOSTNAME", "sample"), ("_MACHINE_ID", BOOT)]
    for n in range(40):
        unit = f"unit{n % 3}.service"
        yield common + [
            ("PRIORITY", str(n % 8)), ("MESSAGE", f"message {n}"), ("SYSLOG_IDENTIFIER", f"program{n % 5}"),
            ("_PID", str(1000 + n)), ("_TID", str(2000 + n)), ("_UID", "33"), ("_GID", "34"), ("_COMM", "worker"),
            ("_EXE", f"/usr/bin/program{n % 5}"), ("_SYSTEMD_UNIT", unit), ("_TRANSPORT", "journal"),
        ]
    yield common + [("MESSAGE", "no priority")]
    yield common + [("PRIORITY", "6"), ("MESSAGE", "a long line; " * 400), ("_PID", "7")]
    yield common + [("PRIORITY", "6"), ("MESSAGE", "several\nlines\tand \x1b[31mcolours"), ("_PID", "not a number")]
    yield common + [("PRIORITY", "6"), ("MESSAGE", ""), ("_COMM", "no text")]
    yield common + [("PRIORITY", "6"), ("OBJECT", "x" * 700), ("MESSAGE", "after a large field of no interest")]
    yield common + [("PRIORITY", "5")] + [(f"FIELD_{n}", str(n)) for n in range(100)] + [("MESSAGE", "many fields")]
    yield common + [("PRIORITY", "6"), ("MESSAGE", "ä" * 33000), ("_COMM", "longer than the limit")]


def export():
    """Returns the entries in the journal export format."""
    out = bytearray()
    for n, fields in enumerate(entries()):
        out += f"__REALTIME_TIMESTAMP={1700000000000000 + n * 1000}\n".encode()
        out += f"__MONOTONIC_TIMESTAMP={5000000 + n * 1000}\n".encode()
        for name, value in fields:
            value = value.encode()
            if b"\n" in value:
                out += name.encode() + b"\n" + len(value).to_bytes(8, "little") + value + b"\n"
            else:
                out += name.encode() + b"=" + value + b"\n"
        out += b"\n"
    return bytes(out)


def record(entry):
    """Returns an entry of journalctl: fields `NAME=value`, each ended by the unit separator of ASCII, and the
    record separator."""
    out = b""
    for field in FIELDS:
        value = entry.get(field)
        if value is not None:
            # journalctl prints values that are no plain text as numbers of bytes.
            value = bytes(value) if isinstance(value, list) else value.encode()
            out += field.encode() + b"=" + value + b"\x1f"
    return out + b"\x1e"


def pack(path):
    """Replaces a file by a compressed one."""
    subprocess.run(["zstd", "-19", "--quiet", "--force", "--rm", path, "-o", path + ".zst"], check=True)


def main():
    printed = set()
    for compression in ["none", "xz", "lz4", "zstd"]:
        for layout in ["regular", "compact"]:
            name = f"{compression}-{layout}"
            path = os.path.abspath(f"{name}.journal")
            environment = dict(
                os.environ,
                SYSTEMD_JOURNAL_COMPRESS=compression.upper() if compression != "none" else "0",
                SYSTEMD_JOURNAL_COMPACT=str(int(layout == "compact")),
                # The oldest layout also has the oldest hashes.
                SYSTEMD_JOURNAL_KEYED_HASH=str(int(name != "xz-regular")),
            )
            compress = f"--compress={'no' if compression == 'none' else 'yes'}"
            command = REMOTE.split() + [compress, "-o", path, "-"]
            subprocess.run(command, input=export(), env=environment, check=True)
            read = JOURNALCTL.split() + ["--file", path, "-o", "json", "--all", "--output-fields", ",".join(FIELDS)]
            lines = subprocess.run(read, stdout=subprocess.PIPE, check=True).stdout.splitlines()
            printed.add(b"".join(record(json.loads(line)) for line in lines))
            pack(path)
    assert len(printed) == 1, "the files differ"
    with open("entries", "wb") as out:
        out.write(printed.pop())
    pack("entries")


main()
