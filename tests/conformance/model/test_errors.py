"""Error messages: place, problem and expectation in one line."""

import pytest

from conformance.data import data_dir
from conformance.errors import ConfigError, ConformError, unknown_name


def test_a_config_error_reads_place_problem_expectation() -> None:
    """Every part that is given appears, in that order."""
    error = ConfigError("is 0", source="x.toml", where="profile.major", expected="1 or more")
    assert str(error) == "x.toml: profile.major: is 0; expected 1 or more"
    assert isinstance(error, ConformError)


def test_a_config_error_without_a_place_is_the_bare_problem() -> None:
    """Nothing is padded with empty parts."""
    assert str(ConfigError("no target")) == "no target"


def test_an_unknown_name_offers_near_matches() -> None:
    """A slip of the keyboard is answered with what was probably meant."""
    error = unknown_name("profile", "kv_event", ["core", "kv_events", "tasks"])
    assert str(error) == "unknown profile 'kv_event'; expected perhaps kv_events"


def test_an_unknown_name_far_from_all_lists_a_few_names() -> None:
    """A short list is shown whole."""
    assert "one of a, b" in str(unknown_name("letter", "omega", ["b", "a"]))


def test_an_unknown_name_far_from_many_stays_one_line() -> None:
    """A long list is only described."""
    error = unknown_name("id", "zzz", [f"name-{number:03}" for number in range(400)])
    assert "one of 400 known names" in str(error)
    assert len(str(error)) < 120


def test_missing_data_is_a_config_error() -> None:
    """An incomplete installation is said to be one."""
    with pytest.raises(ConfigError, match="'nowhere' is missing"):
        data_dir("nowhere")


def test_profiles_are_found() -> None:
    """The shipped profiles lie where the loader looks."""
    assert (data_dir("profiles") / "core-1.0.toml").is_file()
