"""Protocol families, as the compiled part knows them: how many parties, against whom, and what has to be prepared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .native import native


@dataclass(frozen=True)
class Protocol:
    """What the Python side has to know of a family."""

    name: str
    about: str
    """Who computes, in a few words."""
    collusion: str
    """Who, taken together, learns everything, and who does not: a sentence."""
    parties: int
    """How many compute: as few as the family does with."""
    most_parties: int
    dealer: bool
    """Whether a dealer, who is no party, prepares what runs use up, where nobody chooses."""
    dealer_where: str | None
    """What a deployment says that wants a dealer, as ``helper = "dealer"``; ``None`` where it has no choice."""
    uses_up: str | None
    """What a run uses up and somebody prepares before it, in a word; ``None`` where runs use up nothing."""
    streams: bool
    """Whether that can come as a stream while runs use it up."""
    trains: bool
    """Whether states outlive runs, as training needs it."""
    withstands: tuple[str, ...]
    """Kinds of parties that it is secure against, the default first."""

    def count(self, parties: int | None) -> int:
        """How many compute; ``ValueError`` for a number with which the family does not work."""
        if parties is None:
            return self.parties
        if not self.parties <= parties <= self.most_parties:
            can = f"{self.parties}" if self.parties == self.most_parties else f"{self.parties} to {self.most_parties}"
            raise ValueError(f"protocol '{self.name}' computes with {can} parties, not {parties}")
        return parties

    def has_dealer(self, parameters: Mapping[str, str | int]) -> bool:
        """Whether a deployment with these parameters has a dealer."""
        if self.dealer_where is None:
            return self.dealer
        name, word = self.dealer_where.replace('"', "").split(" = ")
        return parameters.get(name) == word


class _Protocols(Mapping[str, Protocol]):
    """The families by name. Each look-up asks the compiled part, so that importing this module does not need it."""

    def __getitem__(self, name: str) -> Protocol:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    @staticmethod
    def _all() -> dict[str, Protocol]:
        return {
            facts["name"]: Protocol(
                name=facts["name"],
                about=facts["about"],
                collusion=facts["collusion"],
                parties=facts["parties"][0],
                most_parties=facts["parties"][1],
                dealer=facts["dealer"],
                dealer_where=facts["dealer_where"],
                uses_up=facts["uses_up"],
                streams=facts["streams"],
                trains=facts["trains"],
                withstands=tuple(facts["withstands"]),
            )
            for facts in native().protocols()
        }


PROTOCOLS: Mapping[str, Protocol] = _Protocols()


def choose(protocol: str, security: str | None) -> tuple[Protocol, str]:
    """The family and what it has to withstand; ``ValueError`` for combinations that do not exist."""
    family = PROTOCOLS.get(protocol)
    if family is None:
        raise ValueError(f"no protocol '{protocol}'; this version has {', '.join(PROTOCOLS)}")
    if security is None:
        return family, family.withstands[0]
    if security not in family.withstands:
        others = [p.name for p in PROTOCOLS.values() if security in p.withstands]
        remedy = f"; choose protocol={others[0]!r}" if others else ""
        raise ValueError(
            f"protocol '{protocol}' takes security={' or '.join(map(repr, family.withstands))}, "
            f"not {security!r}{remedy}"
        )
    return family, security


def choose_training(protocol: str, security: str | None) -> tuple[Protocol, str]:
    """As :func:`choose`, for families that train; ``ValueError`` for others, with the names of those."""
    family, security = choose(protocol, security)
    if not family.trains:
        others = " or ".join(f"protocol={p.name!r}" for p in PROTOCOLS.values() if p.trains)
        raise ValueError(f"protocol '{protocol}' is for inference and does not train; choose {others}")
    return family, security
