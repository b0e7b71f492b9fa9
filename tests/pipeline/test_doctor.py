from importlib import metadata

import pytest

from pipeline import doctor
from pipeline.doctor import Check, Report


def test_limits_do_not_stop_a_run_but_gaps_do():
    fine, limited, missing = (Check("x", level, "", None) for level in ("ok", "limited", "missing"))
    assert Report((fine, limited)).can_run
    assert not Report((fine, limited, missing)).can_run


def test_without_opengl_the_newton_camera_renders_and_the_remedy_is_a_command(monkeypatch):
    from pipeline.render import opengl

    monkeypatch.setattr(opengl, "BACKENDS", ())
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    check = doctor.check_renderer()
    assert (check.level, check.value) == ("limited", "newton")
    assert "apt-get install" in check.remedy


def test_broken_opengl_is_found_by_trying_it(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    assert doctor.check_renderer().value == "newton"


@pytest.mark.parametrize(("lines", "word"), [(["no-such-package>=1"], "absent"), (["numpy>=999"], "wanted >=999")])
def test_wrong_packages(monkeypatch, lines, word):
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    check = doctor.check_packages()
    assert check.level == "missing"
    assert word in check.found


def test_devices(monkeypatch):
    monkeypatch.setattr(doctor, "cuda_devices", lambda: 2)
    assert doctor.check_device().value["devices"] == ["cpu", "cuda:0", "cuda:1"]


def test_little_memory_is_a_limit(monkeypatch):
    monkeypatch.setattr(doctor, "memory_gib", lambda: 2.0)
    check = doctor.check_memory()
    assert check.level == "limited"
    assert "--num-envs" in check.remedy


def test_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEMOMILL_CACHE", str(tmp_path / "file" / "cache"))
    assert doctor.check_cache().level == "missing"
