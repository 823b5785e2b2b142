from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# A vendor's own bindings: the same file names as ours with other content, in the default pool.
FOREIGN = """
from google.protobuf import descriptor_pb2, descriptor_pool
pool = descriptor_pool.Default()
for name, package in (
    ("openengine/v1/kv.proto", "openengine.v1"),
    ("openengine/v1/generation.proto", "openengine.v1"),
    ("grpc/health/v1/health.proto", "grpc.health.v1"),
):
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    file.message_type.add(name="VendorsOwn" + name.split("/")[-1].split(".")[0])
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
"""

RUN = """
from conformance.runner.run import run
from conformance.runner.selection import Selection
from conformance.runner.session import Options
from conformance.wire.target import Target, parse_address
from tests.conformance.fake_engine import FakeEngine

with FakeEngine() as engine:
    selection = Selection(ids=("OE-CORE-GEN-00?", "OE-CORE-HEALTH-001"))
    report = run(Options(Target(parse_address(engine.address)), seed=1, selection=selection))
print(report.verdict.exit_code, sum(j.status == "pass" for j in report.judgements))
assert pool.FindMessageTypeByName("openengine.v1.VendorsOwnkv")
"""


def test_the_suite_runs_beside_foreign_bindings() -> None:
    """Another openengine/v1/kv.proto is registered first; importing and running still works."""
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN + RUN],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    code, passed = done.stdout.split()
    assert (code, int(passed)) == ("0", 9)
