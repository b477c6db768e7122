"""Fitting Σ alone, on a mean that is given: what is left of a network is held as it was trained."""

from collections.abc import Iterator

from torch import nn

COVARIANCE = "covariance"


def take_mean(network: nn.Module, given: nn.Module) -> None:
    """Copy everything but the covariance head from a trained network, and freeze it.

    Raises:
        ValueError: there is no head of its own to fit, or the two do not fit each other.
    """
    names = dict(mean_parts(network))
    if len(names) == len(dict(network.named_children())):
        found = ", ".join(names)
        raise ValueError(f"expected parts named {COVARIANCE}... to fit; found {found}")
    for name, part in names.items():
        try:
            part.load_state_dict(given.get_submodule(name).state_dict())
        except (AttributeError, RuntimeError) as error:
            raise ValueError(
                f"the given mean does not fit this network's {name}: {error}"
            ) from None
    network.requires_grad_(requires_grad=True)
    for part in names.values():
        part.requires_grad_(requires_grad=False)


def hold_mean(network: nn.Module) -> None:
    """Let what is frozen answer as it does at work: no dropout, no statistics of batches."""
    for _, part in mean_parts(network):
        part.eval()


def mean_parts(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """All parts of a network but those that make its covariance."""
    for name, part in network.named_children():
        if not name.startswith(COVARIANCE):
            yield name, part
