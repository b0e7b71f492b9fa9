"""How smooth a motion is, in numbers without a unit."""

import numpy as np

from qc.robust import quantiles

_SMOOTH = 1e-3  # smoother than this is all the same
_PADDING = 4
_AMPLITUDE = 0.05


def roughness(speed: np.ndarray, change: np.ndarray) -> float:
    """Median change of velocity from row to row over the path's own top speed, log10: what jitter raises.

    Args:
        speed: (rows - 1,) way from each row to the next.
        change: (rows - 2,) size of the change of that way, as a vector, in the same unit.
    """
    top = quantiles(speed, 0.95)[0] if len(speed) else 0.0
    return float(np.log10(_SMOOTH + (quantiles(change, 0.5)[0] / top if len(change) and top > 0 else 0.0)))


def spectral_arc_length(speed: np.ndarray) -> float:
    """Spectral arc length of the speed, negative: the nearer to 0, the smoother.

    After Balasubramanian, Melendez-Calderon and Burdet (2012), who set 20 Hz: here the band ends where less than 5 % of
    the spectrum is left, at half the frame rate at most.

    Args:
        speed: (rows - 1,) way from each row to the next, in any unit.
    """
    if len(speed) < _PADDING or not speed.any():
        return 0.0
    spectrum = np.abs(np.fft.rfft(speed, _PADDING * len(speed)))
    spectrum /= spectrum[0]
    above = np.flatnonzero(spectrum >= _AMPLITUDE)
    band = spectrum[: above[-1] + 1]
    if len(band) < 2:
        return 0.0
    return -float(np.sqrt((1 / (len(band) - 1)) ** 2 + np.diff(band) ** 2).sum())
