import math

import pytest
import torch

from reference_engine.model.rope import (
    DividedBy,
    LinearScaling,
    Llama3Scaling,
    RopeScaling,
    frequencies,
)

THETA = 10000.0
PLAIN = [1.0, 0.1, 0.01, 0.001]


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        (None, PLAIN),
        (LinearScaling(4.0), [0.25, 0.025, 0.0025, 0.00025]),
        (DividedBy((1.0, 2.0, 4.0, 5.0)), [1.0, 0.05, 0.0025, 0.0002]),
    ],
)
def test_frequencies(scaling: RopeScaling | None, expected: list[float]) -> None:
    """Powers of the base, divided by one number or by one each."""
    torch.testing.assert_close(frequencies(THETA, 8, scaling), torch.tensor(expected))


@pytest.mark.parametrize("component", range(4))
@pytest.mark.parametrize(
    ("turns", "share_kept"), [(100.0, 1.0), (6.1, 1.0), (4.5, 0.5), (2.9, 0.0), (1.0, 0.0)]
)
def test_llama3_keeps_fast_components_and_divides_slow_ones(
    component: int, turns: float, share_kept: float
) -> None:
    """With borders at 3 and 6 (thousand) turns: faster stays, slower is divided, a ramp between."""
    plain = 10 ** (-component / 4)
    context = round(turns * 1000 * 2 * math.pi / plain)
    found = frequencies(10.0, 8, Llama3Scaling(8.0, 3000.0, 6000.0, context))[component].item()
    assert found == pytest.approx(plain * (share_kept + (1 - share_kept) / 8), rel=1e-3)


def test_frequencies_are_numbers_even_where_models_have_no_storage() -> None:
    """Loaders build models on the meta device, which must not take the frequencies along."""
    with torch.device("meta"):
        found = [frequencies(THETA, 8, s) for s in (None, DividedBy((1.0, 2.0, 4.0, 5.0)))]
    assert all(f.device.type == "cpu" for f in found)
