"""Figures inside a page."""

import base64
import html
import io

from matplotlib.figure import Figure


def image(figure: Figure, dpi: int, kind: str, name: str = "", id_: str = "") -> str:
    """An ``img`` element that holds a figure.

    Args:
        kind: class of the element.
        name: what is to be seen, for those who cannot see it.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    coded = base64.b64encode(buffer.getvalue()).decode()
    known = f' id="{html.escape(id_)}"' if id_ else ""
    return f'<img class="{kind}"{known} alt="{html.escape(name)}" src="data:image/png;base64,{coded}">'
