"""Attention over a scene, and over branches of tokens that share one cached scene.

Axes: ``b`` batch, ``p`` tokens of the scene (the prefix), ``g`` branches that share it (candidates,
horizons, noise draws), ``t`` tokens of one branch, ``w`` width. The keys and values of the prefix
are computed once for each ``b`` and never repeated over ``g``: the branches' queries are folded
into one axis instead.
"""

from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


class KeysValues(NamedTuple):
    """Keys and values of the scene for one layer."""

    keys: Float[Tensor, "b heads p e"]
    values: Float[Tensor, "b heads p e"]


def feed_forward(width: int, ratio: float) -> nn.Sequential:
    """Return two linear layers with a GELU between them."""
    hidden = int(width * ratio)
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU("tanh"), nn.Linear(hidden, width))


class SceneBlock(nn.Module):
    """One pre-norm transformer layer with full attention among the scene's tokens."""

    def __init__(self, *, width: int, heads: int, ratio: float = 2.0) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.norm_feed = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = feed_forward(width, ratio)

    def forward(self, tokens: Float[Tensor, "b p w"]) -> Float[Tensor, "b p w"]:
        """Return the tokens after one layer."""
        q, k, v = rearrange(
            self.queries_keys_values(self.norm_attention(tokens)),
            "b p (three h e) -> three b h p e",
            three=3,
            h=self.heads,
        )
        # Plain products: at some fifty tokens torch's fused attention is slower on a CPU, and its
        # backward pass in bfloat16 several times so.
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
        seen = scores.softmax(dim=-1) @ v
        tokens = tokens + self.out(rearrange(seen, "b h p e -> b p (h e)"))
        return tokens + self.feed(self.norm_feed(tokens))


class BranchBlock(nn.Module):
    """One layer of an expert: a branch's tokens see each other and the whole cached scene.

    A condition (time of the flow, instruction) shifts and scales each layer's input and gates its
    output; the gates start at zero, so that a fresh layer is the identity.

    Source:
        Conditioning as in Peebles and Xie, "Scalable diffusion models with transformers", 2023.
    """

    def __init__(
        self, *, width: int, heads: int, scene_width: int, ratio: float = 2.0, condition: int
    ) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width, elementwise_affine=False)
        self.norm_feed = nn.LayerNorm(width, elementwise_affine=False)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.scene_keys_values = nn.Linear(scene_width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed = feed_forward(width, ratio)
        self.modulate = nn.Linear(condition, 6 * width)
        nn.init.zeros_(self.modulate.weight)
        nn.init.zeros_(self.modulate.bias)

    def remember(self, scene: Float[Tensor, "b p w"]) -> KeysValues:
        """Return this layer's keys and values of the scene."""
        keys, values = rearrange(
            self.scene_keys_values(scene),
            "b p (two h e) -> two b h p e",
            two=2,
            h=self.heads,
        )
        return KeysValues(keys, values)

    def forward(
        self,
        tokens: Float[Tensor, "b g t w"],
        *,
        condition: Float[Tensor, "b #g c"],
        scene: KeysValues,
        bias: Float[Tensor, "#g 1 #t t"] | None = None,
    ) -> Float[Tensor, "b g t w"]:
        """Return the tokens after one layer.

        Args:
            tokens: Tokens of every branch.
            condition: What shifts and scales; one for all branches, or one each.
            scene: This layer's keys and values from ``remember``.
            bias: Added to the scores among a branch's tokens; minus infinity hides a key.
        """
        shift, scale, gate, shift_feed, scale_feed, gate_feed = (
            self.modulate(condition).unsqueeze(-2).chunk(6, dim=-1)
        )
        shown = torch.addcmul(shift, self.norm_attention(tokens), 1 + scale)
        tokens = torch.addcmul(tokens, gate, self.out(self._attend(shown, scene, bias)))
        shown = torch.addcmul(shift_feed, self.norm_feed(tokens), 1 + scale_feed)
        return torch.addcmul(tokens, gate_feed, self.feed(shown))

    def _attend(
        self,
        tokens: Float[Tensor, "b g t w"],
        scene: KeysValues,
        bias: Float[Tensor, "#g 1 #t t"] | None,
    ) -> Float[Tensor, "b g t w"]:
        b, g, t, w = tokens.shape
        q, k, v = rearrange(
            self.queries_keys_values(tokens),
            "b g t (three h e) -> three b h g t e",
            three=3,
            h=self.heads,
        )
        q = q * (w // self.heads) ** -0.5
        folded = q.reshape(b, self.heads, g * t, -1)
        to_scene = (folded @ scene.keys.transpose(-1, -2)).view(b, self.heads, g, t, -1)
        to_own = q @ k.transpose(-1, -2)
        if bias is not None:
            to_own = to_own + rearrange(bias, "g 1 s t -> 1 1 g s t")
        weights = torch.cat((to_scene, to_own), dim=-1).softmax(dim=-1)
        of_scene, of_own = weights.split([to_scene.shape[-1], t], dim=-1)
        seen = (of_scene.reshape(b, self.heads, g * t, -1) @ scene.values).view(
            b, self.heads, g, t, -1
        ) + of_own @ v
        return rearrange(seen, "b h g t e -> b g t (h e)")
