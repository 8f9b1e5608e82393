from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.expert import ActionExpert, packing_cost
from policies.flow import FlowMatching
from policies.horizons import (
    Consensus,
    Horizons,
    Prediction,
    active_mask,
    balance_loss,
    fuse,
    mixture_loss,
)

lengths_of = st.lists(st.integers(1, 9), min_size=1, max_size=5).map(lambda h: tuple(sorted(h)))
many = settings(max_examples=40, deadline=None)


def random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def expert(lengths: tuple[int, ...], **changes: Any) -> ActionExpert:
    torch.manual_seed(0)
    made = ActionExpert(
        actions=3,
        horizons=Horizons(lengths=lengths, **changes),
        scene_width=16,
        text=8,
        width=16,
        depth=2,
        heads=2,
    ).eval()
    with torch.no_grad():
        for name, p in made.named_parameters():
            if "modulate" in name:
                p.copy_(random(*p.shape, seed=7) * 0.3)
    return made


def asked(made: ActionExpert, actions: torch.Tensor, *, seed: int = 1) -> Prediction:
    b, m = actions.shape[:2]
    memory = made.remember(random(b, 5, 16, seed=seed), random(b, 8, seed=seed + 1))
    return made(actions, torch.full((b, m), 0.6), memory)


@many
@given(lengths=lengths_of, seed=st.integers(0, 1000))
def test_fusion_weights_sum_to_one_over_the_active_horizons(
    lengths: tuple[int, ...], seed: int
) -> None:
    active = active_mask(lengths)
    n, k = active.shape
    made = fuse(random(2, n, k, 3, seed=seed), random(2, n, k, seed=seed + 1) * 5, active)
    torch.testing.assert_close(made.weights.sum(dim=-2), torch.ones(2, k))
    assert (made.weights[:, ~active] == 0).all()


@pytest.mark.parametrize("packing", ["packed", "padded"])
def test_a_truncated_horizon_never_sees_later_tokens(packing: str) -> None:
    made = expert((2, 4, 8), packing=packing)
    actions = random(2, 3, 8, 3, seed=0)
    changed = actions.clone()
    changed[:, :, 4:] += 10.0
    before, after = asked(made, actions), asked(made, changed)
    torch.testing.assert_close(before.branches[:, :, 0, :2], after.branches[:, :, 0, :2])
    torch.testing.assert_close(before.branches[:, :, 1, :4], after.branches[:, :, 1, :4])
    assert (before.branches[:, :, 2, :4] - after.branches[:, :, 2, :4]).abs().max() > 1e-3


def test_within_a_horizon_early_steps_see_later_ones() -> None:
    made = expert((2, 8))
    actions = random(1, 1, 8, 3, seed=0)
    changed = actions.clone()
    changed[..., 7, :] += 10.0
    apart = asked(made, actions).branches - asked(made, changed).branches
    assert apart[0, 0, 1, 0].abs().max() > 1e-4


