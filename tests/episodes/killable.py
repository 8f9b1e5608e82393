"""Appends episodes for ever and says which are stored: a process to be killed."""

import sys

from smallworld import SPEC, make_episode

from robot.episodes import EpisodeWriter

with EpisodeWriter(sys.argv[1], SPEC) as writer:
    seed = len(writer)
    sys.stdout.write(f"open {seed}\n")
    while True:
        sys.stdout.flush()
        writer.append(make_episode(seed))
        sys.stdout.write(f"stored {seed}\n")
        seed += 1
