"""Programs of users pass mypy; this one is checked and not run."""

import pathlib

import esatto

session = esatto.open("a.pftrace", pathlib.Path("b.pftrace"), ["c.pftrace"], broken="skip", memory_limit="8G")
with esatto.open_lake("lake", threads=2) as lake:
    count: int = lake.sql("select count(*) from slice where dur > $1", [1000]).fetchall()[0][0]
    names: list[str] = lake.tables()
result: esatto.Result = session.sql("select * from thread where tid = $tid", {"tid": 42})
for row in result:
    first: str = str(row[0])
rows: int = result.to_arrow().num_rows
columns: list[str] = [column.name for column in session.schema("slice")]
try:
    result.to_pandas()
    result.to_polars()
except esatto.Error as error:
    line: int | None = error.line
