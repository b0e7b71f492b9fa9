"""Authoring of USD assets: the robot, the parts of each task, and the table, kept in the cache folder.

Contact parameters are authored as MuJoCo attributes (``mjc:...``), so that every MuJoCo-based engine reads
the same ones. Of the robot's own links only the two pads may meet.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import trimesh
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt

from pipeline import __version__
from pipeline.assets import parts, robot, shapes
from pipeline.assets.cache import cache_dir
from pipeline.assets.robot_visuals import robot_visuals
from pipeline.faults import Fault
from pipeline.tasks import Task

PAD_FRICTION = 1.3
TORSIONAL_FRICTION = 0.005
ROLLING_FRICTION = 0.0001

Vector = np.ndarray | Sequence[float]


@dataclass(frozen=True)
class Contact:
    """Contact parameters of a group of colliders; in a pair the higher priority decides friction and cone."""

    priority: int
    condim: int
    friction: float
    solref: tuple[float, float] = (0.004, 1.0)
    solimp: tuple[float, float, float, float, float] = (0.95, 0.99, 0.0005, 0.5, 2.0)


LINK = Contact(priority=0, condim=3, friction=1.0, solref=(0.02, 1.0))
TABLE = Contact(priority=0, condim=3, friction=0.5)


def pad_contact(friction: float, impedance: tuple[float, float]) -> Contact:
    """Rubber pads: their friction wins over a held part's."""
    return Contact(priority=1, condim=4 if friction else 1, friction=friction, solimp=(*impedance, 0.0005, 0.5, 2.0))


def part_contact(role: str, part: shapes.Part) -> Contact:
    """A task's part by role; the fixture's and the stand's friction win over the held part's.

    The fixture is as stiff as the time step allows: in a softer bore a peg 0.2 mm too wide can be pressed home.
    """
    if role == "fixed":
        return Contact(priority=2, condim=3, friction=part.friction, solimp=(*part.impedance, 0.0005, 0.5, 2.0))
    return Contact(priority={"held": 0, "stand": 3}[role], condim=4 if role == "held" else 3, friction=part.friction)


@dataclass(frozen=True)
class SceneAssets:
    """USD files of one task; ``stand`` is None where the task has none."""

    robot: Path
    table: Path
    held: Path
    fixed: Path
    stand: Path | None


def scene_assets(task: Task, fault: Fault | None = None) -> SceneAssets:
    """Build what is missing in the cache and return the files of a task's scene."""
    pad_friction = PAD_FRICTION if fault is None or fault.pad_friction is None else fault.pad_friction
    made = parts.scene_parts(task, fault)
    built = {role: _cached(f"{task.id}-{role}", _part_writer(role, part)) for role, part in made.items()}
    pad = pad_contact(pad_friction, made["held"].grip_impedance)
    return SceneAssets(
        robot=_cached("panda_2f85", lambda path: _write_robot(path, pad), robot.source_licences()),
        table=_cached("table", _write_table),
        held=built["held"],
        fixed=built["fixed"],
        stand=built.get("stand"),
    )


def _cached(name: str, write: Callable[[Path], None], licences: Mapping[str, str] | None = None) -> Path:
    """Author into a staging folder, name the result by its content, and keep it if it is there already."""
    root = cache_dir() / "usd"
    root.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=root))
    try:
        write(staging / f"{name}.usda")
        digest = hashlib.sha256((staging / f"{name}.usda").read_bytes()).hexdigest()[:16]
        for file, text in (licences or {}).items():
            (staging / file).write_text(text)
        staging.chmod(0o755)
        folder = root / f"{name}-{__version__}-{digest}"
        if not folder.exists():
            try:
                Path(staging).rename(folder)
            except OSError:
                if not folder.exists():
                    raise
        return folder / f"{name}.usda"
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _stage(path: Path, root: str) -> tuple[Usd.Stage, Usd.Prim]:
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    prim = UsdGeom.Xform.Define(stage, f"/{root}").GetPrim()
    stage.SetDefaultPrim(prim)
    return stage, prim


def _write_table(path: Path) -> None:
    stage, root = _stage(path, "table")
    cube = UsdGeom.Cube.Define(stage, root.GetPath().AppendChild("top"))
    cube.CreateSizeAttr(1.0)
    _place(cube, parts.TABLE_CENTRE_M, (1, 0, 0, 0), scale=parts.TABLE_SIZE_M)
    _collide(stage, cube.GetPrim(), TABLE)
    stage.Save()


