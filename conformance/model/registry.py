"""Every profile the suite knows, loaded from its files and checked against the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from types import MappingProxyType

from conformance.data import data_dir
from conformance.errors import ConfigError, unknown_name
from conformance.model.profile import Capability, Profile
from conformance.model.profile_file import build_profile, read_table
from conformance.model.registry_check import check_profile, check_profiles
from conformance.model.requirement import Requirement


@dataclass(frozen=True, slots=True)
class Registry:
    """Profiles in an order that puts prerequisites first, and their requirements by id."""

    profiles: tuple[Profile, ...]
    by_id: Mapping[str, Requirement]

    def profile(self, name: str) -> Profile:
        """The highest version of the profile `name`. Raises ConfigError for an unknown one."""
        versions = [profile for profile in self.profiles if profile.name == name]
        if not versions:
            raise unknown_name("profile", name, self.profile_names)
        return max(versions, key=lambda profile: (profile.major, profile.minor))

    def requirement(self, id: str) -> Requirement:
        """The requirement with this id. Raises ConfigError for an unknown one."""
        if id not in self.by_id:
            raise unknown_name("requirement", id, self.by_id)
        return self.by_id[id]

    def requirements(self, profile: str | None = None) -> tuple[Requirement, ...]:
        """Requirements of one profile in file order, or of all of them."""
        if profile is None:
            return tuple(self.by_id.values())
        return self.profile(profile).requirements

    def capability(self, path: str) -> Capability:
        """The capability field at `path`. Raises ConfigError for an unknown one."""
        fields = {field.path: field for profile in self.profiles for field in profile.capabilities}
        if path not in fields:
            raise unknown_name("capability field", path, fields)
        return fields[path]

    @property
    def profile_names(self) -> tuple[str, ...]:
        """Names without repetition, prerequisites first."""
        return tuple(dict.fromkeys(profile.name for profile in self.profiles))

    @property
    def features(self) -> frozenset[str]:
        """Every standard feature token."""
        return frozenset(token for profile in self.profiles for token in profile.features)


def load_registry(directory: Traversable | None = None) -> Registry:
    """Load and check every `*.toml` of `directory` (the shipped profiles when None).

    Raises ConfigError naming the file, the place in it and what was expected.
    """
    folder = data_dir("profiles") if directory is None else directory
    tables = {file.name: read_table(file) for file in _profile_files(folder)}
    names = {table["profile"]["name"] for table, _ in tables.values()}
    profiles = [
        build_profile(table, source, digest, names) for source, (table, digest) in tables.items()
    ]
    ordered = check_profiles(profiles)
    features = frozenset(token for profile in profiles for token in profile.features)
    for profile in ordered:
        check_profile(profile, features)
    by_id = {row.id: row for profile in ordered for row in profile.requirements}
    return Registry(ordered, MappingProxyType(by_id))


@cache
def default_registry() -> Registry:
    """The shipped profiles, loaded once: check modules ask for their requirements on import."""
    return load_registry()


def _profile_files(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        raise ConfigError("not a directory", source=str(folder), expected="a folder of profiles")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".toml")),
        key=lambda file: file.name,
    )
    if not files:
        raise ConfigError("no profile files", source=str(folder), expected="*.toml files")
    return files
