"""The codes of a corpus: which there are, what they are called, and how often each is used."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random

from plant_datasets.synthetic_clinic.vocabulary import CONDITIONS, ORGANS, QUALIFIERS, Condition, Organ, Qualifier


@dataclass(frozen=True)
class Code:
    """A label, such as `C12.3`: chapter C (kidney), condition 12, qualifier 3. The family C12 is its parent."""

    id: str
    organ: Organ
    condition: Condition
    qualifier: Qualifier

    @property
    def family(self) -> str:
        """The id without its qualifier."""
        return self.id.partition(".")[0]

    @property
    def title(self) -> str:
        """What a list of codes would call it."""
        return f"{self.condition.nouns[0].capitalize()} of {self.organ.nouns[0]}, {self.qualifier.title}"


def choose_codes(count: int, rng: Random) -> list[Code]:
    """Codes in the order of their frequency, most frequent first.

    They come in families of three to eight that differ by qualifier only, so that related codes share words; when the families run
    out (beyond about 1,600 codes) the missing members are filled in.
    """
    families = list(product(ORGANS, enumerate(CONDITIONS, start=1)))
    rng.shuffle(families)
    chosen: list[Code] = []
    left_out: list[Code] = []
    for organ, (number, condition) in families:
        members = [Code(f"{organ.letter}{number:02d}.{digit}", organ, condition, qualifier) for digit, qualifier in enumerate(QUALIFIERS)]
        rng.shuffle(members)
        size = rng.randint(3, 8)
        chosen += members[:size]
        left_out += members[size:]
    codes = (chosen + left_out)[:count]
    rng.shuffle(codes)
    return codes


def weigh(count: int) -> list[float]:
    """How often the code of each rank is used, relative to others: a power law with a flattened head."""
    return [(rank + 6) ** -1.2 for rank in range(count)]
