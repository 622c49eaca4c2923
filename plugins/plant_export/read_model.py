"""Labels for texts by an exported model without a network: needs Python 3.11, numpy and scipy, and
neither plant nor PyTorch.

    python read_model.py --text "acute bronchitis with cough"
    python read_model.py < texts.txt          (a line is a text; a line of JSON comes out for each)

    from read_model import Model
    Model("model-folder").suggest("acute bronchitis with cough")

Labels and probabilities are those of `plant suggest`. Words are reduced by the package that the
model was trained with, if by any: `pip install simplemma` (lemmas) or `pip install snowballstemmer`
(stems). `plant export` copies this file into its folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit, logit

_Values = npt.NDArray[Any]
_Tensors = Mapping[str, _Values]
_Counted = Mapping[str, float]
_View = tuple[_Values, _Values, float]
"""Labels that are listed, ascending, their scores, and the score that all others have at most."""

_LISTED = 200  # labels that a scorer lists
_POSTINGS, _CANDIDATES, _LABELS_COMPARED = (
    20_000,
    300,
    1_000,
)  # of a search among very many documents, or labels
_REVIEWED_FROM = 0.1


def _read_arrays(path: Path) -> dict[str, _Values]:
    """The arrays of a file of safetensors, each in fewer bytes."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    layouts = json.loads(json.loads(header.pop("__metadata__")["plant"])["arrays"])
    spans = {name: [start + place for place in one["data_offsets"]] for name, one in header.items()}
    return {
        name: _unpack(np.frombuffer(content[first:last], dtype=np.uint8), layouts[name])
        for name, (first, last) in spans.items()
    }