def _part_writer(role: str, part: shapes.Part) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        stage, root = _stage(path, role)
        UsdPhysics.RigidBodyAPI.Apply(root)
        _author_mass(root, *_mass_properties(part))
        contact = part_contact(role, part)
        for i, collider in enumerate(part.colliders):
            where = root.GetPath().AppendChild(f"collider_{i}")
            if isinstance(collider, shapes.Cylinder):
                shape = UsdGeom.Cylinder.Define(stage, where)
                shape.CreateRadiusAttr(collider.radius)
                shape.CreateHeightAttr(collider.height)
                shape.CreateAxisAttr(UsdGeom.Tokens.z)
                _place(shape, (*collider.xy, collider.z0 + collider.height / 2), (1, 0, 0, 0))
                _collide(stage, shape.GetPrim(), contact)
            elif isinstance(collider, shapes.Box):
                cube = UsdGeom.Cube.Define(stage, where)
                cube.CreateSizeAttr(1.0)
                middle = (*collider.centre, collider.z0 + collider.size[2] / 2)
                turned = (np.cos(collider.yaw_rad / 2), 0.0, 0.0, np.sin(collider.yaw_rad / 2))
                _place(cube, middle, turned, scale=collider.size)
                _collide(stage, cube.GetPrim(), contact)
            else:
                _hull(stage, where, collider.vertices, contact)
        for i, mesh in enumerate(part.visuals):
            _mesh(stage, root.GetPath().AppendChild(f"visual_{i}"), mesh.vertices, mesh.faces)
        stage.Save()

    return write


