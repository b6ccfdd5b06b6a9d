"""SQL over Perfetto traces."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, SupportsFloat, SupportsIndex, TypeAlias, final

import pandas  # type: ignore
import polars
import pyarrow  # type: ignore
from typing_extensions import CapsuleType

__version__: str
__all__ = [
    "Column",
    "DamagedTraceWarning",
    "Error",
    "Result",
    "RowIterator",
    "Schema",
    "Session",
    "__version__",
    "open",
    "open_lake",
]

_Source: TypeAlias = str | PathLike[str]
_Value: TypeAlias = None | bool | str | SupportsIndex | SupportsFloat

class Error(Exception):
    """A trace or a lake cannot be opened, or a statement fails."""

    message: str
    help: str | None
    line: int | None
    column: int | None

class DamagedTraceWarning(UserWarning):
    """A trace is damaged: it has the rows that can be read, or none."""

def open(
    *sources: _Source | list[_Source],
    broken: Literal["keep", "skip"] | None = None,
    trace_columns: bool = False,
    memory_limit: int | str | None = None,
    threads: int | None = None,
) -> Session:
    """Opens traces or a lake."""

def open_lake(
    lake: _Source, *, memory_limit: int | str | None = None, threads: int | None = None
) -> Session:
    """Opens a lake: its folder or its URL."""

@final
class Session:
    """Traces or a lake, ready for statements."""

    def sql(
        self, sql: str, parameters: Sequence[_Value] | Mapping[str, _Value] | None = None
    ) -> Result: ...
    def tables(self) -> list[str]: ...
    def functions(self) -> list[str]: ...
    def schema(self, table: str) -> Schema: ...
    def damaged(self) -> dict[str, str]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(
        self,
        *_error: type[BaseException] | BaseException | TracebackType | None,
    ) -> None: ...

@final
class Result:
    """The rows of a statement."""

    @property
    def schema(self) -> Schema: ...
    @property
    def columns(self) -> list[str]: ...
    def collect(self) -> Result: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def __iter__(self) -> RowIterator: ...
    def to_arrow(self) -> pyarrow.Table: ...
    def arrow(self) -> pyarrow.Table: ...
    def to_reader(self) -> pyarrow.RecordBatchReader: ...
    def to_pandas(self, **options: Any) -> pandas.DataFrame: ...
    def df(self, **options: Any) -> pandas.DataFrame: ...
    def to_polars(self) -> polars.DataFrame: ...
    def pl(self) -> polars.DataFrame: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
    def _repr_html_(self) -> str: ...

@final
class RowIterator:
    """Iterator over the rows of a result, as tuples."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...
    def __next__(self) -> tuple[Any, ...]: ...

@final
class Column:
    """A column: its name, its Arrow type, if it may be null, and its meaning if it is known."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def doc(self) -> str | None: ...
    def __eq__(self, value: object, /) -> bool: ...

@final
class Schema:
    """Columns of a table or a result, in their order."""

    @property
    def names(self) -> list[str]: ...
    @property
    def doc(self) -> str | None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Column]: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __getitem__(self, key: int | str, /) -> Column: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...
