"""How fast words are counted: as they stand, and as lemmas on first sight (cold) and again (warm).

`python -m tests.benchmarks.analyser`. The texts are drawn: the forms that simplemma knows in a language, in random order, by Zipf's law.
Seconds are of the processor; loading simplemma's dictionary is timed by itself.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from simplemma.strategies.dictionaries import DefaultDictionaryFactory

from plant_cli.data.corpus_files import AnalyserRecord
from plant_cli.data.word_analysis import PLAIN, WordAnalyser

DOCUMENT = 500  # words


def draw_texts(language: str, words: int, forms: int) -> list[str]:
    """Texts of as many words as asked for, of as many forms at most."""
    chance = np.random.default_rng(0)
    known = sorted({str(form) for form in DefaultDictionaryFactory().get_dictionary(language) if str(form).isalpha()})
    chosen = [known[place] for place in chance.permutation(len(known))[:forms]]
    shares = 1 / (np.arange(len(chosen)) + 2.7)
    drawn = chance.choice(len(chosen), size=words, p=shares / shares.sum())
    return [" ".join(chosen[place] for place in part) for part in np.array_split(drawn, max(1, words // DOCUMENT))]


def time_processor(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(language: str, words: int, forms: int) -> str:
    """A row of the table."""
    texts = draw_texts(language, words, forms)
    counted = len({form for text in texts for form in text.split()})
    found = WordAnalyser(AnalyserRecord(methods={language: "lemmas"}))
    seconds = [
        time_processor(lambda: [PLAIN.spell(text) for text in texts]),
        time_processor(lambda: WordAnalyser(AnalyserRecord(methods={language: "lemmas"})).spell("a")),
        *(time_processor(lambda: [found.spell(text) for text in texts]) for _ in range(2)),
    ]
    stand, load, cold, warm = seconds
    return f"| {language} | {counted:,} | {words / stand:,.0f} | {load:.2f} s | {words / cold:,.0f} | {words / warm:,.0f} |"


def main() -> None:
    """Measure every language that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", nargs="+", default=["en", "de", "es", "fi"])
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--forms", type=int, default=100_000)
    options = parser.parse_args()
    print("| language | forms | as they stand | dictionary | lemmas, cold | lemmas, warm |\n|---|--:|--:|--:|--:|--:|")
    for language in options.languages:
        print(measure(language, options.words, options.forms), flush=True)


if __name__ == "__main__":
    main()