@many
@given(halves=st.lists(st.integers(1, 5), min_size=2, max_size=4), seed=st.integers(0, 1000))
def test_packed_and_padded_branches_say_the_same(halves: list[int], seed: int) -> None:
    lengths = tuple(2 * h for h in halves)
    packed, padded = expert(lengths, packing="packed"), expert(lengths, packing="padded")
    padded.load_state_dict(packed.state_dict())
    actions = random(2, 2, max(lengths), 3, seed=seed)
    one, other = asked(packed, actions), asked(padded, actions)
    torch.testing.assert_close(one.fused, other.fused, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(one.weights, other.weights, atol=1e-5, rtol=1e-4)


def test_auto_packs_when_that_costs_less_and_pads_when_not() -> None:
    for lengths in ((4, 8, 12, 16), tuple(range(2, 61, 2))):
        tokens = tuple(h // 2 for h in lengths)
        packed, padded = packing_cost(tokens, width=16, ratio=2.0)
        assert expert(lengths).packed == (packed < padded)
    assert expert((4, 8, 12, 16)).packed
    assert not expert((14, 16) * 20).packed


@pytest.mark.parametrize("packing", ["packed", "padded"])
def test_a_member_of_a_batch_gets_what_it_gets_alone(packing: str) -> None:
    made = expert((2, 4, 8), packing=packing)
    actions = random(3, 4, 8, 3, seed=0)
    memory = made.remember(random(3, 5, 16, seed=1), random(3, 8, seed=2))
    time = torch.rand(3, 4)
    whole = made(actions, time, memory)
    alone = made.remember(random(3, 5, 16, seed=1)[1:2], random(3, 8, seed=2)[1:2])
    part = made(actions[1:2, 2:3], time[1:2, 2:3], alone)
    torch.testing.assert_close(whole.branches[1, 2], part.branches[0, 0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(whole.weights[1, 2], part.weights[0, 0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(whole.fused[1, 2], part.fused[0, 0], atol=1e-5, rtol=1e-4)


def test_one_shared_time_is_that_time_for_every_candidate() -> None:
    made = expert((4, 8), packing="padded")
    actions = random(2, 3, 8, 3, seed=0)
    memory = made.remember(random(2, 5, 16, seed=1), random(2, 8, seed=2))
    shared = made(actions, torch.full((1, 1), 0.3), memory)
    each = made(actions, torch.full((2, 3), 0.3), memory)
    torch.testing.assert_close(shared.fused, each.fused, atol=1e-5, rtol=1e-4)


def slow_commit(apart: np.ndarray, lengths: tuple[int, ...], *, n: int, m: int, r: float) -> int:
    """One sample at a time, as the formulas are written."""
    longest = max(lengths)
    limit = apart[: min(n, longest)].mean() * r
    committed = min(n, longest)
    for k in range(min(n, longest), longest):
        active = sum(1 for h in lengths if k < h)
        if active <= m:
            break
        if apart[k] < limit:
            committed += 1
        else:
            break
    return committed


@many
@given(
    lengths=lengths_of,
    n=st.integers(1, 10),
    m=st.integers(0, 4),
    r=st.floats(0.5, 2.0),
    seed=st.integers(0, 10_000),
)
def test_dynamic_commit_equals_the_slow_reference(
    lengths: tuple[int, ...], n: int, m: int, r: float, seed: int
) -> None:
    apart = np.random.default_rng(seed).uniform(0, 1, size=(3, 2, max(lengths)))
    found = Consensus(least=n, active=m, ratio=r).commit(
        torch.from_numpy(apart), active_mask(lengths)
    )
    for i in range(3):
        for j in range(2):
            expected = slow_commit(apart[i, j], lengths, n=n, m=m, r=r)
            assert found[i, j] == expected


@many
@given(lengths=lengths_of, seed=st.integers(0, 1000))
def test_disagreement_is_the_weighted_distance_to_the_fusion(
    lengths: tuple[int, ...], seed: int
) -> None:
    active = active_mask(lengths)
    n, k = active.shape
    made = fuse(random(n, k, 2, seed=seed), random(n, k, seed=seed + 1), active)
    for step in range(k):
        expected = sum(
            float(made.weights[h, step] * (made.branches[h, step] - made.fused[step]).abs().sum())
            for h in range(n)
        )
        assert float(made.disagreement()[step]) == pytest.approx(expected, abs=1e-5)


@many
@given(lengths=lengths_of, seed=st.integers(0, 1000))
def test_loss_is_the_fused_error_plus_the_sum_over_horizons(
    lengths: tuple[int, ...], seed: int
) -> None:
    active = active_mask(lengths)
    n, k = active.shape
    prediction = fuse(random(4, n, k, 2, seed=seed), random(4, n, k, seed=seed + 1), active)
    errors, fused = random(4, n, k, seed=seed + 2) ** 2, random(4, k, seed=seed + 3) ** 2
    horizons = Horizons(lengths=lengths, individual=0.5, balance=0.25)
    parts = mixture_loss(
        prediction, errors, fused, valid=torch.ones(4, k, dtype=torch.bool), horizons=horizons
    )
    expected = float(fused.mean())
    if n > 1:
        expected += 0.5 * sum(float(errors[:, i, :h].mean()) for i, h in enumerate(lengths))
        expected += 0.25 * float(balance_loss(prediction.weights, lengths))
        expected /= 1 + 0.5 * n
    assert float(parts["loss"]) == pytest.approx(expected, rel=1e-4)


def test_steps_past_the_end_of_an_episode_do_not_count() -> None:
    active = active_mask((2, 4))
    prediction = fuse(random(2, 2, 4, 2, seed=0), random(2, 2, 4, seed=1), active)
    valid = torch.tensor([[True, True, False, False], [True, True, True, True]])
    errors, fused = torch.ones(2, 2, 4), torch.ones(2, 4)
    horizons = Horizons(lengths=(2, 4), balance=0.0)
    before = mixture_loss(prediction, errors, fused, valid=valid, horizons=horizons)["loss"]
    errors[0, :, 2:], fused[0, 2:] = 100.0, 100.0
    after = mixture_loss(prediction, errors, fused, valid=valid, horizons=horizons)["loss"]
    assert float(before) == float(after) == pytest.approx(1.0)


def test_balance_loss_is_zero_for_an_even_gate_and_grows_with_preference() -> None:
    lengths = (2, 4, 6)
    active = active_mask(lengths)
    even = fuse(torch.zeros(2, 3, 6, 1), torch.zeros(2, 3, 6), active).weights
    tilted = fuse(
        torch.zeros(2, 3, 6, 1), torch.tensor([0.0, 1.0, 2.0]).view(1, 3, 1).expand(2, 3, 6), active
    ).weights
    assert float(balance_loss(even, lengths)) == pytest.approx(0.0, abs=1e-9)
    by_hand = []
    for left, right in pairwise((0, *lengths)):
        rows = [i for i, h in enumerate(lengths) if h >= right]
        if len(rows) > 1:
            means = tilted[:, rows, left:right].mean(dim=(0, 2))
            by_hand.append(float(means.var() / means.mean() ** 2))
    assert float(balance_loss(tilted, lengths)) == pytest.approx(np.mean(by_hand), rel=1e-5)


def test_gate_noise_is_for_training_only() -> None:
    made = expert((2, 8))
    actions = random(1, 1, 8, 3, seed=0)
    torch.testing.assert_close(asked(made, actions).weights, asked(made, actions).weights)
    made.train()
    assert (asked(made, actions).weights - asked(made, actions).weights).abs().max() > 1e-4


def test_mean_fusion_and_a_single_horizon_have_no_gate() -> None:
    assert expert((2, 8), fusion="mean").gate is None
    assert expert((8,)).gate is None
    even = asked(expert((2, 8), fusion="mean"), random(1, 1, 8, 3, seed=0))
    torch.testing.assert_close(even.weights[0, 0, :, :2], torch.full((2, 2), 0.5))


def test_identical_horizons_agree_completely() -> None:
    made = expert((8, 8, 8))
    said = asked(made, random(1, 2, 8, 3, seed=0))
    assert float(said.disagreement().detach().max()) < 1e-5


def test_a_horizon_that_cuts_a_token_in_two_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[3\].*2 steps a token"):
        expert((3, 8))


def test_flow_loss_goes_down_and_samples_hit_the_target() -> None:
    torch.manual_seed(0)
    made = ActionExpert(
        actions=2,
        horizons=Horizons(lengths=(2, 4)),
        scene_width=4,
        text=4,
        width=32,
        depth=1,
        heads=2,
    )
    flow, horizons = FlowMatching(steps=8), made.horizons
    optimizer = torch.optim.Adam(made.parameters(), lr=6e-3)
    generator = torch.Generator().manual_seed(1)
    losses: list[float] = []
    valid = torch.ones(64, 4, dtype=torch.bool)

    def remember(place: torch.Tensor) -> Any:
        return made.remember(place.unsqueeze(1), torch.zeros(len(place), 4))

    def target(place: torch.Tensor) -> torch.Tensor:
        return place[:, None, :2] * torch.tensor([0.25, 0.5, 0.75, 1.0]).view(1, 4, 1)

    for _ in range(150):
        place = torch.randn(64, 4, generator=generator)
        memory = remember(place)
        loss = flow.loss(
            lambda x, t, memory=memory: made(x, t, memory),
            target(place),
            valid,
            horizons=horizons,
            draws=4,
        )["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-20:]) < 0.25 * np.mean(losses[:5])
    made.eval()
    place = torch.randn(16, 4, generator=generator)
    with torch.inference_mode():
        memory = remember(place)
        drawn = flow.sample(lambda x, t: made(x, t, memory), torch.randn(16, 3, 4, 2))
    apart = (drawn.actions - target(place).unsqueeze(1)).abs().mean()
    assert float(apart) < 0.2
