"""How a code is put into words: synonyms, compounds, eponyms, abbreviations and slips of the pen."""

from __future__ import annotations

from random import Random

from plant_datasets.synthetic_clinic.codes import Code

MISSPELT = 0.04  # of the longer words in mentions
_NAMED = ("disease", "syndrome")


def phrase(code: Code, rng: Random) -> str:
    """A mention of a code in full, in one of its many wordings, perhaps misspelt."""
    core = _word_condition(code, rng)
    before, after = code.qualifier.before, code.qualifier.after
    if not before:
        wording = core
    elif rng.random() < 0.7:
        wording = f"{rng.choice(before)} {core}"
    else:
        wording = f"{core} {rng.choice(after)}"
    return " ".join(misspell(word, rng) for word in wording.split(" "))


def abbreviate(code: Code) -> str:
    """Initials, such as ARF for acute renal failure; other codes may share them, as in life."""
    words = [*code.qualifier.before[:1], code.organ.adjectives[0], code.condition.nouns[0]]
    return "".join(word[0] for word in words).upper()


def name_drug(code: Code) -> str:
    """The drug that is given for the code's family."""
    return code.organ.drug + code.condition.drug


def misspell(word: str, rng: Random) -> str:
    """The word, or now and then the word with a letter left out, doubled, or exchanged with the next."""
    if len(word) < 6 or rng.random() >= MISSPELT:
        return word
    at = rng.randrange(1, len(word) - 2)
    left, letter, following, right = word[:at], word[at], word[at + 1], word[at + 2 :]
    return left + rng.choice((following, letter + letter + following, following + letter)) + right


def _word_condition(code: Code, rng: Random) -> str:
    organ, condition = code.organ, code.condition
    ways = [
        f"{rng.choice(organ.adjectives)} {rng.choice(condition.nouns)}",
        f"{rng.choice(condition.nouns)} of the {rng.choice(organ.nouns)}",
    ]
    if condition.suffix:
        ways.append(organ.root + condition.suffix)
    if rng.random() < 0.2:
        return f"{organ.eponym}{condition.eponym}'s {rng.choice(_NAMED)}"
    return rng.choice(ways)
