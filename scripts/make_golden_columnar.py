#!/usr/bin/env python3
"""Writes tests/golden/columnar/: rows of values of many types as a Parquet file, an Arrow file and an Arrow stream, with
these rows as JSON Lines; many rows in few bytes; and folders as those of datasets' save_to_disk, with texts and with blocks of ids.

Needs scripts/golden-requirements.txt. The results are committed.
"""

import datetime
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "tests/golden/columnar"
TEXTS = ["a film", 'two "quotes"\nand a line\tend\\', "", None, "caf\u00e9 \u4e2d\u6587 \U0001f600 \x01"]


def table():
    rows = len(TEXTS)
    return pa.table({
        "text": pa.array(TEXTS, pa.string()),
        "label": pa.array([1, None, -3, 2**62, 0], pa.int64()),
        "small": pa.array(range(rows), pa.uint8()),
        "score": pa.array([0.5, -1.25, 1e300, float("nan"), 3.0], pa.float64()),
        "right": pa.array([True, False, None, True, False], pa.bool_()),
        "kind": pa.array(["new", "old", "new", None, "old"]).dictionary_encode(),
        "large": pa.array(["x", "y", None, "z", ""], pa.large_string()),
        "bytes": pa.array([b"a", b"b\"", b"", None, b"c"], pa.binary()),
        "tokens": pa.array([["a", "film"], [], None, ["x"], ["y", None]], pa.list_(pa.string())),
        "answers": pa.array([{"text": ["a"], "start": [0]}, None, {"text": [], "start": []}, {"text": ["b", "c"], "start": [1, 2]},
                             {"text": None, "start": [3]}], pa.struct({"text": pa.list_(pa.string()), "start": pa.list_(pa.int32())})),
        "time": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5)] * rows, pa.timestamp("ms")),
        "nothing": pa.nulls(rows),
    })


def as_json(value):
    if isinstance(value, float):
        return None if value != value else int(value) if value == int(value) and abs(value) < 1e15 else value
    if isinstance(value, bytes):
        return value.decode()
    return f"{value:%Y-%m-%d %H:%M:%S.000}" if isinstance(value, datetime.datetime) else value


def write_stream(path, values):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, values.schema) as stream:
        stream.write_table(values, max_chunksize=2)


def save(folder, tables):
    folder.mkdir(exist_ok=True)
    names = [f"data-{i:05}-of-{len(tables):05}.arrow" for i in range(len(tables))]
    for name, values in zip(names, tables):
        write_stream(folder / name, values)
    features = {name: {"dtype": "string", "_type": "Value"} if pa.types.is_string(kind) else
                {"feature": {"dtype": str(kind.value_type), "_type": "Value"}, "_type": "List"}
                for name, kind in zip(tables[0].schema.names, tables[0].schema.types)}
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names], "_split": "train"}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = table()
    (FOLDER / "rows.jsonl").write_text("".join(
        json.dumps({key: as_json(value) for key, value in row.items()}, ensure_ascii=False, separators=(",", ":")) + "\n"
        for row in rows.to_pylist()))
    pq.write_table(rows, FOLDER / "rows.parquet", row_group_size=2, compression="zstd")
    write_stream(FOLDER / "rows.arrow", rows)
    with pa.OSFile(str(FOLDER / "rows.feather"), "wb") as file, pa.ipc.new_file(file, rows.schema) as stream:
        stream.write_table(rows, max_chunksize=2)
    many = pa.table({"number": range(20000), "text": [f"text {i % 7} " + "of several words " * 4 for i in range(20000)]})
    pq.write_table(many, FOLDER / "many.parquet", row_group_size=3000, compression="zstd", compression_level=19)
    save(FOLDER / "saved", [pa.table({"text": [f"text {i}", "a film"]}) for i in range(2)])
    # As tokenizers write them in Python: masks of int8, labels that are the ids.
    blocks = [[[(block * 8 + i) % 400 + 4 for i in range(8)] for block in range(first, first + 3)] for first in (0, 3)]
    save(FOLDER / "blocks", [pa.table({
        "input_ids": pa.array(ids, pa.list_(pa.int32())),
        "attention_mask": pa.array([[1] * 8] * 3, pa.list_(pa.int8())),
        "labels": pa.array(ids, pa.list_(pa.int64()))}) for ids in blocks])


if __name__ == "__main__":
    main()
