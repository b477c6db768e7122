"""Which recordings train, which choose, which judge: by content, so that no copy leaks."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Literal

Side = Literal["train", "val", "test"]
SIDES: tuple[Side, ...] = ("train", "val", "test")


@dataclass(frozen=True)
class Split:
    """Three sides, each a mapping from recording name to the SHA-256 of its content."""

    dataset: str
    name: str
    train: Mapping[str, str]
    val: Mapping[str, str]
    test: Mapping[str, str]

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for side in SIDES:
            for name, content in self[side].items():
                if content in seen:
                    raise ValueError(
                        f"split {self.name!r}: {side}/{name} has the same content as "
                        f"{seen[content]}; expected each recording once"
                    )
                seen[content] = f"{side}/{name}"

    def __getitem__(self, side: Side) -> Mapping[str, str]:
        """The recordings of one side."""
        return {"train": self.train, "val": self.val, "test": self.test}[side]

    def side_of(self, content: str) -> Side | None:
        """Where a recording of some content is, whatever its name."""
        return next((side for side in SIDES if content in self[side].values()), None)

    @cached_property
    def sha256(self) -> str:
        """One hash of everything that decides a figure: which content is on which side."""
        sides = {side: sorted(self[side].values()) for side in SIDES}
        return hashlib.sha256(json.dumps(sides, sort_keys=True).encode()).hexdigest()

    @classmethod
    def load(cls, dataset: str, name: str) -> "Split":
        """A split that ships with the package."""
        folder = files("ginio.data") / "splits"
        source = folder / f"{dataset}-{name}.json"
        if not source.is_file():
            found = sorted(f.name.removesuffix(".json") for f in folder.iterdir())
            raise ValueError(f"no split {dataset}-{name}; expected one of {', '.join(found)}")
        return cls(**json.loads(source.read_text(encoding="utf-8")))
