"""Classifications as their publishers hand them out: titles of ICD in lines, ICD-10-CM's
tabular XML, ClaML, MeSH in XML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import polars as pl

from plant_cli.api import DataError, Purpose, VocabularyFile
from plant_formats.concepts import (
    Concept,
    Tagged,
    VocabularyFormat,
    find_xml_root,
    refuse_entities,
    tabulate_concepts,
)

System = Literal["ICD-9-CM diagnoses", "ICD-9-CM procedures", "ICD-10-CM", "ICD-10-PCS"]
SYSTEMS: tuple[System, ...] = get_args(System)


def add_dot(code: str, system: System) -> str:
    """A code with its dot: 4019 is 401.9, E8859 is E885.9, the procedure 0066 is 00.66, E119 of
    ICD-10 is E11.9; ICD-10-PCS has none.
    """
    if system == "ICD-10-PCS":
        return code
    place = (
        2
        if system == "ICD-9-CM procedures"
        else 4
        if system == "ICD-9-CM diagnoses" and code.startswith("E")
        else 3
    )
    return code if len(code) <= place else f"{code[:place]}.{code[place:]}"


_ORDER = re.compile(r"(\d{5}) ([0-9A-Z]{3,7}) +([01]) (.{60}) (\S.*)")
_LIST = re.compile(r"([0-9A-Z]{2,7}|[0-9A-Z]{2,4}\.[0-9A-Z]{1,4})(?: {1,7}|\t)([^\s\t][^\t]*)")
_HEAD, _SAMPLE = 100_000, 200  # characters and lines that are looked at
_MOST = 0.98
_ICD9_DIAGNOSIS = re.compile(r"\d{3,5}|[EV]\d{2,5}")
_ICD9_PROCEDURE = re.compile(r"\d{2,4}")
_ICD10_CM = re.compile(r"[A-Z]\d[0-9A-Z][0-9A-Z]{0,4}")
_ICD10_PCS = re.compile(r"[0-9A-HJ-NP-Z]{3,7}")


def read_icd_titles(text: str, used: Collection[str] = ()) -> tuple[pl.DataFrame, list[str]] | None:
    """Codes with their dot and titles, of an order file (`00001 A00     0 …`) or a list (`A000
    Cholera …`); None if it is neither.

    Codes stay as they are where more labels of the documents (`used`) are written so, and where
    their dots are of no classification. Parents are the longest codes of the file that a code
    begins with; an order file has the categories, too.
    """
    sample = [line.rstrip() for line in text[:_HEAD].splitlines() if line.strip()][:_SAMPLE]
    for pattern, kind in ((_ORDER, "order file"), (_LIST, "list")):
        if len(sample) > 1 and sum(bool(pattern.fullmatch(line)) for line in sample) >= _MOST * len(
            sample
        ):
            return _read_codes(
                [line.rstrip() for line in text.splitlines() if line.strip()],
                pattern,
                kind,
                set(used),
            )
    return None


def find_classification(codes: Sequence[str]) -> System | None:
    """Which classification some codes without dots are of; None if of none."""
    if all(_ICD10_CM.fullmatch(code) for code in codes) and not all(
        re.fullmatch(r"[EV]\d+", code) for code in codes
    ):
        return "ICD-10-CM"
    if all(_ICD9_PROCEDURE.fullmatch(code) for code in codes) and any(
        len(code) == 4 for code in codes
    ):
        return "ICD-9-CM procedures"
    if all(_ICD9_DIAGNOSIS.fullmatch(code) for code in codes):
        return "ICD-9-CM diagnoses"
    return (
        "ICD-10-PCS"
        if all(_ICD10_PCS.fullmatch(code) for code in codes)
        and any(len(code) == 7 for code in codes)
        else None
    )


def _read_codes(
    lines: list[str], pattern: re.Pattern[str], kind: str, used: set[str]
) -> tuple[pl.DataFrame, list[str]] | None:
    rows, bad = match_lines(lines, pattern, "a code and a title")
    written = [row[pattern is _ORDER] for row in rows]
    codes = [code.replace(".", "") for code in written]
    system = find_classification(codes)
    if system is None:
        return None
    dotted = [add_dot(code, system) for code in codes]
    if any("." in code and code != dot for code, dot in zip(written, dotted, strict=True)):
        return None
    with_dots = len(used.intersection(dotted)) >= len(used.intersection(written))
    known = dict(zip(codes, dotted if with_dots else written, strict=True))
    columns = {
        "label": [known[code] for code in codes],
        "title": [row[-1].strip() for row in rows],
        "alternatives": [_short_title(row) if pattern is _ORDER else [] for row in rows],
        "parents": [_find_parent(code, known) for code in codes],
    }
    return pl.DataFrame(columns), [f"{len(rows):,} titles of {system} ({kind})", *bad]


def _short_title(row: Sequence[str]) -> list[str]:
    """The short title in a line of an order file, unless it is the long one."""
    short = row[3].strip()
    return [] if short == row[-1].strip() else [short]


def _find_parent(code: str, known: Mapping[str, str]) -> list[str]:
    """The longest code that a code begins with."""
    shorter = (code[:end] for end in range(len(code) - 1, 1, -1))
    return next(([known[one]] for one in shorter if one in known), [])


def match_lines(
    lines: Sequence[str], pattern: re.Pattern[str], form: str
) -> tuple[list[tuple[str, ...]], list[str]]:
    """The groups of each line that fits a pattern; and a remark on the others."""
    matches = [pattern.fullmatch(line) for line in lines]
    bad = [str(number) for number, match in enumerate(matches, start=1) if match is None]
    remarks = (
        [f"{len(bad):,} lines are not {form}, and are left out: {', '.join(bad[:10])}"]
        if bad
        else []
    )
    return [match.groups() for match in matches if match is not None], remarks


_LANGUAGE_TAG = "{http://www.w3.org/XML/1998/namespace}lang"


def read_classification(
    text: str, root: str, purpose: Purpose, path: Path
) -> tuple[pl.DataFrame, list[str]]:
    """A classification in XML as a table of its codes; and remarks. `root` is the name of its
    first element.
    """
    if root not in _ROOTS:
        expected = "ICD-10-CM's tabular list, ClaML, descriptors of MeSH, SKOS in RDF/XML"
        todo = "convert it to SKOS, or write a table with the columns label and title"
        raise DataError(
            f"XML of this kind is not known: its first element is <{root}>",
            where=str(path),
            expected=expected,
            todo=todo,
        )
    name, read = _ROOTS[root]
    try:
        concepts = list(read(ElementTree.fromstring(text)))
    except (ElementTree.ParseError, RecursionError) as error:
        place = (
            f", line {error.position[0]}, column {error.position[1] + 1}"
            if isinstance(error, ElementTree.ParseError)
            else ""
        )
        what, expected = (
            "the XML cannot be read",
            "XML that is complete, and not nested thousands of times",
        )
        raise DataError(
            what, where=f"{path}{place}", expected=expected, todo="copy or make the file again"
        ) from error
    return tabulate_concepts(concepts, name, purpose, str(path))


def _said(element: Element | None) -> str:
    """The text of an element and all within it, without references to other codes."""
    if element is None:
        return ""
    parts = [element.text or ""]
    for child in element:
        parts += ["" if child.tag == "Reference" else _said(child), child.tail or ""]
    return re.sub(r"\s*\(\s*[,;]?\s*\)", "", " ".join(" ".join(parts).split()))


def _read_tabular(tree: Element) -> Iterator[Concept]:
    """Codes with their inclusion terms; and each code with the seventh characters that it takes."""

    def read(
        diagnosis: Element, parent: str | None, seventh: Mapping[str, str]
    ) -> Iterator[Concept]:
        code, title = _said(diagnosis.find("name")), _said(diagnosis.find("desc"))
        own = {
            sign.get("char", ""): _said(sign) for sign in diagnosis.findall("sevenChrDef/extension")
        }
        seventh, children = own or seventh, diagnosis.findall("diag")
        names: Tagged = [("", _said(note)) for note in diagnosis.findall("inclusionTerm/note")]
        yield Concept(code, [("", title)], names, parents=[parent] if parent else [])
        for child in children:
            yield from read(child, code, seventh)
        for sign, meaning in {} if children else seventh.items():
            longer = f"{code}{'' if '.' in code else '.'}"
            yield Concept(f"{longer:X<7}{sign}", [("", f"{title}, {meaning}")], parents=[code])

    for section in tree.iter("section"):
        for diagnosis in section.findall("diag"):
            yield from read(diagnosis, None, {})


def _read_claml(tree: Element) -> Iterator[Concept]:
    """The categories; and those that a modifier makes of them (E11 with `.9` is E11.9)."""
    classes = {
        one.get("code", ""): one for one in tree.iter("Class") if one.get("kind") == "category"
    }
    modifiers: dict[str, list[tuple[str, Tagged]]] = {}
    for one in tree.iter("ModifierClass"):
        signs = modifiers.setdefault(one.get("modifier", ""), [])
        signs.append((one.get("code", ""), _rubrics(one, "preferred")))
    for code, one in classes.items():
        above = (up.get("code", "") for up in one.findall("SuperClass"))
        long, short = _rubrics(one, "preferredLong"), _rubrics(one, "preferred")
        titles, names = long or short, _rubrics(one, "inclusion") + (short if long else [])
        parents = [parent for parent in above if parent in classes]
        yield Concept(code, titles, names, _rubrics(one, "definition"), parents)
        for longer, texts in _modify(code, titles, one, modifiers):
            if longer not in classes:
                yield Concept(longer, texts, parents=[code])


def _modify(
    code: str, titles: Tagged, element: Element, modifiers: Mapping[str, list[tuple[str, Tagged]]]
) -> Iterator[tuple[str, Tagged]]:
    """The codes that the modifiers of a category make of it, and their titles."""
    made = [(code, titles)]
    for by in element.findall("ModifiedBy"):
        valid = {single.get("code") for single in by.findall("ValidModifierClass")}
        signs = [
            (sign, texts)
            for sign, texts in modifiers.get(by.get("code", ""), [])
            if not valid or sign in valid
        ]
        made = [
            (before + sign, _join_titles(first, second))
            for before, first in made
            for sign, second in signs
        ]
        yield from made


def _join_titles(titles: Tagged, endings: Tagged) -> Tagged:
    pairs = zip(titles, endings, strict=False)
    return [(tag, f"{start}: {end}") for (tag, start), (_, end) in pairs]


def _rubrics(element: Element, kind: str) -> Tagged:
    found = (
        rubric.findall("Label")
        for rubric in element.findall("Rubric")
        if rubric.get("kind") == kind
    )
    return [
        (label.get(_LANGUAGE_TAG, ""), text)
        for labels in found
        for label in labels
        if (text := _said(label))
    ]


def _read_mesh(tree: Element) -> Iterator[Concept]:
    """Descriptors, with their terms as other names; those above them in the tree are their
    parents.
    """
    records = list(tree.iter("DescriptorRecord"))
    places = {
        _said(number): _said(record.find("DescriptorUI"))
        for record in records
        for number in record.iter("TreeNumber")
    }
    for record in records:
        above = (
            places.get(_said(number).rpartition(".")[0]) for number in record.iter("TreeNumber")
        )
        title = _said(record.find("DescriptorName/String"))
        names: Tagged = [
            ("", _said(term)) for term in record.findall("ConceptList/Concept/TermList/Term/String")
        ]
        notes: Tagged = [
            ("", _said(note))
            for note in record.findall("ConceptList/Concept[@PreferredConceptYN='Y']/ScopeNote")
        ]
        parents = list(dict.fromkeys(filter(None, above)))
        yield Concept(_said(record.find("DescriptorUI")), [("", title)], names, notes, parents)


def read_obo(text: str) -> list[Concept] | None:
    """The terms of an ontology in OBO (`[Term]`, then `id: HP:0001250` and so on); None if the
    text is none.
    """
    if not text.lstrip().startswith("format-version:"):
        return None
    concepts = []
    for stanza in re.split(r"^\[", text, flags=re.MULTILINE):
        pairs = [line.split(": ", 1) for line in stanza.splitlines()[1:] if ": " in line]
        values: dict[str, list[str]] = {}
        for tag, value in pairs:
            quoted = re.match(r'"((?:[^"\\]|\\.)*)"', value)
            values.setdefault(tag, []).append(
                quoted[1].replace("\\", "") if quoted else re.split(r" [!{]", value)[0].strip()
            )
        if stanza.startswith("Term]") and "id" in values:
            texts = {
                tag: [("", text) for text in values.get(tag, [])]
                for tag in ("name", "synonym", "def")
            }
            obsolete = values.get("is_obsolete") == ["true"]
            parents, successors = values.get("is_a", []), values.get("replaced_by", [])
            concepts.append(
                Concept(
                    values["id"][0],
                    texts["name"],
                    texts["synonym"],
                    texts["def"],
                    parents,
                    obsolete,
                    successors,
                )
            )
    return concepts


_ROOTS: dict[str, tuple[str, Callable[[Element], Iterator[Concept]]]] = {  # by the first element
    "ICD10CM.tabular": ("ICD-10-CM's tabular list", _read_tabular),
    "ClaML": ("ClaML", _read_claml),
    "DescriptorRecordSet": ("MeSH", _read_mesh),
}


def _read_xml(file: VocabularyFile) -> tuple[pl.DataFrame, list[str]]:
    refuse_entities(file.text, str(file.path))
    return read_classification(file.text, find_xml_root(file.text) or "", file.purpose, file.path)


def _read_terms(file: VocabularyFile) -> tuple[pl.DataFrame, list[str]]:
    return tabulate_concepts(read_obo(file.text) or [], "OBO", file.purpose, str(file.path))


XML_CLASSIFICATION = VocabularyFormat(
    "a classification in XML", lambda file: find_xml_root(file.text) is not None, _read_xml
)
OBO = VocabularyFormat("OBO", lambda file: read_obo(file.text[:_HEAD]) is not None, _read_terms)
