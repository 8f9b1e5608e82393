"""Expert of the bins: lid off, trash out, hammer from hand to hand into the other bin.

Both arms work at once. What is done follows from where lid, trash and hammer are and from who
holds them. Lengths [m].
"""

import numpy as np
from jaxtyping import Float

from sim.experts.expert import Expert, Wish
from sim.experts.flaws import Bend, Flaw, Glimpse, Miss, Pause, Slip
from sim.experts.grasp import across, approach, far_end, stand
from sim.experts.handover import APART, DOWN, TAKING
from sim.tasks.handover import MEETING
from sim.tasks.hands import Hand
from sim.tasks.transport import FLOOR, RIM, Bins, bins, within

RIGHT_DOWN = np.diag([1.0, -1.0, -1.0])
"""``world_R_hand`` of the right hand that points down."""
ASIDE = np.array([-0.20, -0.45, 0.82])
"""Where the lid's handle is let go of: on the left arm's table [m]."""
OVER = RIM + 0.10
"""Of a hand above the middle of a bin into which it is about to go [m]."""
LOADED = RIM + 0.15
"""Of the hammer above the middle of a bin out of which it is lifted [m]."""
HIGH = RIM + 0.26
"""Of the right hand above the middle of the bin: the hammer hangs 0.2 down from it [m]."""
NOWHERE = 10.0
"""A distance at which no flaw begins [m]."""
THINGS = (("lid", "hammer"), ("trash", "hammer"))
"""What each hand grasps, in order."""


