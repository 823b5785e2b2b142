"""Compiles proto/ into the descriptor set and the type stubs of oe_wire.

`python tools/protos.py` writes them; `--check` exits 1 and names the files that are out of date.
"""

import argparse
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import wire_stubs
from google.protobuf.descriptor_pb2 import FileDescriptorSet

ROOT = Path(__file__).resolve().parent.parent
STUBS = {"v1.pyi": "openengine.v1", "health.pyi": "grpc.health.v1"}


class ProtosError(Exception):
    """The protos cannot be compiled; the message is what protoc said."""


def compile_protos(proto_dir: Path) -> FileDescriptorSet:
    """Descriptors of every file under proto_dir and of its imports, imports first.

    Source info stays out: comments would triple the size and serve nobody at run time.
    """
    sources = sorted(path.relative_to(proto_dir).as_posix() for path in proto_dir.rglob("*.proto"))
    if not sources:
        raise ProtosError(f"no .proto file under {proto_dir}")
    with (
        tempfile.TemporaryDirectory() as scratch,
        as_file(files("grpc_tools").joinpath("_proto")) as well_known,
    ):
        out = Path(scratch) / "set.binpb"
        command = [sys.executable, "-m", "grpc_tools.protoc", "--include_imports"]
        command += [f"-I{proto_dir}", f"-I{well_known}", f"--descriptor_set_out={out}", *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ProtosError(done.stderr.strip() or f"protoc ended with {done.returncode}")
        return FileDescriptorSet.FromString(out.read_bytes())


def render(descriptors: FileDescriptorSet) -> dict[str, bytes]:
    """Content of each generated file by its name in oe_wire/."""
    stubs = {
        name: wire_stubs.render(descriptors, package).encode() for name, package in STUBS.items()
    }
    return {"openengine.binpb": descriptors.SerializeToString(deterministic=True), **stubs}


def _own_files(data: bytes) -> list[bytes]:
    """Our files only: google/protobuf/struct.proto follows the installed protoc."""
    descriptors = FileDescriptorSet.FromString(data)
    return [
        file.SerializeToString(deterministic=True)
        for file in descriptors.file
        if not file.name.startswith("google/")
    ]


def is_stale(path: Path, content: bytes) -> bool:
    """Whether the file at path is missing or says something else than content."""
    if not path.is_file():
        return True
    if path.suffix == ".binpb":
        return _own_files(path.read_bytes()) != _own_files(content)
    return path.read_bytes() != content


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks the generated files; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to work on")
    options = parser.parse_args(arguments)
    try:
        rendered = render(compile_protos(options.root / "proto"))
    except ProtosError as error:
        print(f"protos: {error}", file=sys.stderr)
        return 2
    targets = {options.root / "oe_wire" / name: content for name, content in rendered.items()}
    stale = [path for path, content in targets.items() if is_stale(path, content)]
    names = ", ".join(path.relative_to(options.root).as_posix() for path in stale)
    if options.check:
        if stale:
            print(f"protos: stale: {names}; run `make protos` and commit", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_bytes(targets[path])
    print(f"protos: wrote {names}" if stale else "protos: up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
