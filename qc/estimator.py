"""Scikit-learn's contract for estimators, without its import: that takes as long as judging a thousand episodes."""

import inspect
from typing import Any, Self


class Estimator:
    """Parameters as scikit-learn knows them, so that its ``clone`` and its pipelines take our estimators.

    The constructor only stores its arguments, each under its own name.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor, by name; ``deep`` changes nothing, for none is an estimator itself."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor.

        Raises:
            ValueError: if there is no such argument.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known) or 'none'}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({told})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=self._kind, target_tags=TargetTags(required=False))

    _kind: str | None = None