def _unpack(packed: _Values, layout: Mapping[str, Any]) -> _Values:
    """Values by their first bytes, their second ones, and so on, or whole numbers by the
    difference of each from the one before.
    """
    kind, count, pieces = (
        np.dtype(layout["type"]),
        int(np.prod(layout["shape"])),
        np.split(packed, np.cumsum(layout["parts"])[:-1]),
    )
    if not layout["step"]:
        return _join(pieces, kind, count).reshape(layout["shape"])
    others, large = layout["sizes"]
    ones, small = (
        np.unpackbits(_inflate(pieces[0], -(-count // 8)), count=count),
        _inflate(pieces[1], others),
    )
    more, differences = small.astype(kind), np.ones(count, dtype=kind)
    more[small == 255] = _join(pieces[2:], kind, large)
    differences[ones == 0] = more
    return np.cumsum(differences * kind.type(layout["step"]), dtype=kind)


def _join(pieces: Sequence[_Values], kind: np.dtype[Any], count: int) -> _Values:
    return np.ascontiguousarray(
        np.stack([_inflate(piece, count) for piece in pieces], axis=1)
    ).view(kind)[:, 0]


def _inflate(piece: _Values, count: int) -> _Values:
    return (
        piece if len(piece) == count else np.frombuffer(zlib.decompress(piece.data), dtype=np.uint8)
    )


def _strings(packed: _Values) -> list[str]:
    found: list[str] = json.loads(packed.tobytes())
    return found


def _matrix(name: str, tensors: _Tensors) -> csr_array:
    data, indices, ends = (tensors[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    matrix = csr_array((data, indices, ends), shape=tuple(tensors[f"{name}.shape"].tolist()))
    matrix.check_format(full_check=True)
    return matrix


# Words


_UNSPACED = (  # scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Japanese, Chinese
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U000323af"
)
_LATIN = "A-Za-z\xaa\xb5\xba\xc0-\xd6\xd8-\xf6\xf8-\u024f"
_LATIN_TEXT = re.compile("[\\x00-\\u024f\\u2010-\\u205e\\u20ac]*")
_MOST_DIGITS = 4
_NOTHING = "\U0010ffff"  # a class of characters must not be empty


class _Alphabet:
    """The patterns of words, by classes of characters: letters, marks within words, digits, and
    letters of scripts without spaces.
    """

    def __init__(
        self, letter: str, mark: str, digit: str, unspaced: str, gap: str, joint: str
    ) -> None:
        inner, either, signs = f"[{letter}{mark}]", f"[{letter}{mark}{digit}]", f"[.,:/{joint}]"
        short = rf"(?<![{digit}])(?:[.:]?[{gap}]|[{joint}])[{digit}]{{1,2}}+(?:\.[{digit}]{{1,2}}+)?+(?!{either}|{signs}[{digit}])"
        numbers = rf"(?:(?<=[{digit}]){signs}[{digit}]++|{signs}[{digit}]++(?!{inner}))(?:{signs}[{digit}]++)*+"
        tail = rf"(?:(?=[.,:/+{gap}{joint}][{digit}{gap}+])(?:{short}|{numbers}|\+\+(?!{inner}))|\#(?!{inner}))?+"
        chunk = rf"[{letter}{digit}]{either}*+{tail}|(?<!{either}|\.)\.[{letter}]{inner}{either}*+"
        run = rf"(?:[{unspaced}][{mark}]*+)++"
        numbered = rf"(?:[{digit}]{{1,2}}+(?=[{unspaced}]))?+(?:[{unspaced}][{mark}]*+(?:[{digit}]{{1,2}}+(?![{digit}]))?+)++"
        self.rules = {
            "letters": re.compile(rf"[{letter}]{inner}*+|{run}"),
            "mixed": re.compile(rf"{numbered}|{chunk}"),
        }
        self.unspaced = re.compile(f"[{unspaced}]")
        self.signs = re.compile(rf"[{unspaced}][{mark}]*+|[{digit}]++")
        self.letters = re.compile(rf"[{letter}]{inner}*+")
        self.parts = re.compile(
            rf"(\.?[{letter}{mark}{digit}]++)(\+\+|\#)?+(?:(?:[.:]?[{gap}]|([.,:/{joint}]))([{digit}]++)(.*+))?+",
            re.DOTALL,
        )
        self.version = re.compile(rf"(?:\.[{digit}]{{1,2}}+)?")
        self.head = re.compile(rf"([{letter}]{inner}*+)([{digit}][{digit}.]*+)?")

    def cut(self, chunk: str) -> list[str]:
        """The words of a chunk of text, longer ones first."""
        if self.unspaced.search(chunk):
            return list(self._cut_unspaced(chunk))
        match = self.parts.match(chunk)
        assert match is not None
        head, sign, joint, number, rest = match.groups("")
        letters = [(_normalise(run[0]), *run.span()) for run in self.letters.finditer(head)]
        if not letters:
            return [_western(chunk)] if len(chunk) <= _MOST_DIGITS and chunk.isdecimal() else []
        found, behind = [], joint if head[-1].isdecimal() else ""
        if 0 < len(number) <= 2 and behind in ("", ".") and self.version.fullmatch(rest):
            found += [
                _western(head + behind + number + rest),
                *([_western(head + behind + number)] if rest else []),
            ]
        if sign:
            found.append(_western(head + sign))
        if letters[0][1:] != (0, len(head)):
            found.append(_western(head))
        found += [word for word, *_ in letters]
        return (
            [*found, _western(number)]
            if number and not rest and len(number) <= _MOST_DIGITS
            else found
        )

    def _cut_unspaced(self, chunk: str) -> Iterator[str]:
        before = None
        for match in self.signs.finditer(chunk):
            if before is not None:
                yield _western(chunk[before : match.end()])
            yield _western(match[0])
            before = match.start()


@cache
def _alphabet(latin: bool) -> _Alphabet:
    """Of texts in Latin letters, or of all."""
    if latin:
        return _Alphabet(
            _LATIN, _NOTHING, "0-9", _NOTHING, "\\x20\\xa0\\u202f", "\\-\\u2010\\u2011\\u2013"
        )
    apart, kinds = (
        re.compile(f"[{_UNSPACED}]"),
        {kind: ["\u200c", "\u200d"] * (kind == "M") for kind in "LMNU"},
    )
    for sign in map(chr, range(sys.maxunicode)):
        category = unicodedata.category(sign)
        if category[0] in "LM" or category == "Nd":
            kind = "U" if category[0] == "L" and apart.match(sign) else category[0]
            kinds[kind].append(sign)
    letter, mark, digit, unspaced = map(_ranges, kinds.values())
    return _Alphabet(letter, mark, digit, unspaced, "\\x20\\xa0\\u202f", "\\-\\u2010\\u2011\\u2013")


def _ranges(signs: Iterable[str]) -> str:
    """A class of characters, by its ranges."""
    codes = np.unique(np.array([ord(sign) for sign in signs]))
    parts = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
    return "".join(f"{chr(part[0])}-{chr(part[-1])}" for part in parts)


def _normalise(word: str) -> str:
    return unicodedata.normalize("NFC", word.lower())


def _western(word: str) -> str:
    """With digits from 0 to 9."""
    word = _normalise(word)
    return (
        word if word.isascii() else "".join(str(unicodedata.decimal(sign, sign)) for sign in word)
    )


def _spell(text: str, rule: str) -> list[str]:
    """The words of a text."""
    if rule == "names":
        return [_normalise(name) for name in text.split()]
    alphabet = _alphabet(_LATIN_TEXT.fullmatch(text) is not None)
    chunks = alphabet.rules[rule].findall(text.lower() if text.isascii() else text)
    return list(chain.from_iterable(map(alphabet.cut, chunks)))


REDUCERS = "none", "lemmas", "stems"  # analysers that this file knows
_CODES = {"no": "nb", "hr": "hbs", "sr": "hbs"}
_ALGORITHMS = (
    "ar=arabic ca=catalan cs=czech da=danish de=german el=greek en=english eo=esperanto "
    "es=spanish et=estonian eu=basque fa=persian "
    "fi=finnish fr=french ga=irish hi=hindi hu=hungarian hy=armenian id=indonesian it=italian "
    "lt=lithuanian nl=dutch no=norwegian "
    "pl=polish pt=portuguese ro=romanian ru=russian sr=serbian sv=swedish ta=tamil tr=turkish"
)


def _load_package(name: str, recorded: Mapping[str, str]) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"the model reduces words with {name}: pip install {name}=={recorded.get(name, '')}".rstrip(
                "="
            )
        ) from error


def _find_reducer(
    method: str, language: str, packages: Mapping[str, str]
) -> Callable[[str], str] | None:
    """What reduces a word of letters."""
    if method == "none":
        return None
    if method == "stems":
        algorithm = dict(pair.split("=") for pair in _ALGORITHMS.split())[language]
        stem: Callable[[str], str] = (
            _load_package("snowballstemmer", packages).stemmer(algorithm).stemWord
        )
        return stem
    lemmatize, code = _load_package("simplemma", packages).lemmatize, _CODES.get(language, language)

    def reduce(word: str) -> str:
        noun = word.capitalize()
        return (
            noun if code == "de" and lemmatize(noun, "de") == noun else str(lemmatize(word, code))
        )

    return reduce


class _Analyser:
    """Finds the words of texts, and reduces them by their language."""

    def __init__(self, record: Mapping[str, Any], languages: Path) -> None:
        self._rule, packages = record.get("words", "letters"), record.get("packages", {})
        self._reducers = {
            code: _find_reducer(method, code, packages)
            for code, method in record.get("methods", {}).items()
        }
        self._main = next(iter(self._reducers.values()), None)
        self._reduced: dict[tuple[Any, str], str] = {}
        self._languages: Mapping[str, Any] = {}
        if len(self._reducers) > 1 and any(self._reducers.values()):
            self._languages = json.loads(languages.read_text("utf-8"))
        self._codes: dict[str, list[str]] = {}
        for code, written in self._languages.get("words", {}).items():
            for word in written.split():
                self._codes.setdefault(word, []).append(code)

    def spell(self, text: str) -> list[str]:
        reducer = (
            self._reducers.get(self._find_language(text[:2000]) or "", self._main)
            if self._languages
            else self._main
        )
        words = _spell(text, self._rule)
        return words if reducer is None else [self._reduce(reducer, word) for word in words]

    def _reduce(self, reducer: Callable[[str], str], word: str) -> str:
        if (reducer, word) not in self._reduced:
            match = _alphabet(_LATIN_TEXT.fullmatch(word) is not None).head.fullmatch(word)
            letters, number = (match[1], match[2] or "") if match else ("", word)
            self._reduced[reducer, word] = (
                _normalise(reducer(letters) if letters else "") or letters
            ) + number
        return self._reduced[reducer, word]

    def _find_language(self, text: str) -> str | None:
        """By script, or by function words."""
        if not text.isascii():
            letters = sum(map(str.isalpha, text))
            counts = {
                code: len(re.findall(f"[{signs}]", text))
                for code, signs in self._languages["scripts"].items()
            }
            if counts["ja"] > self._languages["kana"] * letters:
                return "ja"
            code: str = max(counts, key=lambda code: counts[code])
            if counts[code] > self._languages["script"] * letters:
                return code
        words, hits, distinct = Counter(_spell(text, "letters")), Counter[str](), Counter[str]()
        for word, count in words.items():
            for code in self._codes.get(word, ()):
                hits[code] += count
                distinct[code] += 1
        least = self._languages["share"] * words.total()
        enough = [
            code
            for code in hits
            if distinct[code] >= self._languages["distinct"] and hits[code] >= least
        ]
        return max(enough, key=lambda code: hits[code], default=None)


# Scorers


def _top(values: _Values, k: int, labels: _Values | None = None) -> _Values:
    """Positions of the k largest, by rising label; a smaller label wins every tie."""
    labels = np.arange(len(values)) if labels is None else labels
    chosen = np.lexsort((labels, -values))[:k]
    return chosen[np.argsort(labels[chosen])]


def _list_best(values: _Values, labels: _Values | None = None) -> _View:
    """The best labels by scores [L], or of some labels [n]."""
    labels = np.arange(len(values)) if labels is None else labels
    chosen = _top(values, _LISTED, labels)
    scores = values[chosen].astype(np.float32)
    least = float(scores.min(initial=np.inf))
    return (
        labels[chosen],
        scores,
        least if len(scores) and (len(scores) >= _LISTED or least < 0) else 0.0,
    )


def _list_positive(values: _Values) -> _View:
    there = np.flatnonzero(values)
    return _list_best(values[there], there)


def _cut_word(word: str) -> list[str]:
    """Its character n-grams, with its ends."""
    text = f" {word} "
    return [
        text[start : start + n]
        for n in range(3, min(5, len(text)) + 1)
        for start in range(len(text) - n + 1)
    ] or [text]


def _count_pieces(words: _Counted) -> Counter[str]:
    counted: Counter[str] = Counter()
    for word, number in words.items():
        for piece in _cut_word(word):
            counted[piece] += number  # type: ignore[assignment]
    return counted


def _places(terms: Iterable[str]) -> dict[str, int]:
    return {term: place for place, term in enumerate(terms)}


def _vector(counted: _Counted, places: Mapping[str, int], idf: _Values) -> csr_array:
    """The tf-idf vector of counts, csr [1, V] of length 1."""
    known = sorted((places[term], count) for term, count in counted.items() if term in places)
    columns = np.array([place for place, _ in known], dtype=np.int32)
    values = (
        (1 + np.log(np.array([count for _, count in known], dtype=np.float64))) * idf[columns]
    ).astype(np.float32)
    vector = csr_array((values, columns, [0, len(columns)]), shape=(1, len(places)))
    length = np.sqrt(vector.multiply(vector).sum(axis=1))[0]
    scaled = (values * (1.0 / (length if length > 0 else 1.0))).astype(np.float32)
    return csr_array(
        (scaled[::-1], columns[::-1], [0, len(columns)]), shape=vector.shape
    )  # plant adds products up in this order, too


class _Vectoriser:
    """Vectors whose products are the mean of the cosines by words and by n-grams."""

    def __init__(self, tensors: _Tensors) -> None:
        words, pieces = (_places(_strings(tensors[name])) for name in ("words", "pieces"))
        self._words, self._pieces = words, pieces
        self._idf = np.split(tensors["idf"], [len(words)])

    def transform(self, words: Sequence[str]) -> csr_array:
        counted = Counter(words)
        parts = [_vector(counted, self._words, self._idf[0])]
        if self._pieces:
            parts.append(_vector(_count_pieces(counted), self._pieces, self._idf[1]))
        factor = np.float32(np.sqrt(1 / len(parts)))
        columns = np.concatenate(
            [parts[0].indices, *(part.indices + len(self._words) for part in parts[1:])]
        )
        values = np.concatenate([part.data * factor for part in parts])
        return csr_array(
            (values, columns, [0, len(values)]), shape=(1, len(self._words) + len(self._pieces))
        )


def _train(tensors: _Tensors) -> csr_array:
    """Vectors of the training documents, by which terms each has, and how often those that it
    has more than once.
    """
    terms, sizes, weights = (
        tensors["train.terms"],
        tensors["train.sizes"],
        tensors["idf"][tensors["train.terms"]],
    )
    often = np.flatnonzero(np.unpackbits(tensors["train.repeated"], count=len(terms)))
    weights[often] *= 1 + np.log(tensors["train.counts"].astype(np.float64))
    weights *= np.repeat(tensors["train.scales"].ravel(), sizes.ravel())
    cells = (
        weights * np.float32(np.sqrt(1 / sizes.shape[1])),
        terms,
        np.concatenate([[0], np.cumsum(sizes.sum(axis=1))]),
    )
    vectors = csr_array(cells, shape=(len(sizes), len(tensors["idf"])))
    vectors.check_format(full_check=True)
    return vectors


class _Nearest:
    """The nearest of very many rows: the rarest terms of a document name candidates, which are
    compared by all terms.
    """

    def __init__(self, rows: csr_array, candidates: int) -> None:
        self._rows, self._candidates = rows, candidates
        self._by_term = csr_array(rows.T)
        self._by_term.sort_indices()

    def find(self, vector: csr_array, count: int) -> tuple[_Values, _Values]:
        sizes = np.minimum(np.diff(self._by_term.indptr)[vector.indices], _POSTINGS)
        order = np.argsort(sizes, kind="stable")
        rare = np.sort(order[np.cumsum(sizes[order]) <= _POSTINGS])
        sums, near = (
            np.zeros(self._rows.shape[0], dtype=np.float32),
            np.zeros(self._rows.shape[0], dtype=np.bool_),
        )
        for place in rare.tolist():
            term = vector.indices[place]
            inside = slice(*self._by_term.indptr[term : term + 2])
            rows, values = self._by_term.indices[inside], self._by_term.data[inside]
            chosen = _top(values, _POSTINGS) if len(rows) > _POSTINGS else slice(None)
            sums[rows[chosen]] += vector.data[place] * values[chosen]
            near[rows[chosen]] = True
        found = np.flatnonzero(near)
        found = found[_top(sums[found], self._candidates, found)]
        cosines = self._rows[found] @ vector.toarray()[0]
        best = _top(cosines, count, found)
        return found[best], cosines[best]


def _score_words(
    options: Mapping[str, Any], tensors: _Tensors
) -> Callable[[Sequence[str]], list[_View]]:
    places, relevance = _places(_strings(tensors["words"])), _matrix("relevance", tensors)
    nearest, by_word = (
        _Nearest(relevance, _LABELS_COMPARED) if relevance.shape[0] > options["exact"] else None,
        csr_array(relevance.T),
    )

    def score(words: Sequence[str]) -> list[_View]:
        vector = _vector(Counter(words), places, tensors["idf"])
        if nearest is not None:
            labels, cosines = nearest.find(vector, _LISTED)
            return [_list_best(cosines, labels)]
        return [_list_positive(np.maximum((vector @ by_word).toarray()[0], 0))]

    return score


def _score_linear(
    options: Mapping[str, Any], tensors: _Tensors
) -> Callable[[Sequence[str]], list[_View]]:
    vectoriser, by_term = _Vectoriser(tensors), csr_array(_matrix("weights", tensors).T)
    return lambda words: [_list_best((vectoriser.transform(words) @ by_term).toarray()[0])]


def _score_neighbours(
    options: Mapping[str, Any], tensors: _Tensors
) -> Callable[[Sequence[str]], list[_View]]:
    gold, views = _matrix("gold", tensors), range(2 if options["lead"] else 1)
    parts = [
        {name[2:]: part for name, part in tensors.items() if name.startswith(f"{view}.")}
        for view in views
    ]
    trained = [(_Vectoriser(part), _train(part)) for part in parts]
    nearest = (
        [_Nearest(train, _CANDIDATES) for _, train in trained]
        if gold.shape[0] > options["exact"]
        else []
    )

    def compare(words: Sequence[str], view: int) -> _View:
        vectoriser, train = trained[view]
        vector = vectoriser.transform(words)
        if nearest:
            near, cosines = nearest[view].find(vector, options["neighbours"])
        else:
            every = train @ vector.toarray()[0]
            near = _top(every, options["neighbours"])
            cosines = every[near]
        weights = np.maximum(cosines, 0.0) ** options["power"]
        return _list_positive(
            (gold[near].T @ (weights / (weights.sum() or 1.0)).astype(np.float64)).astype(
                np.float32
            )
        )

    return lambda words: [
        compare(words[: options["lead"]] if view else words, view) for view in views
    ]


def _score_titles(
    options: Mapping[str, Any], tensors: _Tensors
) -> Callable[[Sequence[str]], list[_View]]:
    places, by_piece, label_of = (
        _places(_strings(tensors["pieces"])),
        csr_array(_matrix("vectors", tensors).T),
        tensors["label_of"],
    )
    passage, lead = options["passage"], options["lead"]

    def compare(passages: Iterable[Sequence[str]]) -> _View:
        best = np.zeros(int(tensors["labels"][0]), dtype=np.float32)
        for words in passages:
            vector = _vector(_count_pieces(Counter(words)), places, tensors["idf"])
            cosines = csr_array(vector @ by_piece)
            np.maximum.at(best, label_of[cosines.indices], cosines.data)
        return _list_positive(best)

    def score(words: Sequence[str]) -> list[_View]:
        step = max(1, passage // 2)
        starts = range(0, max(1, -(-(len(words) - passage + step) // step)) * step, step)
        views = [compare([words])]
        if passage:
            views.append(compare(words[start : start + passage] for start in starts))
        return [*views, compare([words[:lead]])] if lead else views

    return score


BUILT_IN_SCORERS = {
    "words": _score_words,
    "titles": _score_titles,
    "neighbours": _score_neighbours,
    "linear": _score_linear,
}


# The model


class _Weights:
    """Weights of sources by training frequency: splines in its logarithm."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.knots, self._weights, self._bias = (
            np.array(content[name], dtype=np.float64) for name in ("knots", "weights", "bias")
        )
        self.knows_names = bool(self.knots[0] == 0 and self._weights[:, 0].any())

    def at(self, counts: _Values) -> tuple[_Values, _Values]:
        basis = _spline(counts, self.knots)
        return basis @ self._weights.T, basis @ self._bias


def _spline(counts: _Values, knots: _Values) -> _Values:
    if knots[0] == 0:
        none = counts == 0
        return np.concatenate([none[:, None], _spline(counts, knots[1:]) * ~none[:, None]], axis=1)
    at, logs = np.log(np.maximum(np.abs(counts), 1)), np.log(knots)
    return np.stack([np.interp(at, logs, unit) for unit in np.eye(len(logs))], axis=1)


class _Familiar:
    """How much of a document the model can know."""

    def __init__(self, content: Mapping[str, Any], tensors: _Tensors) -> None:
        self.documents, self.enough, self.share = (
            content[name] for name in ("documents", "enough", "share")
        )
        self._told = dict(
            zip(_strings(tensors["words"]), self._tell(tensors["frequencies"]), strict=True)
        )
        self._told |= dict.fromkeys(_strings(tensors["named"]), float(self._tell(np.zeros(1))[0]))

    def _tell(self, frequencies: _Values) -> _Values:
        told: _Values = np.log((self.documents + 1) / (1 + frequencies))
        return told

    @cached_property
    def _pieces(self) -> set[str]:
        return {piece for word in self._told for piece in _four(word)}

    def _tell_by_pieces(self, word: str) -> float:
        if not word.isalpha() or len(word) < 4:
            return 0.0
        pieces = _four(word)
        share = sum(piece in self._pieces for piece in pieces) / len(pieces)
        return float(share * np.log((self.documents + 1) / 2)) if share >= 0.5 else 0.0

    def trust(self, words: Iterable[str]) -> float:
        """From 0 to 1."""
        distinct = set(words)
        known = distinct & self._told.keys()
        information, share = (
            sum(self._told[word] for word in known),
            (len(known) + 3) / (len(distinct) + 3),
        )
        more = 0.0
        if information < self.enough or share < self.share:
            more = sum(map(self._tell_by_pieces, distinct - known))
        if not known and not more:
            return 0.0
        parts = [(information + more, self.enough), (share, self.share)]
        return float(np.prod([min(1.0, value / least) for value, least in parts if least > 0]))

    def draw(self, logits: _Values, trust: float, counts: _Values) -> _Values:
        """Logits drawn to base rates."""
        if trust == 1:
            return logits
        drawn: _Values = trust * logits + (1 - trust) * logit(
            np.maximum(counts, 0.5) / (self.documents + 1)
        )
        return drawn.astype(np.float32)


def _four(word: str) -> list[str]:
    text = f" {word} "
    return [text[start : start + 4] for start in range(len(text) - 3)]


def _require_whole(root: Path) -> None:
    """`ValueError` if a file that is read is not as it was exported, or if something is no file."""
    for path in root.rglob("*"):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ValueError(f"{path} is a device, a pipe or a socket: a model has regular files")
    recorded = json.loads((root / "export.json").read_text("utf-8"))["files"]
    read = [
        name
        for name in recorded
        if name.startswith("finetune/")
        or name in ("labels.json", "languages.json", "corpus/splits.json")
    ]
    for name in read:
        with (root / name).open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == recorded[name]
        if not whole:
            raise ValueError(f"{root / name} is not as it was exported: export the model again")


class Model:
    """A model that `plant export` wrote, of scorers alone."""

    def __init__(self, folder: Path | str = ".") -> None:
        """Read a folder; `ValueError` if it holds no such model."""
        root = Path(folder)
        source = root / "finetune"
        if (source / "model.json").exists() or not (source / "scorers.json").exists():
            raise ValueError(
                f"{root} holds no model of scorers alone: one with a network needs plant (`plant "
                f"suggest --run {root}`)"
            )
        _require_whole(root)
        content, stored = (
            json.loads((source / "scorers.json").read_text("utf-8")),
            source / "scorers",
        )
        unknown = {entry["name"] for entry in content["scorers"]} - BUILT_IN_SCORERS.keys()
        if unknown:
            raise ValueError(
                f"this file does not know the scorers {', '.join(sorted(unknown))}: use `plant "
                f"suggest --run {root}`"
            )
        shared = (
            _read_arrays(stored / "_shared.safetensors")
            if (stored / "_shared.safetensors").exists()
            else {}
        )

        def read(name: str, elsewhere: Mapping[str, str]) -> _Tensors:
            return {
                **_read_arrays(stored / f"{name}.safetensors"),
                **{part: shared[key] for part, key in elsewhere.items()},
            }

        entries = content["scorers"]
        self._scorers = [
            BUILT_IN_SCORERS[one["name"]](one["options"], read(one["name"], one["shared"]))
            for one in entries
        ]
        self._fusion, self._calibration, self._curves = (
            _Weights(content["fusion"]),
            _Weights(content["calibration"]),
            content["curves"],
        )
        known = content.get("known_words")
        self._known = None if known is None else _Familiar(known, read("_words", known["shared"]))
        self._excluded = set(content.get("excluded", ()))
        splits = json.loads((root / "corpus" / "splits.json").read_text("utf-8"))
        self._analyser = _Analyser(splits.get("analyser", {}), root / "languages.json")
        labels = json.loads((root / "labels.json").read_text("utf-8"))
        self.labels, self.titles = (
            [one["label"] for one in labels],
            [one["title"] for one in labels],
        )
        self._counts = np.array(
            content.get("train_counts") or [one["documents"] for one in labels], dtype=np.int64
        )
        thresholds = json.loads((source / "thresholds.json").read_text("utf-8"))
        self._assign = self._spread(thresholds["value"])
        self._review = self._spread(thresholds.get("review") or _REVIEWED_FROM)

    def _spread(self, value: float | Sequence[float | None]) -> _Values:
        """A threshold for each label."""
        if isinstance(value, int | float):
            return np.full(len(self.labels), float(value))
        return np.array([np.inf if one is None else one for one in value], dtype=np.float64)

    def suggest(self, text: str, limit: int = 10) -> list[dict[str, Any]]:
        """The best labels of a text: `label`, `title`, `score` (a probability), `threshold` and
        `band` (assign, review, reject).
        """
        logits, trust = self.score(text)
        if trust == 0:
            return []
        logits[list(self._excluded)] = -np.inf
        best = np.lexsort((np.arange(len(logits)), -logits))[
            : min(limit, len(logits) - len(self._excluded))
        ]
        scores, found = _distinct(logits[best].astype(np.float64)), []
        for label, score in zip(best.tolist(), scores, strict=True):
            band = (
                "assign"
                if score >= self._assign[label]
                else "review"
                if score >= self._review[label]
                else "reject"
            )
            cut = float(self._assign[label])
            named = {"label": self.labels[label], "title": self.titles[label]}
            found.append(
                {
                    **named,
                    "score": score,
                    "threshold": cut if np.isfinite(cut) else None,
                    "band": band,
                }
            )
        return found

    def score(self, text: str) -> tuple[_Values, float]:
        """Calibrated logits of all labels [L], and how far the text is believed, from 0 (no
        word is known) to 1.
        """
        words = self._analyser.spell(text)
        trust = 1.0 if self._known is None else self._known.trust(words)
        trust = trust if text.strip() else 0.0
        views = [view for score in self._scorers for view in score(words)]
        listed = np.unique(np.concatenate([labels for labels, _, _ in views])).astype(np.int64)
        floors = np.array([floor for _, _, floor in views], dtype=np.float64)
        values = np.repeat(floors[None], len(listed), axis=0)
        for number, (labels, scores, _) in enumerate(views):
            values[np.searchsorted(listed, labels), number] = scores
        every = np.concatenate([values, floors[None]])
        means = every.mean(axis=0)
        spread = np.sqrt(((every - means) ** 2).mean(axis=0))
        scales = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12)
        values, floors = (values - means) * scales, (floors - means) * scales
        logits = self._fuse(values, floors, listed, self._counts)
        if self._fusion.knows_names:  # labels that were added: the better one of examples and names
            by_name = self._fuse(values, floors, listed, np.zeros_like(self._counts))
            logits = np.where(self._counts < 0, np.maximum(logits, by_name), logits)
        logits = self._calibrate(logits)
        return logits if self._known is None else self._known.draw(
            logits, trust, self._counts
        ), trust

    def _fuse(self, values: _Values, floors: _Values, listed: _Values, counts: _Values) -> _Values:
        weights, bias = self._fusion.at(counts)
        logits: _Values = (weights @ floors + bias).astype(np.float32)
        logits[listed] = (values * weights[listed]).sum(axis=1) + bias[listed]
        return logits

    def _calibrate(self, logits: _Values) -> _Values:
        weights, bias = self._calibration.at(self._counts)
        logits = np.clip(logits, -50.0, 50.0) * weights[:, 0].astype(np.float32) + bias.astype(
            np.float32
        )
        known, starts = (
            np.maximum(np.abs(self._counts), 1),
            [curve["least"] for curve in self._curves],
        )
        for curve, end in zip(self._curves, [*starts[1:], np.inf], strict=False):
            inside = (known >= curve["least"]) & (known < end)
            some = logits[inside].astype(np.float64)
            logits[inside] = 0.99 * np.interp(some, curve["logits"], curve["values"]) + 0.01 * some
        return logits


def _distinct(logits: _Values) -> list[float]:
    """Probabilities of falling logits that fall where these do."""
    scores: list[float] = []
    for place, probability in enumerate(expit(logits).tolist()):
        if place and logits[place] < logits[place - 1]:
            probability = min(probability, float(np.nextafter(scores[-1], 0.0)))
        elif place:
            probability = scores[-1]
        scores.append(probability)
    return scores


def _main() -> None:
    parser = argparse.ArgumentParser(
        description="Suggest labels for texts by the model in this folder."
    )
    parser.add_argument("--text", help="the text; without it each line of standard input is one")
    parser.add_argument(
        "--model",
        default=str(Path(__file__).parent),
        help="the exported folder (default: that of this file)",
    )
    parser.add_argument("--limit", type=int, default=10, help="labels of a text (default: 10)")
    given = parser.parse_args()
    try:
        model = Model(given.model)
    except (ImportError, OSError) as error:
        parser.exit(1, f"error: {error}\n")
    except (ValueError, KeyError, TypeError) as error:
        parser.exit(1, f"error: the model cannot be read: {error}\n")
    for text in [given.text] if given.text is not None else sys.stdin:
        sys.stdout.write(
            json.dumps({"suggestions": model.suggest(text, given.limit)}, ensure_ascii=False) + "\n"
        )


if __name__ == "__main__":
    _main()
