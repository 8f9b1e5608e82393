import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from robot.checkpoint import checkpoints_near, find_checkpoint, read_spec
from robot.errors import CheckpointError, UnknownName
from robot.nn.checkpoint import load_weights, read_config, read_weights, save_checkpoint
from robot.types import Spec

SPEC = Spec(
    robot="Toy",
    control="joint_position",
    rate=10.0,
    state_names=("a",),
    state_units=("rad",),
    action_names=("a",),
    action_units=("rad",),
    action_low=(-1.0,),
    action_high=(1.0,),
)


def saved(folder: Path, module: nn.Module, **changes: object) -> Path:
    return save_checkpoint(
        folder,
        kind="toy.Toy",
        arguments={"width": 3},
        weights=module.state_dict(),
        spec=SPEC,
        statistics={},
        **changes,  # pyright: ignore
    )


def test_weights_come_back_as_they_were(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    folder = saved(tmp_path / "c", first)
    load_weights(second, read_weights(folder / "model.safetensors"), where="c")
    assert torch.equal(first.weight, second.weight)
    assert read_config(folder)["arguments"] == {"width": 3}
    assert read_spec(folder) == SPEC


def test_saving_again_replaces_the_old_checkpoint_whole(tmp_path: Path) -> None:
    saved(tmp_path / "c", nn.Linear(3, 2))
    later = nn.Linear(3, 2)
    saved(tmp_path / "c", later, precision="float16")
    found = read_weights(tmp_path / "c" / "model.safetensors")
    torch.testing.assert_close(found["weight"], later.weight.detach(), atol=1e-3, rtol=1e-3)
    assert [f.name for f in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w.pop("bias"), "bias is missing"),
        (lambda w: w.update(extra=torch.zeros(1)), "extra is unexpected"),
        (lambda w: w.update(bias=torch.zeros(5)), r"bias has shape \(5,\), needed \(2,\)"),
        (lambda w: w.update(bias=torch.full((2,), float("nan"))), "bias is not finite"),
    ],
)
def test_weights_that_do_not_fit_are_named_and_nothing_is_loaded(change: object, said: str) -> None:
    module = nn.Linear(3, 2)
    before = module.weight.detach().clone()
    weights = {k: v.clone() + 1 for k, v in nn.Linear(3, 2).state_dict().items()}
    change(weights)  # pyright: ignore
    with pytest.raises(CheckpointError, match=said):
        load_weights(module, weights, where="c")
    assert torch.equal(module.weight, before)


def test_weights_that_overflow_half_precision_are_not_saved(tmp_path: Path) -> None:
    module = nn.Linear(3, 2)
    with torch.no_grad():
        module.weight.fill_(1e6)
    with pytest.raises(CheckpointError, match="weight is not finite in float16"):
        saved(tmp_path / "c", module, precision="float16")
    assert not (tmp_path / "c").exists()


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "c", nn.Linear(3, 2))
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match="copy the file again"):
        read_weights(path)


def test_an_incomplete_folder_names_what_it_lacks(tmp_path: Path) -> None:
    folder = saved(tmp_path / "c", nn.Linear(3, 2))
    (folder / "spec.json").unlink()
    with pytest.raises(CheckpointError, match=r"lacks spec\.json"):
        find_checkpoint(folder)


def test_a_path_without_a_checkpoint_offers_those_near(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="none near"):
        find_checkpoint(tmp_path / "nothing")
    folder = saved(tmp_path / "runs" / "lift" / "checkpoint", nn.Linear(3, 2))
    assert checkpoints_near(tmp_path / "runs" / "lfit") == [folder]
    with pytest.raises(UnknownName, match="lift/checkpoint"):
        find_checkpoint(tmp_path / "runs" / "lfit")


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "c", nn.Linear(3, 2))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(CheckpointError, match="format 99"):
        read_config(folder)


def test_reading_a_spec_imports_no_torch() -> None:
    code = "import sys, robot.checkpoint; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
