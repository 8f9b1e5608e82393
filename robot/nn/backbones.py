"""Frozen image models whose features join the scene.

Axes: ``b`` batch, ``n`` tokens of one image, ``f`` features.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from einops import rearrange
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from robot.errors import InfrastructureError


class Backbone(nn.Module):
    """A frozen image model of timm or transformers.

    Its weights are not part of a checkpoint: they are read again from where the name points.

    Args:
        source: ``timm`` or ``transformers``.
        name: Name of a timm model, or a hub name or local folder for transformers.
        pixels: Side to which images are resized [px].
        weights: File of weights for a timm model (safetensors, or a state dict whose tensors match
            by order and shape); random weights if None.
        offline: Whether transformers may only read what is already on this machine.

    Raises:
        InfrastructureError: If the model or its weights cannot be found.
    """

    def __init__(
        self,
        *,
        name: str,
        source: Literal["timm", "transformers"] = "timm",
        pixels: int = 224,
        weights: str | None = None,
        offline: bool = True,
    ) -> None:
        super().__init__()
        self.pixels, self.source = pixels, source
        model = _timm(name, weights) if source == "timm" else _transformers(name, offline=offline)
        # Kept outside the module tree: neither trained, nor stored, nor averaged.
        self._frozen = [model.eval().requires_grad_(False)]
        with torch.inference_mode():
            self.size = int(self._features(torch.zeros(1, 3, pixels, pixels)).shape[-1])

    @torch.no_grad()
    def forward(
        self, images: Mapping[str, UInt8[Tensor, "b h w 3"]]
    ) -> dict[str, Float[Tensor, "b n f"]]:
        """Return the tokens of each camera's image; pixels are scaled to -1 .. 1."""
        found: dict[str, Tensor] = {}
        for name, pixels in images.items():
            scaled = pixels.permute(0, 3, 1, 2).float() / 127.5 - 1.0
            resized = nn.functional.interpolate(
                scaled, size=(self.pixels, self.pixels), mode="bicubic", antialias=True
            )
            found[name] = self._features(resized)
        return found

    def _features(self, pixels: Float[Tensor, "b 3 y x"]) -> Float[Tensor, "b n f"]:
        model: Any = self._frozen[0]
        if self.source == "timm":
            maps = model.forward_features(pixels)
            if maps.ndim == 3:
                return maps
            return rearrange(nn.functional.adaptive_avg_pool2d(maps, 2), "b f y x -> b (y x) f")
        return model(pixel_values=pixels).last_hidden_state


def _timm(name: str, weights: str | None) -> nn.Module:
    import timm

    try:
        model: nn.Module = timm.create_model(name, pretrained=False, num_classes=0)
    except RuntimeError as error:
        raise InfrastructureError(f"timm has no image model {name!r}: {error}") from error
    if weights is None:
        return model
    stored = _read(weights)
    wanted = model.state_dict()
    matched = dict(zip(wanted, stored.values(), strict=False))
    if any(matched[k].shape != v.shape for k, v in wanted.items() if k in matched) or len(
        matched
    ) < len(wanted):
        raise InfrastructureError(f"the weights in {weights} do not match timm's {name} by order")
    model.load_state_dict(matched)
    return model


def _read(weights: str) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    try:
        return load_file(weights)
    except OSError as error:
        raise InfrastructureError(
            f"cannot read image weights {weights}: {error}; give a safetensors file"
        ) from error


def _transformers(name: str, *, offline: bool) -> nn.Module:
    from transformers import AutoModel

    try:
        model: Any = AutoModel.from_pretrained(name, local_files_only=offline)
    except (OSError, ValueError) as error:
        raise InfrastructureError(
            f"image model {name!r} is not on this machine: {error}; give a local folder, or "
            "offline=false to fetch it"
        ) from error
    return getattr(model, "vision_model", model)
