import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pipeline.assets.parts import TABLE_CENTRE_M, TABLE_SIZE_M
from pipeline.errors import UserError
from pipeline.render.cameras import CAMERAS, HEIGHT_PX, WIDTH_PX, Camera
from pipeline.render.look import PLAIN, Sensor
from pipeline.render.looks import HEADLIGHT, look_names, look_of
from pipeline.render.scene import build_scene
from pipeline.render.worker import expose
from pipeline.tasks import get_task
from randomization.seeds import episode_seed, generator

SEEDS = [episode_seed(7, "nut_M8", attempt) for attempt in range(100)]


def hits_on_table(camera: Camera) -> np.ndarray:
    """Where the rays through a fixed camera's corners meet the tabletop, (4, 2); NaN where they do not."""
    y = np.tan(camera.fovy_rad / 2)
    x = y * WIDTH_PX / HEIGHT_PX
    rays = Rotation.from_quat(camera.quat_xyzw).apply([(a * x, b * y, -1.0) for a in (-1, 1) for b in (-1, 1)])
    along = -camera.pos_m[2] / np.where(rays[:, 2:] < 0, rays[:, 2:], np.nan)
    points: np.ndarray = (np.array(camera.pos_m) + along * rays)[:, :2]
    return points


def test_plain_is_the_same_for_all_and_others_are_numbered() -> None:
    assert look_names("plain") == ("plain",)
    assert look_names("varied", 2) == ("varied-0", "varied-1")
    assert look_of("plain", SEEDS[0]) is look_of("plain", SEEDS[1]) is PLAIN


@pytest.mark.parametrize(
    ("preset", "count", "message"),
    [
        ("variede", 1, "did you mean 'varied'"),
        ("plain", 2, "does not vary"),
        ("varied", 0, "at least 1"),
        ("../varied", 1, "unknown look"),
    ],
)
def test_what_is_no_look_is_named(preset: str, count: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        look_names(preset, count)


@pytest.mark.parametrize("preset", ["workshop", "varied"])
def test_looks_differ_between_episodes_and_within_one(preset: str) -> None:
    looks = [look_of(name, seed) for seed in SEEDS[:20] for name in look_names(preset, 2)]
    assert len({look.table for look in looks}) == len({look.key for look in looks}) == 40
    assert len({look.cameras["wrist"] for look in looks}) == len({look.sensor.seed for look in looks}) == 40
    assert look_of(f"{preset}-1", SEEDS[0]) == looks[1]


def test_the_front_camera_sees_the_table_alone_and_lights_do_not_burn_it_out() -> None:
    half = np.array(TABLE_SIZE_M[:2]) / 2
    for look in (look_of("varied-0", seed) for seed in SEEDS):
        away = np.abs(hits_on_table(look.cameras["front"]) - TABLE_CENTRE_M[:2])
        assert (away < half).all()
        sine = -look.key.direction[2] / np.linalg.norm(look.key.direction)
        lit = np.array(look.ambient) + np.array(look.key.rgb) * sine
        level = (lit * np.array(look.table.light)).max() * look.sensor.gain
        assert 0.08 < level < 0.95
        assert look.key.direction[2] < 0, "the sun shines down"


def test_metal_in_full_shadow_is_lit_and_stands_out_from_the_robots_dark_parts() -> None:
    for look in (look_of("varied-0", seed) for seed in SEEDS):
        shadow = (np.mean(look.ambient) + HEADLIGHT) * look.sensor.gain
        assert shadow > 0.7 * (np.mean(PLAIN.ambient) + HEADLIGHT)
        for metal in ("steel", "brass"):
            grain = look.parts[metal].grain
            assert grain is not None
            darkest = np.mean(look.parts[metal].rgb) * np.mean(grain.dark)
            assert darkest * shadow > 0.18
            assert darkest > 2 * look.robot_range[0]


def test_a_look_changes_surfaces_and_cameras_and_no_shape() -> None:
    task = get_task("gear_medium")
    plain, varied = build_scene(task, PLAIN), build_scene(task, look_of("varied-3", SEEDS[0]))
    assert plain.bodies.keys() == varied.bodies.keys()
    for body, surfaces in plain.bodies.items():
        for ours, theirs in zip(surfaces, varied.bodies[body], strict=True):
            np.testing.assert_array_equal(ours.vertices, theirs.vertices)
    assert plain.bodies["fixed"][0].material != varied.bodies["fixed"][0].material
    assert varied.look.cameras.keys() == CAMERAS.keys()


def test_textures_of_parts_vary_and_keep_their_brightness() -> None:
    looks = [look_of(name, seed) for seed in SEEDS[:20] for name in look_names("varied", 2)]
    for part, of_its_kind in (("steel", "brass"), ("fix", "board")):
        grains = [look.parts[part].grain for look in looks]
        assert len(set(grains)) == len(looks)
        assert grains == [look.parts[of_its_kind].grain for look in looks]
    for look in looks:
        assert look.draws is not None
        steel, fix = look.parts["steel"].grain, look.parts["fix"].grain
        assert steel is not None
        assert fix is not None
        assert look.table.seed != steel.seed != fix.seed
        assert steel.cells == (look.draws.metal_cells_y, look.draws.metal_cells_x)
        assert fix.dark == pytest.approx((1 - look.draws.plastic_contrast,) * 3)
        board, own = look.parts["board"], PLAIN.parts["board"].rgb
        mean = max(board.rgb) * (1 - look.draws.plastic_contrast / 2)
        assert mean == pytest.approx(min(max(own) * look.draws.part_gain, 0.95 * (1 - look.draws.plastic_contrast / 2)))
    assert all(material.grain is None for material in PLAIN.parts.values())


def test_a_sensor_has_gain_and_noise_from_its_seed() -> None:
    grey = np.full((90, 160, 3), 100, np.uint8)
    seen = expose(grey, Sensor(1.2, 3.0, 5), generator(5, "front"))
    assert seen.mean() == pytest.approx(120, abs=0.5)
    assert seen.std() == pytest.approx(3.0, rel=0.1)
    np.testing.assert_array_equal(seen, expose(grey, Sensor(1.2, 3.0, 5), generator(5, "front")))
    assert expose(grey, Sensor(), generator(5, "front")) is grey
