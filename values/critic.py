"""A learned value of chunks: the observation is looked at once, and every candidate looks at it.

Axes: ``b`` observations, ``n`` candidates of each, ``k`` steps judged, ``d`` action dimensions,
``s`` state, ``e`` privileged entries, ``l`` text embedding, ``p`` scene tokens, ``c`` width.

A score is how good the state is plus how much better the chunk is than its siblings. The two parts
have heads of their own, since a value that is trained on both at once learns the state only.
"""

from collections.abc import Mapping
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from robot.nn.attention import BranchBlock
from robot.nn.encoders import SceneEncoder, StatePredictor
from robot.nn.normalise import Normaliser
from robot.nn.statistics import Statistics
from robot.types import Spec
from values.chunks import ChunkFeatures

Pixels = Mapping[str, UInt8[Tensor, "b h w 3"]]
Losses = dict[str, Float[Tensor, ""]]

WEIGHTS = {"rank": 1.0, "regress": 1.0, "state": 0.3, "privileged": 1.0}
"""Of choosing like the oracle, of scores among siblings, of states, and of finding objects."""


class Critic(nn.Module):
    """Scores candidates of an observation.

    Args:
        spec: Names of state and action.
        cameras: Height and width of each camera's image [px].
        statistics: Of ``state``, ``chunk`` (features), ``score``, ``spread`` (of siblings around
            their mean) and ``environment`` (may be missing).
        instructions: Embeddings for so many instructions are kept among the weights.
        steps: Leading steps of a chunk that are judged.
        per_token: Steps that share a token.
        tools: Whether chunks are told as ways of the tools, too.
        scene: Sizes, passed to ``SceneEncoder``.
        width, depth, heads: Size of the part that reads chunks.
        located: Whether chunks are compared with the object poses that the critic itself reads
            from the images; needs ``environment``.
        text: Size of an instruction's embedding.

    Attributes:
        weights: Of the parts of the loss.

    Raises:
        ValueError: If the steps are no multiple of ``per_token``, or objects are to be located
            without privileged data to learn it from.
    """

    table: Tensor

    def __init__(
        self,
        *,
        spec: Spec,
        cameras: Mapping[str, tuple[int, int]],
        statistics: Mapping[str, Statistics],
        instructions: int,
        steps: int = 8,
        per_token: int = 2,
        tools: bool = True,
        scene: Mapping[str, Any] | None = None,
        width: int = 128,
        depth: int = 2,
        heads: int = 4,
        located: bool = True,
        text: int = 384,
    ) -> None:
        super().__init__()
        if steps < 1 or steps % per_token:
            raise ValueError(f"{steps} steps are no multiple of {per_token} a token; choose others")
        if located and "environment" not in statistics:
            raise ValueError("objects cannot be located without privileged data; set located=False")
        self.steps, self.per_token = steps, per_token
        self.weights = dict(WEIGHTS)
        self.features = ChunkFeatures(spec, tools=tools)
        self.normalise_state = Normaliser(statistics["state"], floor=1e-2)
        self.normalise_chunk = Normaliser(statistics["chunk"], floor=1e-2)
        self.normalise_score = Normaliser(statistics["score"])
        self.normalise_spread = Normaliser(statistics["spread"])
        size = len(spec.state_names)
        self.scene = SceneEncoder(cameras=cameras, state=size, text=text, **(scene or {}))
        self.register_buffer("table", torch.zeros(instructions, text))
        self.privileged: StatePredictor | None = None
        entries = 0
        if "environment" in statistics:
            self.normalise_environment = Normaliser(statistics["environment"], floor=1e-2)
            out = int(statistics["environment"].mean.shape[-1])
            self.privileged = StatePredictor(
                width=self.scene.width, image_tokens=self.scene.image_tokens, out=out
            )
            entries = out if located else 0
        self.located = located
        tokens = steps // per_token
        self.context = nn.Linear(size + entries + text, width)
        self.embed = nn.Linear(self.features.size * per_token, width)
        self.mix = nn.Sequential(nn.GELU("tanh"), nn.Linear(width, width))
        self.places = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.judge = nn.Parameter(torch.randn(width) * 0.02)
        self.blocks = nn.ModuleList(
            BranchBlock(width=width, heads=heads, scene_width=self.scene.width, condition=width)
            for _ in range(depth)
        )
        self.advantage = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))
        pooled = 3 * self.scene.width
        self.state_value = nn.Sequential(
            nn.Linear(pooled, width), nn.GELU("tanh"), nn.Linear(width, 2)
        )

    def look(
        self, *, images: Pixels, state: Float[Tensor, "b s"], text: Float[Tensor, "b l"]
    ) -> Float[Tensor, "b p c"]:
        """Return the scene's tokens, shared by all candidates."""
        return self.scene(images=images, state=self.normalise_state(state), text=text)

    def value(self, scene: Float[Tensor, "b p c"]) -> Float[Tensor, "b 2"]:
        """Return the mean score of siblings (normalised) and the return, from here on."""
        count = self.scene.image_tokens
        pooled = torch.cat([scene[:, :count].mean(dim=1), scene[:, -2], scene[:, -1]], dim=-1)
        return self.state_value(pooled)

    def advantages(
        self,
        scene: Float[Tensor, "b p c"],
        *,
        state: Float[Tensor, "b s"],
        text: Float[Tensor, "b l"],
        targets: Float[Tensor, "b n k d"],
    ) -> Float[Tensor, "b n"]:
        """Return how good each chunk is beside its siblings, without unit."""
        b, n = targets.shape[:2]
        known = [self.normalise_state(state), text]
        if self.located and self.privileged is not None:
            known.append(self.privileged(scene))
        context = self.context(torch.cat(known, dim=-1))
        here = state.unsqueeze(1).expand(-1, n, -1)
        # Half precision would place tools to some millimetres only, and grasps need better.
        with torch.autocast(state.device.type, enabled=False):
            features = self.normalise_chunk(self.features(here, targets[:, :, : self.steps]))
        tokens = self.embed(rearrange(features, "b n (t a) f -> b n t (a f)", a=self.per_token))
        tokens = self.mix(tokens + rearrange(context, "b c -> b 1 1 c")) + self.places
        judge = self.judge.expand(b, n, 1, -1)
        tokens = torch.cat([judge, tokens], dim=2)
        condition = nn.functional.silu(context).unsqueeze(1)
        for block in self.blocks:
            if isinstance(block, BranchBlock):
                tokens = block(tokens, condition=condition, scene=block.remember(scene))
        return self.advantage(tokens.mean(dim=2)).squeeze(-1).float()

    def score(
        self,
        *,
        images: Pixels,
        state: Float[Tensor, "b s"],
        text: Float[Tensor, "b l"],
        targets: Float[Tensor, "b n k d"],
    ) -> Float[Tensor, "b n"]:
        """Return scores in the oracle's unit."""
        scene = self.look(images=images, state=state, text=text)
        base = self.normalise_score.invert(self.value(scene)[:, :1])
        better = self.advantages(scene, state=state, text=text, targets=targets)
        return base + better * self.normalise_spread.scale

    def forward(
        self,
        *,
        siblings: Mapping[str, Any],
        frames: Mapping[str, Any] | None = None,
    ) -> Losses:
        """Return ``loss`` and its parts.

        Args:
            siblings: ``images``, ``state``, ``instruction``, ``targets``, ``scores`` and
                ``environment`` (NaN where unknown) of decisions.
            frames: ``images``, ``state``, ``instruction``, ``environment`` and ``returns`` (NaN
                where unknown) of recorded moments.
        """
        text = self.table[siblings["instruction"]]
        state, scores = siblings["state"], siblings["scores"]
        scene = self.look(images=siblings["images"], state=state, text=text)
        found = self.advantages(scene, state=state, text=text, targets=siblings["targets"])
        wanted = standardised(scores, floor=self.normalise_spread.scale[0])
        mean = self.normalise_score(scores.mean(dim=1))
        parts: Losses = {
            "rank": listwise(found, wanted),
            "regress": nn.functional.smooth_l1_loss(
                found - found.mean(dim=1, keepdim=True), wanted
            ),
            "state": nn.functional.smooth_l1_loss(self.value(scene)[:, 0], mean),
        }
        errors = self._privileged(scene, siblings["environment"])
        if frames is not None:
            text = self.table[frames["instruction"]]
            scene = self.look(images=frames["images"], state=frames["state"], text=text)
            errors += self._privileged(scene, frames["environment"])
            known = frames["returns"].isfinite()
            apart = self.value(scene)[:, 1] - torch.where(known, frames["returns"], 0.0)
            parts["state"] = parts["state"] + (apart.square() * known).sum() / known.sum().clamp(
                min=1
            )
        if errors:
            parts["privileged"] = torch.stack(errors).mean()
        loss = torch.stack([self.weights[name] * part for name, part in parts.items()]).sum()
        return {"loss": loss, **{name: part.detach() for name, part in parts.items()}}

    def _privileged(self, scene: Tensor, environment: Float[Tensor, "b e"]) -> list[Tensor]:
        if self.privileged is None:
            return []
        return [self.privileged.error(scene, self.normalise_environment(environment))]


def standardised(
    scores: Float[Tensor, "b n"], *, floor: Float[Tensor, ""] | float
) -> Float[Tensor, "b n"]:
    """Return scores around their group's mean, in units of its spread.

    Where siblings differ less than usual (``floor``), what they differ by is mostly chance, and it
    is not blown up.
    """
    apart = scores - scores.mean(dim=1, keepdim=True)
    spread = apart.square().mean(dim=1, keepdim=True).sqrt()
    return apart / torch.maximum(spread, torch.as_tensor(floor, dtype=scores.dtype))


def listwise(
    found: Float[Tensor, "b n"], wanted: Float[Tensor, "b n"], *, temperature: float = 0.5
) -> Float[Tensor, ""]:
    """Return the cross-entropy of choosing by ``found`` where the oracle chooses by ``wanted``.

    What the oracle's own choice leaves open (its entropy) is taken off, so that 0 is perfect.

    Source:
        ListNet: Cao et al., "Learning to rank: from pairwise approach to listwise approach", 2007.
    """
    goal = nn.functional.log_softmax(wanted / temperature, dim=1)
    return nn.functional.kl_div(
        nn.functional.log_softmax(found / temperature, dim=1),
        goal,
        log_target=True,
        reduction="batchmean",
    )
