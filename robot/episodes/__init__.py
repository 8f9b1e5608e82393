"""Stores of recorded episodes: LeRobotDataset v3.0, written and read; v2.1, read."""

from robot.episodes.episode import Episode, Key, Setback
from robot.episodes.packing import Packed, pack
from robot.episodes.reader import EpisodeReader
from robot.episodes.sources import Summary
from robot.episodes.writer import EpisodeWriter

__all__ = [
    "Episode",
    "EpisodeReader",
    "EpisodeWriter",
    "Key",
    "Packed",
    "Setback",
    "Summary",
    "pack",
]
