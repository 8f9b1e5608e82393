"""The action expert: noisy actions of many branches in, predictions of all horizons out.

Axes: ``b`` observations, ``m`` candidates (or noise draws) that share one observation, ``n``
horizons, ``k`` steps, ``d`` action dimensions, ``t`` tokens, ``w`` width, ``p`` scene tokens.
Tokens of one branch attend to each other in both directions, and to the whole scene.
"""

import math
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from policies.horizons import Gate, Horizons, Prediction, active_mask, fuse
from robot.nn.attention import BranchBlock, KeysValues


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the expert keeps of one batch of observations: computed once, shared by all branches."""

    layers: tuple[KeysValues, ...]
    text: Float[Tensor, "b c"]


def packing_cost(lengths: tuple[int, ...], *, width: int, ratio: float) -> tuple[float, float]:
    """Return multiply-adds of one layer for packed and for padded branches.

    Args:
        lengths: Horizons [tokens].
        width: Size of a token.
        ratio: Hidden size of the feed-forward layers, in widths.
    """
    per_token = (4 + 2 * ratio) * width**2
    packed = sum(lengths)
    padded = len(lengths) * max(lengths)
    return (
        packed * per_token + 2 * packed**2 * width,
        padded * per_token + 2 * padded * max(lengths) * width,
    )


class ActionExpert(nn.Module):
    """A transformer over action tokens, conditioned on time and instruction.

    Args:
        actions: Action dimensions.
        horizons: Chunk lengths that are predicted together; one makes a plain expert.
        per_token: Steps that share a token; every horizon must be a multiple.
        scene_width: Size of the scene's tokens.
        text: Size of the instruction's embedding.
        width, depth, heads, ratio: Size of the transformer.

    Raises:
        ValueError: If a horizon is not a multiple of ``per_token``.
    """

    active: Tensor
    frequencies: Tensor
    gather: Tensor
    scatter: Tensor
    bias: Tensor

    def __init__(
        self,
        *,
        actions: int,
        horizons: Horizons,
        per_token: int = 2,
        scene_width: int = 128,
        text: int = 384,
        width: int = 128,
        depth: int = 4,
        heads: int = 4,
        ratio: float = 2.0,
    ) -> None:
        super().__init__()
        odd = [h for h in horizons.lengths if h % per_token]
        if odd:
            raise ValueError(
                f"horizons {odd} are not multiples of {per_token} steps a token; "
                "choose others or set per_token=1"
            )
        self.horizons = horizons
        self.per_token = per_token
        tokens = horizons.longest // per_token
        self.embed = nn.Linear(actions * per_token, width)
        self.places = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width))
        self.text = nn.Linear(text, width)
        self.blocks = nn.ModuleList(
            BranchBlock(
                width=width, heads=heads, scene_width=scene_width, ratio=ratio, condition=width
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, actions * per_token)
        several = len(horizons.lengths) > 1
        self.gate = (
            Gate(width=width, per_token=per_token, noisy=horizons.gate_noise)
            if several and horizons.fusion == "gate"
            else None
        )
        frequencies = torch.exp(torch.linspace(0.0, math.log(1000.0), 32))
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.register_buffer("active", active_mask(horizons.lengths), persistent=False)
        self._lay_out(tuple(h // per_token for h in horizons.lengths), width=width, ratio=ratio)

    def _lay_out(self, lengths: tuple[int, ...], *, width: int, ratio: float) -> None:
        """Choose packed or padded branches and prepare indices and masks."""
        packed, padded = packing_cost(lengths, width=width, ratio=ratio)
        wanted = self.horizons.packing
        self.packed = wanted == "packed" or (wanted == "auto" and packed < padded)
        longest = max(lengths)
        if self.packed:
            branch = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
            gather = torch.cat([torch.arange(h) for h in lengths])
            starts = torch.cumsum(torch.tensor([0, *lengths[:-1]]), dim=0)
            # Steps beyond a horizon read its first token: the gate gives them no weight.
            places = torch.arange(longest).expand(len(lengths), -1)
            inside = places < torch.tensor(lengths).unsqueeze(1)
            scatter = starts.unsqueeze(1) + torch.where(inside, places, 0)
            hidden = branch.unsqueeze(1) != branch.unsqueeze(0)
        else:
            gather = torch.arange(longest)
            scatter = torch.arange(len(lengths) * longest).view(len(lengths), longest)
            hidden = torch.arange(longest) >= torch.tensor(lengths).view(-1, 1, 1)
        bias = torch.zeros(hidden.shape).masked_fill(hidden, float("-inf"))
        self.register_buffer("gather", gather, persistent=False)
        self.register_buffer("scatter", scatter, persistent=False)
        self.register_buffer("bias", bias.view(-1, 1, *bias.shape[-2:]), persistent=False)

    def remember(self, scene: Float[Tensor, "b p w"], text: Float[Tensor, "b l"]) -> Memory:
        """Return every layer's keys and values of the scene, and the instruction's condition."""
        layers: list[KeysValues] = [block.remember(scene) for block in self._blocks()]
        return Memory(layers=tuple(layers), text=self.text(text))

    def _blocks(self) -> list[BranchBlock]:
        return [block for block in self.blocks if isinstance(block, BranchBlock)]

    def forward(
        self,
        actions: Float[Tensor, "b m k d"],
        time: Float[Tensor, "#b #m"],
        memory: Memory,
    ) -> Prediction:
        """Return the prediction of every horizon and their fusion.

        Args:
            actions: Noisy actions, normalised.
            time: Time of the flow in [0, 1]; one for all candidates, or one each.
            memory: From ``remember``.
        """
        b, m = actions.shape[:2]
        n = len(self.horizons.lengths)
        tokens = self.embed(rearrange(actions, "b m (t a) d -> b m t (a d)", a=self.per_token))
        tokens = tokens + self.places
        angles = time.unsqueeze(-1) * self.frequencies
        condition = self.time(torch.cat((angles.sin(), angles.cos()), dim=-1))
        condition = nn.functional.silu(condition + memory.text.unsqueeze(1))
        bias: Tensor | None = self.bias
        if n == 1:
            bias = None
        elif self.packed:
            tokens = tokens[:, :, self.gather]
        else:
            tokens = rearrange(
                tokens.unsqueeze(2).expand(-1, -1, n, -1, -1), "b m n t w -> b (m n) t w"
            )
            bias = self.bias.repeat(m, 1, 1, 1)
            if condition.shape[1] > 1:
                condition = condition.repeat_interleave(n, dim=1)
        for block, layer in zip(self._blocks(), memory.layers, strict=True):
            tokens = block(tokens, condition=condition, scene=layer, bias=bias)
        tokens = self.norm(tokens)
        return self._predict(tokens.reshape(b, m, -1, tokens.shape[-1]))

    def _predict(self, tokens: Float[Tensor, "b m t w"]) -> Prediction:
        branches = self._unfold(self.out(tokens))
        if self.gate is not None:
            return fuse(branches, self._unfold(self.gate(tokens)).squeeze(-1), self.active)
        return fuse(branches, branches.new_zeros(branches.shape[:-1]), self.active)

    def _unfold(self, flat: Float[Tensor, "b m t c"]) -> Float[Tensor, "b m n k d"]:
        """Return values of tokens as values of horizons and steps."""
        return rearrange(
            flat[:, :, self.scatter], "b m n t (a d) -> b m n (t a) d", a=self.per_token
        )