class TransportExpert(Expert):
    """Takes the lid off and hands over with the left arm; clears and delivers with the right."""

    def _draw(self) -> list[Flaw]:
        self._still: tuple[Wish, Wish] | None = None
        self._closed = [False, False]
        self._now = ["lid", "trash"]
        random = self.random
        side = int(random.integers(2))
        self._spoilt = THINGS[side][int(random.integers(2))]
        # The right hand comes slanting to the hammer; the trash is thicker than a handle.
        far = 0.032 if side == 0 else 0.050

        def beside() -> Float[np.ndarray, "3"]:
            """Return an offset away from the thing: fingers close on air."""
            return np.array([random.uniform(-0.008, 0.008), 0.0, -random.uniform(far, far + 0.01)])

        if self.quality == "hesitating":
            return [Pause(random) for _ in range(int(random.integers(1, 4)))]
        if self.quality == "retrying":
            return [Miss(beside, side)]
        if self.quality == "failing":
            if random.random() < 0.5:
                return [Miss(beside, side, again=1000)]
            return [Slip(float(random.uniform(0.5, 0.9)), (True, False), away=True)]
        return []

    def _wishes(self) -> tuple[Wish, Wish]:
        seen = bins(self.env)
        bend = self._bend(self._glimpse(seen))
        if bend.still:
            if self._still is None:
                left, right = (
                    stand(h, closed=c) for h, c in zip(seen.hands, self._closed, strict=True)
                )
                self._still = (left, right)
            return self._still[0].moved(bend.sway), self._still[1].moved(bend.sway)
        self._still = None
        self._label(seen)
        left, right = self._left(seen, bend), self._right(seen, bend)
        self._closed = [left.opening == 0.0, right.opening == 0.0]
        return left, right

    def _label(self, seen: Bins) -> None:
        """Set what each hand is about, and the step that comes next."""
        taken = seen.hammer.held(1)
        trash = not within(seen.trash, seen.waste) or seen.holds_trash(1)
        self._now = [
            "lid" if seen.covered or seen.holds_lid(0) else "hammer",
            "trash" if trash and not taken else "hammer",
        ]
        if self._now[0] == "lid":
            self.subtask = 0
        elif taken or within(seen.hammer.position, seen.target):
            self.subtask = 4
        elif trash:
            self.subtask = 1
        else:
            self.subtask = 3 if seen.hammer.held(0) else 2

    def _offset(self, side: int, bend: Bend) -> tuple[Float[np.ndarray, "3"], bool]:
        """Return by how much a hand misses, and whether it has to be open."""
        spoils = self._now[side] == self._spoilt or any(isinstance(f, Slip) for f in self._flaws)
        return (bend.offsets[side], bend.release[side]) if spoils else (np.zeros(3), False)

    def _left(self, seen: Bins, bend: Bend) -> Wish:
        hand, tool = seen.hands[0], seen.hammer
        if self._now[0] == "lid":
            return self._uncover(seen, bend)
        _, release = self._offset(0, bend)
        if tool.held(1):
            return self._leave(seen)
        if tool.held(0) and not release:
            goal = MEETING - np.array([0.0, APART, 0.0])
            rim = seen.start[2] + LOADED
            if within(hand.position, seen.start) and hand.position[2] < rim - 0.03:
                goal = np.array([*hand.position[:2], rim])
                return Wish(position=goal, rotation=hand.rotation, opening=0.0)
            return Wish(position=goal, rotation=DOWN, opening=0.0, lead=0.08)
        far = far_end(tool)
        if not within(tool.position, seen.start):
            return self._leave(seen)
        return self._into(seen, 0, tool.position - APART * far, across(far), seen.start, bend)

    def _uncover(self, seen: Bins, bend: Bend) -> Wish:
        """Return the wish that takes the lid by its handle and puts it on the table."""
        hand = seen.hands[0]
        offset, release = self._offset(0, bend)
        turn = across(seen.handle_side if seen.handle_side[1] > 0.0 else -seen.handle_side)
        if release or not seen.holds_lid(0):
            point = seen.handle + turn @ offset
            return approach(hand, point, turn, closed=self._closed[0], release=release)
        hold = hand.position - seen.handle
        way = ASIDE - seen.handle
        if float(np.linalg.norm(way[:2])) < 0.03:
            if way[2] > -0.012:
                return Wish(position=hand.position, rotation=DOWN, opening=1.0)
            return Wish(position=ASIDE + hold, rotation=DOWN, opening=0.0, lead=0.05)
        height = seen.start[2] + RIM + 0.10
        goal = np.array([*ASIDE[:2], height]) + hold
        if seen.handle[2] < height - 0.04 and seen.covered:
            goal[:2] = hand.position[:2]
        return Wish(position=goal, rotation=DOWN, opening=0.0, lead=0.07)

    def _right(self, seen: Bins, bend: Bend) -> Wish:
        hand, tool = seen.hands[1], seen.hammer
        if self._now[1] == "trash":
            return self._clear(seen, bend)
        offset, release = self._offset(1, bend)
        if within(tool.position, seen.target) and tool.position[2] < seen.target[2] + RIM:
            up = np.array([*hand.position[:2], max(hand.position[2], seen.target[2] + OVER)])
            lies = seen.delivered or not tool.held(1)
            if lies and hand.gap > tool.thick + 0.02:
                return Wish(position=up, rotation=hand.rotation, opening=1.0)
        if tool.held(1) and not release:
            return self._deliver(seen)
        if tool.held(0) and float(np.linalg.norm(MEETING - tool.position)) < 0.06:
            point = tool.position + APART * far_end(tool) + TAKING @ offset
            return approach(hand, point, TAKING, closed=self._closed[1], release=release)
        wait = MEETING + np.array([0.0, APART, 0.0]) - 0.15 * TAKING[:, 2]
        low = seen.waste[2] + OVER
        if hand.position[2] < low - 0.04 and hand.position[1] > seen.waste[1] - 0.2:
            wait = np.array([*hand.position[:2], low])
        return Wish(position=wait, rotation=TAKING, opening=1.0, lead=0.08)

    def _clear(self, seen: Bins, bend: Bend) -> Wish:
        """Return the wish that takes the trash to the bin for it and drops it there."""
        hand = seen.hands[1]
        _, release = self._offset(1, bend)
        if not seen.holds_trash(1) or release:
            side = seen.trash_turn[:2, 0]
            angle = float(np.arctan2(side[1], side[0]))
            angle -= np.pi / 2 * np.round(angle / (np.pi / 2))
            along = np.array([np.sin(angle), -np.cos(angle), 0.0])
            return self._into(seen, 1, seen.trash, across(along), seen.target, bend)
        high = seen.target[2] + OVER
        goal = np.array([*seen.waste[:2], high])
        if within(hand.position, seen.target) and hand.position[2] < high - 0.04:
            goal[:2] = hand.position[:2]
            return Wish(position=goal, rotation=hand.rotation, opening=0.0, lead=0.08)
        if float(np.linalg.norm(goal[:2] - hand.position[:2])) < 0.05:
            goal[2] = seen.waste[2] + RIM
            if hand.position[2] < goal[2] + 0.03:
                return Wish(position=hand.position, rotation=hand.rotation, opening=1.0)
        return Wish(position=goal, rotation=RIGHT_DOWN, opening=0.0, lead=0.08)

    def _deliver(self, seen: Bins) -> Wish:
        """Return the wish that brings the hammer into the target bin and lets go of it."""
        hand, tool = seen.hands[1], seen.hammer
        left = seen.hands[0]
        if left.gap < tool.thick + 0.02 and float(np.linalg.norm(tool.nearest(0))) < 0.05:
            return stand(hand, closed=True)
        across_bin = seen.target[:2] - tool.position[:2]
        goal = np.array([*(hand.position[:2] + across_bin), seen.target[2] + HIGH])
        if float(np.linalg.norm(across_bin)) < 0.03:
            if tool.height < 0.03 or seen.delivered:
                return Wish(position=hand.position, rotation=hand.rotation, opening=1.0)
            goal[2] = hand.position[2] - 0.05
        elif not within(tool.position, seen.target) and tool.height < RIM - FLOOR + 0.03:
            goal[:2] = hand.position[:2]
        return Wish(position=goal, rotation=RIGHT_DOWN, opening=0.0, lead=0.08)

    def _leave(self, seen: Bins) -> Wish:
        """Return the wish to open the left hand and draw it back and up."""
        hand, tool = seen.hands[0], seen.hammer
        near = float(np.linalg.norm(tool.nearest(0))) < 0.05
        clear = hand.gap > tool.thick + 0.02 or not near
        away = hand.position + (np.array([0.0, -0.03, 0.06]) if clear else 0.0)
        away[1] = max(away[1], seen.start[1] + 0.05)
        away[2] = min(away[2], MEETING[2] + 0.15)
        return Wish(position=away, rotation=hand.rotation, opening=1.0)

    def _into(
        self,
        seen: Bins,
        side: int,
        point: Float[np.ndarray, "3"],
        rotation: Float[np.ndarray, "3 3"],
        middle: Float[np.ndarray, "3"],
        bend: Bend,
    ) -> Wish:
        """Return the wish that grasps what lies in a bin: over its rim, then straight down."""
        hand: Hand = seen.hands[side]
        offset, release = self._offset(side, bend)
        top = float(middle[2]) + OVER
        aside = float(np.linalg.norm(point[:2] - hand.position[:2]))
        if aside > 0.06 and hand.position[2] < top - 0.04:
            up = np.array([*hand.position[:2], top + 0.02])
            return Wish(position=up, rotation=hand.rotation, opening=1.0)
        return approach(
            hand,
            point + rotation @ offset,
            rotation,
            closed=self._closed[side],
            release=release,
            hover=top - float(point[2]),
        )

    def _glimpse(self, seen: Bins) -> Glimpse:
        tool, hands = seen.hammer, seen.hands
        far = far_end(tool)
        points = {
            ("lid", 0): seen.handle,
            ("hammer", 0): tool.position - APART * far,
            ("trash", 1): seen.trash,
            ("hammer", 1): tool.position + APART * far,
        }
        distance, above = [NOWHERE, NOWHERE], [0.0, 0.0]
        for side, hand in enumerate(hands):
            at = points[self._now[side], side]
            # Only the thing that is to be missed is looked at by a miss.
            if self.quality in ("retrying", "failing") and self._now[side] != self._spoilt:
                continue
            turn = TAKING if (self._now[side], side) == ("hammer", 1) else hand.rotation
            off = (at - hand.position) @ turn
            distance[side] = float(np.linalg.norm(off + self._offsets[side]))
            above[side] = float(off[2])
        way = float(np.linalg.norm(MEETING - tool.position))
        return Glimpse(
            distance=(distance[0], distance[1]),
            gap=(hands[0].gap, hands[1].gap),
            above=(above[0], above[1]),
            held=(tool.held(0), True),
            progress=float(np.clip(1.0 - way / 0.5, 0.0, 1.0)),
        )
