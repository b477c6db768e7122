"""Seeds, precisions and tolerances shared by all tests."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("ci", max_examples=20, derandomize=True, deadline=None)
settings.register_profile("deep", max_examples=500, deadline=None)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture
def tol(dtype: torch.dtype) -> float:
    """What a handful of well-conditioned operations may lose."""
    return {torch.float32: 1e-5, torch.float64: 1e-13}[dtype]
