"""Episodes as points in a plane: principal components, and t-SNE."""

from dataclasses import dataclass

import numpy as np
from sklearn.manifold import TSNE, trustworthiness

from qc.projection import RobustPCA

_SEED = 0
_NEIGHBOURS = 10


@dataclass(frozen=True)
class Map:
    """A plane of episodes.

    Attributes:
        points: (n, 2).
        title: what it is, with its parameters.
        trustworthiness: part of the neighbours on the map that are neighbours in fact (Venna and Kaski, 2001), 0 to 1;
            NaN for too few points.
    """

    points: np.ndarray
    title: str
    trustworthiness: float


def pca_map(z: np.ndarray, groups: np.ndarray | None = None) -> Map:
    """First two robust principal components of standardised columns (n, d): distances mean what they show."""
    projection = RobustPCA(2, groups).fit(z)
    share = " and ".join(f"{part:.0%}" for part in projection.explained_)
    points = projection.transform(z)[:, :2]
    return Map(points, f"principal components ({share} of the spread)", _trust(z, points))


def tsne_map(z: np.ndarray, groups: np.ndarray | None = None, perplexity: float = 30.0) -> Map:
    """t-SNE of the leading principal components, begun from the first two (Kobak and Berens, 2019), with a fixed seed.

    Good for seeing who is next to whom. Sizes of clusters and distances between them mean nothing.

    Args:
        perplexity: wanted; a third of the episodes at most is used.
    """
    scores = RobustPCA(50, groups).fit(z).transform(z)
    used = min(perplexity, max(1.0, (len(z) - 1) / 3))
    tsne = TSNE(perplexity=used, init="pca", learning_rate="auto", random_state=_SEED)
    points = tsne.fit_transform(scores) if len(z) > 3 else scores[:, :2]
    return Map(np.asarray(points, dtype=np.float64), f"t-SNE, perplexity {used:.3g}, seed {_SEED}", _trust(z, points))


def _trust(z: np.ndarray, points: np.ndarray) -> float:
    if len(z) <= 2 * _NEIGHBOURS + 1:
        return float("nan")
    return float(trustworthiness(z, points, n_neighbors=_NEIGHBOURS))
