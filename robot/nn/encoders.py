"""From images, state and instruction to the tokens of a scene.

Axes: ``b`` batch, ``h w`` image, ``c`` channels, ``p`` tokens, ``s`` state, ``l`` text embedding,
``w`` width (in shapes that hold no image). Policies and values share these modules.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from einops import rearrange
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from robot.nn.attention import SceneBlock

Stem = Literal["conv", "patch"]


class PatchStem(nn.Module):
    """One linear map of each square patch: the cheapest way to tokens."""

    def __init__(self, *, width: int, patch: int = 8) -> None:
        super().__init__()
        self.stride = patch
        self.embed = nn.Conv2d(3, width, patch, patch)

    def forward(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b c y x"]:
        """Return a grid of features, ``stride`` times coarser than the image."""
        return self.embed(images)


class ConvStem(nn.Module):
    """Patches of four pixels, then three-by-three convolutions that halve the grid twice."""

    def __init__(self, *, width: int, first: int = 64) -> None:
        super().__init__()
        self.stride = 16
        self.embed = nn.Conv2d(3, first, 4, 4)
        self.halve = nn.Conv2d(first, width, 3, 2, 1)
        self.norm = nn.GroupNorm(8, width)
        self.halve_again = nn.Conv2d(width, width, 3, 2, 1)

    def forward(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b c y x"]:
        """Return a grid of features, ``stride`` times coarser than the image."""
        features = nn.functional.gelu(self.embed(images), approximate="tanh")
        features = nn.functional.gelu(self.norm(self.halve(features)), approximate="tanh")
        return self.halve_again(features)


def build_stem(stem: Stem, *, width: int, patch: int) -> PatchStem | ConvStem:
    """Return the image stem of that name.

    Raises:
        ValueError: If the name is unknown.
    """
    if stem == "conv":
        return ConvStem(width=width)
    if stem == "patch":
        return PatchStem(width=width, patch=patch)
    raise ValueError(f"no image stem is called {stem!r}; use 'conv' or 'patch'")


class SceneEncoder(nn.Module):
    """Tokens of all cameras, the state and the instruction, after full attention among them.

    Args:
        cameras: Height and width of each camera's image [px]; the order is the order of tokens.
        state: State dimensions.
        text: Size of the instruction's embedding.
        width: Size of a token.
        depth: Transformer layers; 0 leaves the tokens as they are embedded.
        heads: Attention heads.
        stem: ``conv`` or ``patch``.
        patch: Side of a patch [px] of the ``patch`` stem.
        ratio: Hidden size of the feed-forward layers, in widths.
        extra: Size of features from a frozen backbone, one vector a camera and token; 0 if none.

    Raises:
        ValueError: If an image cannot be cut into whole patches.
    """

    def __init__(
        self,
        *,
        cameras: Mapping[str, tuple[int, int]],
        state: int,
        text: int,
        width: int = 128,
        depth: int = 2,
        heads: int = 4,
        stem: Stem = "conv",
        patch: int = 8,
        ratio: float = 2.0,
        extra: int = 0,
    ) -> None:
        super().__init__()
        self.cameras = {name: (int(h), int(w)) for name, (h, w) in cameras.items()}
        self.stem = build_stem(stem, width=width, patch=patch)
        stride = self.stem.stride
        grids: dict[str, Tensor] = {}
        for name, (h, w) in self.cameras.items():
            if h % stride or w % stride:
                raise ValueError(
                    f"camera {name} of {h}x{w} px cannot be cut into patches of {stride} px; "
                    f"render it at a multiple of {stride} px"
                )
            grids[name] = torch.randn(h // stride * (w // stride), width) * 0.02
        self.places = nn.ParameterDict({name: nn.Parameter(grid) for name, grid in grids.items()})
        self.state = nn.Linear(state, width)
        self.text = nn.Linear(text, width)
        self.extra = nn.Linear(extra, width) if extra else None
        self.norm_images = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(
            SceneBlock(width=width, heads=heads, ratio=ratio) for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.width = width
        self.image_tokens = sum(len(grid) for grid in grids.values())

    def forward(
        self,
        *,
        images: Mapping[str, UInt8[Tensor, "b h w 3"]],
        state: Float[Tensor, "b s"],
        text: Float[Tensor, "b l"],
        features: Mapping[str, Float[Tensor, "b n f"]] | None = None,
    ) -> Float[Tensor, "b p w"]:
        """Return the scene's tokens: the cameras' first, then features, state and instruction.

        Args:
            images: Pixels of each camera, as they come from it.
            state: Normalised state.
            text: Embedding of the instruction.
            features: Tokens of a frozen backbone for each camera, if it was built with them.
        """
        tokens = [self.norm_images(self._look(images))]
        if self.extra is not None:
            if features is None:
                raise ValueError("this encoder was built with a backbone, but no features came")
            tokens += [self.extra(features[name]) for name in self.cameras]
        tokens += [self.state(state).unsqueeze(1), self.text(text).unsqueeze(1)]
        scene = torch.cat(tokens, dim=1)
        for block in self.blocks:
            scene = block(scene)
        return self.norm(scene)

    def _look(self, images: Mapping[str, UInt8[Tensor, "b h w 3"]]) -> Float[Tensor, "b p c"]:
        """Return the image tokens; cameras of one size go through the stem in one batch."""
        by_size: dict[tuple[int, int], list[str]] = {}
        for name, size in self.cameras.items():
            by_size.setdefault(size, []).append(name)
        found: dict[str, Tensor] = {}
        for names in by_size.values():
            stacked = torch.cat([images[name] for name in names])
            # NHWC memory seen as NCHW is the channels-last layout that convolutions like best.
            pixels = stacked.permute(0, 3, 1, 2).to(self.stem.embed.weight.dtype) / 127.5 - 1.0
            grid = rearrange(self.stem(pixels), "b c y x -> b (y x) c")
            for name, part in zip(names, grid.chunk(len(names)), strict=True):
                found[name] = part + self.places[name]
        return torch.cat([found[name] for name in self.cameras], dim=1)


class StatePredictor(nn.Module):
    """An auxiliary head that reads privileged quantities from the image tokens.

    It exists to teach the image stem where objects are; nothing needs it after training.
    """

    def __init__(self, *, width: int, image_tokens: int, out: int, squeeze: int = 16) -> None:
        super().__init__()
        self.image_tokens = image_tokens
        self.squeeze = nn.Linear(width, squeeze)
        self.read = nn.Sequential(
            nn.Linear(image_tokens * squeeze, width), nn.GELU("tanh"), nn.Linear(width, out)
        )

    def forward(self, scene: Float[Tensor, "b p w"]) -> Float[Tensor, "b e"]:
        """Return normalised privileged quantities."""
        squeezed = self.squeeze(scene[:, : self.image_tokens])
        return self.read(squeezed.flatten(1))

    def error(
        self, scene: Float[Tensor, "b p w"], target: Float[Tensor, "b e"]
    ) -> Float[Tensor, ""]:
        """Return the error over the entries of ``target`` that are known (finite).

        It is squared up to one standard deviation and absolute beyond: an object that tips over
        once would otherwise outweigh all that matters.
        """
        known = target.isfinite()
        error = nn.functional.smooth_l1_loss(
            self(scene), torch.where(known, target, 0.0), reduction="none"
        )
        return 2.0 * (error * known).sum() / known.sum().clamp(min=1)