def _mass_properties(part: shapes.Part) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Mass, centre, principal inertia and axes (wxyz) of the visible solid at even density."""
    solid = trimesh.util.concatenate([trimesh.Trimesh(m.vertices, m.faces) for m in part.visuals])
    assert isinstance(solid, trimesh.Trimesh)
    solid.density = part.mass_kg / solid.volume
    moments, axes = np.linalg.eigh(solid.moment_inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    quat = trimesh.transformations.quaternion_from_matrix(np.block([[axes, np.zeros((3, 1))], [np.eye(4)[3:]]]))
    return part.mass_kg, solid.center_mass, moments, quat


def _write_robot(path: Path, pad: Contact) -> None:
    source = robot.load_robot()
    stage, root = _stage(path, "robot")
    world = _zero_poses(source)
    for body in source.bodies:
        xform = UsdGeom.Xform.Define(stage, root.GetPath().AppendChild(body.name))
        _place(xform, *world[body.name])
        prim = xform.GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(prim)
        prim.CreateAttribute("mjc:gravcomp", Sdf.ValueTypeNames.Float).Set(1.0)
        _author_mass(prim, body.mass, body.com, body.inertia, body.inertia_quat_wxyz)
        contact = pad if body.name in robot.PAD_BODIES else LINK
        for collider in body.colliders:
            _robot_collider(stage, prim.GetPath().AppendChild(collider.name), collider, contact)
        for i, visual in enumerate(robot_visuals().get(body.name, ())):
            mesh = _mesh(stage, prim.GetPath().AppendChild(f"visual_{i}"), visual.vertices, visual.faces)
            mesh.CreateDisplayColorAttr([Gf.Vec3f(*visual.rgba[:3])])
        _author_joint(stage, root.GetPath(), body)
    UsdPhysics.ArticulationRootAPI.Apply(stage.GetPrimAtPath(root.GetPath().AppendChild(source.bodies[0].name)))
    solid = [body for body in source.bodies if body.colliders]
    for i, body in enumerate(solid):
        others = [b.name for b in solid[:i] if not {b.name, body.name} <= set(robot.PAD_BODIES)]
        pairs = UsdPhysics.FilteredPairsAPI.Apply(stage.GetPrimAtPath(root.GetPath().AppendChild(body.name)))
        pairs.CreateFilteredPairsRel().SetTargets([root.GetPath().AppendChild(name) for name in others])
    for i, connect in enumerate(source.connects):
        _author_connect(stage, root.GetPath(), i, connect)
    follower, leader = (root.GetPath().AppendPath(f"joints/{name}") for name in source.mimic)
    prim = stage.GetPrimAtPath(follower)
    for schema in ("NewtonMimicAPI", "MjcEqualityJointAPI"):
        prim.AddAppliedSchema(schema)
    prim.CreateRelationship("newton:mimicJoint").SetTargets([leader])
    prim.CreateAttribute("newton:mimicCoef0", Sdf.ValueTypeNames.Float).Set(0.0)
    prim.CreateAttribute("newton:mimicCoef1", Sdf.ValueTypeNames.Float).Set(1.0)
    stage.Save()


def _zero_poses(source: robot.Robot) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """World pose (position, wxyz) of every link with all joints at zero."""
    poses: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for body in source.bodies:
        quat = Gf.Quatd(*map(float, body.quat_wxyz)).GetNormalized()
        pos = Gf.Vec3d(*map(float, body.pos))
        if body.parent:
            parent_pos, parent_quat = poses[body.parent]
            frame = Gf.Quatd(*map(float, parent_quat))
            pos = Gf.Vec3d(*map(float, parent_pos)) + Gf.Rotation(frame).TransformDir(pos)
            quat = frame * quat
        poses[body.name] = (np.array(pos), np.array([quat.GetReal(), *quat.GetImaginary()]))
    return poses


def _author_joint(stage: Usd.Stage, root: Sdf.Path, body: robot.Body) -> None:
    where = root.AppendChild("joints")
    UsdGeom.Scope.Define(stage, where)
    anchor = np.zeros(3) if body.joint is None else body.joint.pos
    name = body.joint.name if body.joint else f"{body.name}_fixed"
    kind = UsdPhysics.RevoluteJoint if body.joint else UsdPhysics.FixedJoint
    joint = kind.Define(stage, where.AppendChild(name))
    if body.parent:
        joint.CreateBody0Rel().SetTargets([root.AppendChild(body.parent)])
    joint.CreateBody1Rel().SetTargets([root.AppendChild(body.name)])
    quat = Gf.Quatd(*map(float, body.quat_wxyz)).GetNormalized()
    offset = Gf.Vec3d(*map(float, body.pos)) + Gf.Rotation(quat).TransformDir(Gf.Vec3d(*map(float, anchor)))
    joint.CreateLocalPos0Attr(Gf.Vec3f(offset))
    joint.CreateLocalRot0Attr(Gf.Quatf(quat))
    joint.CreateLocalPos1Attr(Gf.Vec3f(*map(float, anchor)))
    joint.CreateLocalRot1Attr(Gf.Quatf(1.0))
    if body.joint is None:
        return
    joint.CreateAxisAttr(body.joint.axis)
    joint.CreateLowerLimitAttr(float(np.rad2deg(body.joint.range_rad[0])))
    joint.CreateUpperLimitAttr(float(np.rad2deg(body.joint.range_rad[1])))
    prim = joint.GetPrim()
    for schema in ("MjcJointAPI", "NewtonJointAPI"):
        prim.AddAppliedSchema(schema)
    _doubles(prim, "mjc:solreflimit", body.joint.limit_solref)
    _doubles(prim, "mjc:solimplimit", body.joint.limit_solimp)
    per_degree = np.pi / 180
    prim.CreateAttribute("newton:armature", Sdf.ValueTypeNames.Float).Set(body.joint.armature)
    prim.CreateAttribute("newton:damping", Sdf.ValueTypeNames.Float).Set(body.joint.damping * per_degree)
    if body.joint.stiffness:
        prim.CreateAttribute("mjc:stiffness", Sdf.ValueTypeNames.Double).Set(body.joint.stiffness)
        prim.CreateAttribute("mjc:springref", Sdf.ValueTypeNames.Double).Set(body.joint.springref_rad)


def _author_connect(stage: Usd.Stage, root: Sdf.Path, index: int, connect: robot.Connect) -> None:
    joint = UsdPhysics.SphericalJoint.Define(stage, root.AppendPath(f"joints/loop_{index}"))
    joint.CreateBody0Rel().SetTargets([root.AppendChild(connect.body1)])
    joint.CreateBody1Rel().SetTargets([root.AppendChild(connect.body2)])
    joint.CreateExcludeFromArticulationAttr(True)
    joint.CreateAxisAttr("X")
    joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, connect.anchor)))
    joint.CreateLocalPos1Attr(Gf.Vec3f(*map(float, connect.anchor2)))
    joint.CreateLocalRot0Attr(Gf.Quatf(1.0))
    joint.CreateLocalRot1Attr(Gf.Quatf(1.0))
    prim = joint.GetPrim()
    prim.AddAppliedSchema("MjcEqualityConnectAPI")
    _doubles(prim, "mjc:solref", connect.solref)
    _doubles(prim, "mjc:solimp", connect.solimp)


def _robot_collider(stage: Usd.Stage, where: Sdf.Path, collider: robot.Collider, contact: Contact) -> None:
    if collider.half_size is not None:
        cube = UsdGeom.Cube.Define(stage, where)
        cube.CreateSizeAttr(2.0)
        _place(cube, collider.pos, collider.quat_wxyz, scale=collider.half_size)
        _collide(stage, cube.GetPrim(), contact)
        return
    assert collider.vertices is not None
    hull = _hull(stage, where, collider.vertices, contact)
    _place(hull, collider.pos, collider.quat_wxyz)


def _hull(stage: Usd.Stage, where: Sdf.Path, vertices: np.ndarray, contact: Contact) -> UsdGeom.Mesh:
    convex = trimesh.convex.convex_hull(np.asarray(vertices, float))
    mesh = _mesh(stage, where, convex.vertices, convex.faces)
    mesh.CreatePurposeAttr(UsdGeom.Tokens.guide)
    UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr(UsdPhysics.Tokens.convexHull)
    _collide(stage, mesh.GetPrim(), contact)
    return mesh


def _mesh(stage: Usd.Stage, where: Sdf.Path, vertices: np.ndarray, faces: np.ndarray) -> UsdGeom.Mesh:
    mesh = UsdGeom.Mesh.Define(stage, where)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.asarray(vertices, np.float32)))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(faces), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.asarray(faces, np.int32).reshape(-1)))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    return mesh


def _collide(stage: Usd.Stage, prim: Usd.Prim, contact: Contact) -> None:
    UsdPhysics.CollisionAPI.Apply(prim)
    prim.CreateAttribute("mjc:priority", Sdf.ValueTypeNames.Int).Set(contact.priority)
    prim.CreateAttribute("mjc:condim", Sdf.ValueTypeNames.Int).Set(contact.condim)
    _doubles(prim, "mjc:solref", contact.solref)
    _doubles(prim, "mjc:solimp", contact.solimp)
    path = stage.GetDefaultPrim().GetPath().AppendPath(f"materials/friction_{round(contact.friction * 1e4)}")
    material = UsdShade.Material.Define(stage, path)
    physics = UsdPhysics.MaterialAPI.Apply(material.GetPrim())
    physics.CreateStaticFrictionAttr(contact.friction)
    physics.CreateDynamicFrictionAttr(contact.friction)
    material.GetPrim().AddAppliedSchema("NewtonMaterialAPI")
    for name, value in (("torsionalFriction", TORSIONAL_FRICTION), ("rollingFriction", ROLLING_FRICTION)):
        material.GetPrim().CreateAttribute(f"newton:{name}", Sdf.ValueTypeNames.Float).Set(value)
    UsdShade.MaterialBindingAPI.Apply(prim).Bind(material, materialPurpose="physics")


def _author_mass(
    prim: Usd.Prim, mass: float, com: np.ndarray, inertia: np.ndarray, inertia_quat_wxyz: np.ndarray
) -> None:
    api = UsdPhysics.MassAPI.Apply(prim)
    api.CreateMassAttr(float(mass))
    api.CreateCenterOfMassAttr(Gf.Vec3f(*map(float, com)))
    api.CreateDiagonalInertiaAttr(Gf.Vec3f(*map(float, inertia)))
    api.CreatePrincipalAxesAttr(Gf.Quatf(*map(float, inertia_quat_wxyz)))


def _place(prim: UsdGeom.Xformable, pos: Vector, quat_wxyz: Vector, scale: Vector | None = None) -> None:
    prim.AddTranslateOp().Set(Gf.Vec3d(*map(float, pos)))
    prim.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(*map(float, quat_wxyz)))
    if scale is not None:
        prim.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*map(float, scale)))


def _doubles(prim: Usd.Prim, name: str, values: tuple[float, ...]) -> None:
    prim.CreateAttribute(name, Sdf.ValueTypeNames.DoubleArray).Set(Vt.DoubleArray(list(map(float, values))))
