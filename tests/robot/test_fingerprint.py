"""A fingerprint names what a result depends on, and what differs between two results."""

import json
from pathlib import Path

import pytest

from robot.fingerprint import (
    compare_fingerprints,
    find_weights,
    flatten,
    hash_files,
    take_fingerprint,
)


def test_a_fingerprint_is_plain_json_with_versions_machine_and_configuration() -> None:
    taken = take_fingerprint(configuration={"policy": {"steps": 8}, "out": "x", "seeds": {}})
    assert json.loads(json.dumps(taken)) == taken
    assert taken["configuration"] == {"policy": {"steps": 8}}
    assert {"python", "numpy", "torch", "mujoco", "robosuite", "lerobot"} <= set(taken["versions"])
    assert {"system", "processor", "gl", "accelerator"} <= set(taken["machine"])


def test_weights_that_a_configuration_names_are_hashed_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"abc")
    (folder / "statistics.json").write_text("{}")
    taken = take_fingerprint(configuration={"policy": {"path": str(folder)}, "value": ["none"]})
    assert set(taken["weights"]) == {"policy.path"}
    hashes = taken["weights"]["policy.path"]
    assert set(hashes) == {"model.safetensors", "statistics.json"}
    assert hashes["model.safetensors"].startswith("ba7816bf")


def test_only_checkpoints_count_as_weights(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert find_weights({"out": str(tmp_path), "word": "lift", "long": "x" * 5000}) == {}


def test_missing_weights_are_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="check the path"):
        hash_files(tmp_path / "nowhere")


def test_differences_are_named_by_dotted_entry_with_short_hashes() -> None:
    a = {"weights": {"policy": {"m": "a" * 64}}, "configuration": {"n": 1, "l": [1, 2]}}
    b = {"weights": {"policy": {"m": "b" * 64}}, "configuration": {"n": 1, "l": [1, 3, 4]}}
    assert compare_fingerprints(a, b) == [
        "configuration.l.1: 2 against 3",
        "configuration.l.2: absent against 4",
        f"weights.policy.m: {'a' * 12} against {'b' * 12}",
    ]
    assert compare_fingerprints(a, a) == []
    assert compare_fingerprints(a, b, only=["weights"]) == compare_fingerprints(a, b)[2:]


def test_flatten_keeps_leaves_that_are_empty_or_none() -> None:
    assert flatten({"a": {}, "b": None, "c": {"d": []}}) == {"a": {}, "b": None, "c.d": []}
