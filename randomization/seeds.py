"""Seeds are values: an episode's seed depends on the run seed, the task and the attempt, and on nothing else."""

import hashlib

import numpy as np


def episode_seed(run_seed: int, task: str, attempt: int) -> int:
    """Seed of one attempt, in [0, 2**63)."""
    digest = hashlib.sha256(f"{run_seed}/{task}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def generator(seed: int, stream: str) -> np.random.Generator:
    """Independent generator for a named group of draws, so that a new group leaves the others as they were."""
    key = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:4], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(key,))))
