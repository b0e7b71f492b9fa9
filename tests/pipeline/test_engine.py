import pytest

import pipeline.engine
from pipeline.engine import Engine, choose_engine, cuda_devices
from pipeline.errors import UserError


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    count = int(request.param)
    monkeypatch.setattr(pipeline.engine, "cuda_devices", lambda: count)
    return count


@pytest.mark.parametrize(
    ("gpus", "asked", "device", "native"),
    [
        (0, "auto", "cpu", True),
        (0, "cpu", "cpu", True),
        (2, "auto", "cuda:0", False),
        (2, "cuda:1", "cuda:1", False),
        (2, "cpu", "cpu", True),
    ],
    indirect=["gpus"],
)
def test_device(gpus: int, asked: str, device: str, native: bool) -> None:
    engine = choose_engine(asked)
    assert (engine.device, engine.native) == (device, native)
    assert engine.threads >= 1


@pytest.mark.parametrize("gpus", [0, 1], indirect=True)
@pytest.mark.parametrize("asked", ["cuda:1", "cuda", "gpu", "", "CPU"])
def test_a_missing_device_is_a_clear_error_that_lists_what_is_there(gpus: int, asked: str) -> None:
    with pytest.raises(UserError, match="it has: cpu" + (", cuda:0" if gpus else "")):
        choose_engine(asked)


def test_threads_do_not_belong_to_what_determines_the_physics() -> None:
    assert choose_engine("cpu", threads=3).threads == 3
    assert Engine(threads=1).to_dict() == Engine(threads=8).to_dict()
    assert "threads" not in Engine().to_dict()


@pytest.mark.parametrize("other", [Engine(device="cuda:0"), Engine(substeps=12), Engine(native=False)])
def test_all_else_does(other: Engine) -> None:
    assert other.to_dict() != Engine().to_dict()


def test_devices_are_counted_without_a_driver() -> None:
    assert cuda_devices() >= 0
