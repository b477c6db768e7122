"""What may happen to the bytes of a file, and what may come of it."""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ginio.data.table import DataError

Result = TypeVar("Result")
Damage = Callable[[bytes], bytes]
TELLING = b"\x00\x1f\x8b\xff\xef\r\n\t ,;.-+eEnNiIfa_019#\"'"


def one_mutation(kind: str, place: float, byte: int) -> Damage:
    """A byte replaced, deleted or inserted, or the end cut off, at a part of the length."""

    def damage(good: bytes) -> bytes:
        i = int(place * len(good))
        change = {
            "replace": bytes([byte]) + good[i + 1 :],
            "delete": good[i + 1 :],
            "insert": bytes([byte]) + good[i:],
            "cut": b"",
        }
        return good[:i] + change[kind]

    return damage


def mutations() -> SearchStrategy[Damage]:
    """Up to six changes, one after the other."""
    kinds = st.sampled_from(("replace", "delete", "insert", "replace", "delete", "insert", "cut"))
    places = st.floats(0, 1, exclude_max=True)
    values = st.one_of(st.sampled_from(list(TELLING)), st.integers(0, 255))
    each = st.lists(st.builds(one_mutation, kinds, places, values), min_size=1, max_size=6)

    def chain(steps: list[Damage]) -> Damage:
        def damage(good: bytes) -> bytes:
            for step in steps:
                good = step(good)
            return good

        return damage

    return each.map(chain)


def attempt(act: Callable[[], Result]) -> Result | DataError:
    """What an act gives, be it a refusal; anything else that is raised is a fault."""
    try:
        return act()
    except DataError as error:
        return error
