"""The parquet tables of a store, as bytes.

Axes: ``t`` rows of an episode, ``c`` entries of a column.
"""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Shaped

from robot.episodes import layout
from robot.episodes.distribution import Stats


def to_bytes(table: pa.Table) -> bytes:
    """Return ``table`` as a parquet file."""
    buffer = io.BytesIO()
    # Few rows and many columns: a dictionary for each would cost more than it saves.
    words = [field.name for field in table.schema if pa.types.is_string(field.type)]
    # pyarrow's annotations know no list of columns here.
    pq.write_table(table, buffer, compression="snappy", use_dictionary=cast("bool", words))
    return buffer.getvalue()


def rows_table(
    columns: Mapping[str, Shaped[np.ndarray, "t c"]],
    *,
    described: Mapping[str, layout.Feature],
    subtask: Sequence[str],
) -> pa.Table:
    """Return the rows of one episode in the order of ``described``."""
    found: dict[str, pa.Array] = {}
    for name, feature in described.items():
        if name == layout.SUBTASK:
            found[name] = pa.array(list(subtask), pa.string())
        elif feature["dtype"] != "video":
            rows = np.ascontiguousarray(columns[name])
            flat = pa.array(rows.reshape(-1))
            width = int(feature["shape"][0])
            # LeRobot reads a column of shape (1,) as plain numbers.
            found[name] = flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
    return pa.table(found)


def names_table(names: Sequence[str], *, kind: str) -> pa.Table:
    """Return texts and their numbers, ``kind`` being ``task`` or ``subtask``.

    The text is stored as pandas stores an index, since LeRobot looks it up there.
    """
    number, text = f"{kind}_index", kind
    pandas = {
        "index_columns": [text],
        "column_indexes": [],
        "columns": [
            _pandas_column(number, "int64", "int64"),
            _pandas_column(text, "unicode", "object"),
        ],
        "pandas_version": "2.0.0",
    }
    table = pa.table(
        {number: pa.array(range(len(names)), pa.int64()), text: pa.array(list(names), pa.string())}
    )
    return table.replace_schema_metadata({"pandas": json.dumps(pandas)})


def _pandas_column(name: str, kind: str, stored: str) -> dict[str, Any]:
    return {
        "name": name,
        "field_name": name,
        "pandas_type": kind,
        "numpy_type": stored,
        "metadata": None,
    }


def facts_row(
    facts: Mapping[str, Any],
    stats: Mapping[str, Stats],
    *,
    index: int,
    length: int,
    first: int,
    cameras: Sequence[str],
    rate: int,
) -> dict[str, Any]:
    """Return what is known of episode ``index``, whose rows start at ``first`` of the store."""
    chunk, file = divmod(index, layout.FILES_PER_CHUNK)
    meta_chunk, meta_file = divmod(index // layout.EPISODES_PER_META_FILE, layout.FILES_PER_CHUNK)
    row: dict[str, Any] = {
        "episode_index": index,
        "tasks": [facts["instruction"]],
        "length": length,
        "data/chunk_index": chunk,
        "data/file_index": file,
        "dataset_from_index": first,
        "dataset_to_index": first + length,
        "meta/episodes/chunk_index": meta_chunk,
        "meta/episodes/file_index": meta_file,
    }
    for camera in cameras:
        name = f"videos/{layout.IMAGE}{camera}"
        row |= {
            f"{name}/chunk_index": chunk,
            f"{name}/file_index": file,
            f"{name}/from_timestamp": 0.0,
            f"{name}/to_timestamp": length / rate,
        }
    row |= {name: value for name, value in facts.items() if name != "instruction"}
    for column, found in stats.items():
        row |= {f"stats/{column}/{name}": value for name, value in found.items()}
    return row


def facts_table(row: Mapping[str, Any]) -> pa.Table:
    """Return the facts about one episode; every episode of a store gets the same schema."""
    schema = pa.schema([(name, _arrow_type(value)) for name, value in row.items()])
    return pa.Table.from_pylist([dict(row)], schema=schema)


def _arrow_type(value: Any) -> pa.DataType:
    if isinstance(value, list):
        return pa.list_(_arrow_type(value[0])) if value else pa.list_(pa.string())
    # The order matters: a bool is an int.
    kinds = ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64()), (str, pa.string()))
    return next(arrow for kind, arrow in kinds if isinstance(value, kind))
