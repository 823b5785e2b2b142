from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from conformance.http.prometheus import parse_prometheus

TEXT = b"""# HELP a:tokens_total What it counts.
# TYPE a:tokens_total counter
a:tokens_total{model="x y",note="a } b \\" c"} 12
a:tokens_total{model="z"} 1.5e3 1700000000000
# TYPE a:requests_running gauge
a:requests_running 0
# TYPE b_tokens counter
b_tokens_total 3
untyped_tokens_total 4
token_seconds_bucket{le="+Inf"} 7
odd NaN
"""


def test_samples() -> None:
    """Series keep their labels, whatever stands in them; values are numbers."""
    found = parse_prometheus(TEXT)
    assert found.faults == ()
    assert found.samples['a:tokens_total{model="x y",note="a } b \\" c"}'] == 12
    assert found.samples['a:tokens_total{model="z"}'] == 1500
    assert found.samples["a:requests_running"] == 0
    assert math.isnan(found.samples["odd"])


def test_counters() -> None:
    """Counters are those that are typed so, or end in _total; gauges and buckets are none."""
    names = {series.partition("{")[0] for series in parse_prometheus(TEXT).counters("token")}
    assert names == {"a:tokens_total", "b_tokens_total", "untyped_tokens_total"}


def test_faults() -> None:
    """Lines that are no samples are counted, and quoted nowhere."""
    assert parse_prometheus(b"fine 1\nno value\n1bad 2\nx 1_000\n\n# note\n").faults == (2, 3, 4)


@given(st.binary(max_size=200))
def test_anything(body: bytes) -> None:
    """Whatever comes, nothing is raised."""
    parse_prometheus(body)
