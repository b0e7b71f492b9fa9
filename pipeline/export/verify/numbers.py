"""Checks of the statistics: each is computed again from the rows and pictures that it speaks of."""

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import groupby
from operator import add, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.export.layout import STATS_PATH
from pipeline.export.statistics import KEYFRAME_STRIDE, PixelHistogram, Statistics, vector_statistics
from pipeline.export.verify.findings import Finding
from pipeline.export.verify.tree import EPISODES, Member, Tree
from pipeline.video import read_segment_keyframes

_FOREIGN = ("min", "max", "mean", "count")
"""What LeRobot's own writer computes over all rows; its quantiles of a dataset are means of those of episodes."""


def check_statistics(tree: Tree) -> Iterator[Finding]:
    """Statistics of columns, of each episode and of the dataset; of others' datasets, those of recorded columns.

    LeRobot's own editor leaves the statistics of ids as they were when it deletes an episode.
    """
    keys = tree.numeric if tree.ours else tree.recorded
    every: dict[str, list[NDArray[np.generic]]] = {key: [] for key in keys}
    for member, columns in tree.episodes():
        for key, values in ((key, columns[key]) for key in keys):
            every[key].append(values)
            computed = _comparable(tree, vector_statistics(values))
            yield from _compare(tree, EPISODES, f"{member.name}, {key}", _of_episode(member, key, computed), computed)
    for key, parts in every.items():
        computed = _comparable(tree, vector_statistics(np.concatenate(parts)))
        yield from _compare(tree, STATS_PATH, key, tree.statistics.get(key, {}), computed)


def check_picture_statistics(tree: Tree) -> Iterator[Finding]:
    """Statistics of pictures, of each episode and of the dataset; of datasets that we wrote, as others sample."""
    for camera in tree.cameras:
        histograms: dict[int, PixelHistogram] = {}
        for file, members in tree.by_video_file(camera):
            lengths = [member.length for member in members]
            pictures = read_segment_keyframes(tree.root / file, lengths, KEYFRAME_STRIDE)
            found = {
                number: PixelHistogram.of_images(picture for _, picture in group)
                for number, group in groupby(pictures, key=itemgetter(0))
            }
            for number, member in enumerate(members):
                if number in found:
                    histograms[member.number] = found[number]
        for member in tree.members:
            if member.number not in histograms:
                yield Finding(tree.video_file(member, camera), member.name, "holds no keyframe of the episode")
            else:
                computed = histograms[member.number].statistics()
                told = _of_episode(member, camera, computed)
                yield from _compare(tree, EPISODES, f"{member.name}, {camera}", told, computed)
        if histograms:
            whole = reduce(add, histograms.values()).statistics()
            yield from _compare(tree, STATS_PATH, camera, tree.statistics.get(camera, {}), whole)


def _comparable(tree: Tree, computed: Statistics) -> Statistics:
    return computed if tree.ours else {name: computed[name] for name in _FOREIGN}


def _of_episode(member: Member, key: str, computed: Statistics) -> dict[str, Any]:
    return {name: member.row.get(f"stats/{key}/{name}") for name in computed}


def _compare(tree: Tree, file: str, where: str, told: Mapping[str, Any], computed: Statistics) -> Iterator[Finding]:
    rtol, atol = (1e-9, 1e-12) if tree.ours else (1e-4, 1e-5)
    for name, values in computed.items():
        given = told.get(name)
        if given is None:
            yield Finding(file, where, f"{name} is missing")
            continue
        found, wanted = np.asarray(given, dtype=float).ravel(), np.asarray(values, dtype=float).ravel()
        if found.size != wanted.size:
            yield Finding(file, where, f"{name} has {found.size} values, expected {wanted.size}")
            continue
        bad = np.flatnonzero(~np.isclose(found, wanted, rtol=rtol, atol=atol))
        if len(bad):
            first = int(bad[0])
            problem = f"{name}[{first}] is {found[first]:.9g}, computed again {wanted[first]:.9g}"
            yield Finding(file, where, problem)
