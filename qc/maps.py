"""Episodes as points in a plane: principal components, and t-SNE."""

from dataclasses import dataclass

import numpy as np
from sklearn.manifold import TSNE, trustworthiness
from threadpoolctl import threadpool_limits

from qc.projection import RobustPCA

_SEED = 0
_NEIGHBOURS = 10
_FEWEST = 4
_MOST = 90
_FRAME = 3.0
_FAR = 100.0


@dataclass(frozen=True)
class Map:
    """A plane of episodes.

    Attributes:
        points: (n, 2).
        title: what it is, with its parameters; or why there is nothing to see.
        trustworthiness: part of the neighbours on the map that are neighbours in fact (Venna and Kaski, 2001), 0 to 1;
            NaN for too few points.
    """

    points: np.ndarray
    title: str
    trustworthiness: float = float("nan")

    @property
    def caption(self) -> str:
        """Title, and how far it can be trusted."""
        known = not np.isnan(self.trustworthiness)
        return f"{self.title}; trustworthiness {self.trustworthiness:.2f}" if known else self.title

    def framed(self) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, 2) as drawn: the few that would squeeze all others together lie on the edge, (n,) bool."""
        if not len(self.points):
            return self.points, np.zeros(0, dtype=bool)
        centre = np.median(self.points, axis=0)
        away = self.points - centre
        most = np.percentile(np.abs(away), _MOST, axis=0, method="lower")
        reach = np.where(most > 0, _FRAME * most, np.abs(away).max(axis=0))
        drawn = np.clip(away, -reach, reach)
        return centre + drawn, (drawn != away).any(axis=1)


def nothing_to_map(z: np.ndarray) -> str:
    """Why a plane of standardised columns (n, d) would show nothing; empty if it shows something."""
    if len(z) < _FEWEST:
        return f"nothing to map: {len(z)} episodes, a map needs {_FEWEST}"
    if not np.isfinite(z).all():
        return "nothing to map: some columns are not finite"
    return "" if z.size and np.ptp(z, axis=0).any() else "nothing to map: no two episodes of a task differ"


def pca_map(z: np.ndarray, groups: np.ndarray | None = None) -> Map:
    """First two robust principal components of standardised columns (n, d): distances mean what they show."""
    if why := nothing_to_map(z):
        return Map(np.zeros((len(z), 2)), why)
    with threadpool_limits(1):  # on busy cores more threads would only wait for each other
        projection = RobustPCA(2, groups).fit(z)
        points = projection.transform(z)[:, :2]
        share = " and ".join(f"{part:.0%}" for part in projection.explained_)
        return Map(points, f"principal components ({share} of the spread)", _trust(z, points))


def tsne_map(z: np.ndarray, groups: np.ndarray | None = None, perplexity: float = 30.0) -> Map:
    """t-SNE of the leading principal components, begun from the first two (Kobak and Berens, 2019), with a fixed seed.

    Good for seeing who is next to whom. Sizes of clusters and distances between them mean nothing.

    Args:
        perplexity: wanted; a third of the episodes at most is used.
    """
    if why := nothing_to_map(z):
        return Map(np.zeros((len(z), 2)), why)
    used = min(perplexity, max(1.0, (len(z) - 1) / 3))
    with threadpool_limits(1):
        scores = np.clip(RobustPCA(50, groups).fit(z).transform(z), -_FAR, _FAR)
        tsne = TSNE(perplexity=used, init="pca", learning_rate="auto", random_state=_SEED)
        points = np.asarray(tsne.fit_transform(scores), dtype=np.float64)
        return Map(points, f"t-SNE, perplexity {used:.3g}, seed {_SEED}", _trust(z, points))


def _trust(z: np.ndarray, points: np.ndarray) -> float:
    if len(z) <= 2 * _NEIGHBOURS + 1:
        return float("nan")
    return float(trustworthiness(z, points, n_neighbors=_NEIGHBOURS))
