"""What is fuzzed: for each target, inputs and the function that reads them."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st
from scipy.sparse import csr_array

from plant_cli.api import (
    BackboneSpec,
    Choice,
    DataSection,
    DatasetSpec,
    PlantError,
    SilentReporter,
    StageSpec,
)
from plant_cli.data.documents import tidy_dataset
from plant_cli.data.loading import load_dataset
from plant_cli.data.prepare import prepare
from plant_cli.evaluation.aligned import read_predictions
from plant_cli.evaluation.foreign import read_numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.registry import Registry, installed
from plant_cli.runs.recipes import RecipeLayer, load_recipe, parse_sets
from plant_cli.runs.steps import resolve_steps
from plant_cli.testing.contexts import make_context
from tests.faults.fuzzing.contract import Try, check_message
from tests.faults.fuzzing.inputs import (
    ODD,
    Files,
    changed_json,
    mutations,
    small,
    tables,
    words,
    yaml_texts,
)
from tests.faults.fuzzing.modules import modules
from tests.faults.fuzzing.records import RECORDS, read_run, run_files
from tests.faults.fuzzing.shares import read_shares, shares
from tests.round_trips import SPECS, write_format

KEPT = Path(__file__).parents[1] / "malformed" / "inputs"
GOOD = (KEPT / "good.csv").read_bytes()
SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt", ".csv.gz", ".csv.zst", "")


@dataclass(frozen=True)
class Target:
    """Something that reads what a stranger wrote."""

    name: str  # for the command line
    inputs: Callable[[], st.SearchStrategy[Files]]  # gives its files
    attempt: Try  # reads them; what it raises beside a `PlantError` is a finding


def kept(kind: str) -> list[bytes]:
    """The contents of the malformed inputs of a kind, and of a good corpus."""
    files = {
        str(path): path.read_bytes() for path in sorted((KEPT / kind).rglob("*")) if path.is_file()
    }
    return [*small(files), GOOD]


@cache
def _good_parquet() -> bytes:
    return (target := BytesIO(), pl.read_csv(GOOD, infer_schema=False).write_parquet(target))[
        0
    ].getvalue()


def _corpora() -> st.SearchStrategy[Files]:
    columns = ("doc_id", "text", "labels", "split")
    content = mutations([*kept("corpora"), _good_parquet()]) | tables(columns)
    return st.builds(
        lambda suffix, content: {f"corpus{suffix}": content}, st.sampled_from(SUFFIXES), content
    )


def _read_corpus(files: Files, folder: Path, **section: Any) -> None:
    data = DataSection(path=section.pop("path", next(iter(files))), **section)
    context = make_context(folder / "run" / "stage", components=installed())
    prepare(load_dataset(context, data), data, folder / "run" / "corpus", SilentReporter())


def _tables_beside(kind: str, columns: tuple[str, ...]) -> st.SearchStrategy[Files]:
    content = mutations(kept(kind)) | tables(columns)
    return st.builds(
        lambda suffix, content: {f"{kind}{suffix}": content, "good.csv": GOOD},
        st.sampled_from((".csv", ".jsonl", ".parquet")),
        content,
    )


def _read_beside(option: str, files: Files, folder: Path) -> None:
    _read_corpus(files, folder, path="good.csv", **{option: next(iter(files))})


@cache
def _written_formats() -> Mapping[str, Files]:
    """A small corpus in every format: its files by name."""
    clinic = installed().find(DatasetSpec, "synthetic-clinic")
    dataset = tidy_dataset(clinic.load(DataSection(), clinic.options(documents=12, labels=5)))
    found: dict[str, Files] = {}
    for name in SPECS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                write_format(name, dataset, Path(folder))
            except ImportError:  # the package of the format is not installed
                continue
            paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
            found[name] = {
                f"corpus/{path.relative_to(folder)}": path.read_bytes() for path in paths
            }
    return found


@st.composite
def _formats(draw: st.DrawFn) -> Files:
    """A corpus in a format, with one or two of its files spoilt, missing or exchanged; its name
    goes along.
    """
    written = _written_formats()
    name = draw(st.sampled_from(sorted(written)))
    files = dict(written[name])
    for _ in range(draw(st.integers(1, 2))):
        chosen = draw(st.sampled_from(sorted(files)))
        match draw(st.integers(0, 9)):
            case 0:
                del files[chosen]
                if not files:
                    files[chosen] = b""
            case 1:
                files[chosen] = files[draw(st.sampled_from(sorted(files)))]
            case _:
                files[chosen] = draw(mutations([files[chosen] or b"x"]))
    recognised = "" if draw(st.booleans()) else name
    return {**files, "format": recognised.encode()}


def _read_format(files: Files, folder: Path) -> None:
    name = files["format"].decode()
    (folder / "format").unlink()
    _read_corpus(files, folder, path="corpus", dataset=Choice(name=name or "files"))


TURTLE = (
    b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<http://x/1> a skos:Concept ; skos:prefLabel 'Fever'@en, 'Fieber'@de ;"
    b" skos:altLabel 'hot'@en ; skos:broader <http://x/2> .\n<http://x/2> a skos:Concept ; skos:prefLabel 'Sign'@en .\n"
)
RDF = (
    b'<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">'
    b'<skos:Concept rdf:about="http://x/1"><skos:prefLabel xml:lang="en">Fever</skos:prefLabel></skos:Concept></rdf:RDF>'
)
LINKED = (
    b'{"@context": {"skos": "http://www.w3.org/2004/02/skos/core#"}, "@id": "http://x/1", "@type": "skos:Concept",'
    b' "skos:prefLabel": "Fever"}'
)
ICD = (
    b"00001 A000    1 Cholera due to Vibrio cholerae 01, biovar cholerae   Cholera due to Vibrio cholerae 01, biovar cholerae\n"
    * 3
)
ANNIF = b"<http://x/1>\tFever\tA01\n<http://x/2>\tCough\t\n"
JSKOS = b'{"uri": "http://x/1", "prefLabel": {"en": "Fever", "-": "x"}, "altLabel": {"en": ["Heat"]}, "broader": [{"uri": "http://x/2"}]}'
OBO = b'format-version: 1.2\n\n[Term]\nid: HP:1\nname: Fever\nsynonym: "Heat" EXACT []\nis_a: HP:2 ! x\n'
CLAML = (
    b'<ClaML><ModifierClass modifier="M" code=".9"/><Class code="A00" kind="category"><SuperClass code="I"/><ModifiedBy code="M"/>'
    b'<Rubric kind="preferred"><Label xml:lang="en">Fever</Label></Rubric></Class></ClaML>'
)
TABULAR = (
    b"<?xml version='1.0' encoding='latin-1'?><ICD10CM.tabular><section><diag><name>A00</name><desc>Fever</desc><sevenChrDef>"
    b"<extension char='A'>x</extension></sevenChrDef></diag></section></ICD10CM.tabular>"
)
HEADLESS, MIMIC, MAP = (
    b"A00;Fever\nR05;Cough\n",
    b"icd_code,icd_version,long_title\nA00,10,Fever\n0010,9,Heat\n",
    b'{"A00": "Fever", "R05": "Cough"}',
)


def _vocabularies() -> st.SearchStrategy[Files]:
    columns = (
        "label",
        "title",
        "description",
        "alt",
        "broader",
        "title_en",
        "deprecated",
        "replaced_by",
    )
    content = mutations(
        [
            TURTLE,
            RDF,
            LINKED,
            ICD,
            ANNIF,
            JSKOS,
            OBO,
            CLAML,
            TABULAR,
            HEADLESS,
            MIMIC,
            MAP,
            *kept("titles"),
        ]
    ) | tables(columns)
    suffixes = st.sampled_from(
        (".ttl", ".rdf", ".jsonld", ".csv", ".tsv", ".txt", ".jsonl", ".parquet", ".gz", "")
    )
    return st.builds(
        lambda suffix, content: {f"vocabulary{suffix}": content, "good.csv": GOOD},
        suffixes,
        content,
    )


def _recipe_keys() -> tuple[str, ...]:
    stages = [spec.name for spec in installed().specs(StageSpec)]
    options = [name for spec in installed().specs(StageSpec) for name in spec.options.model_fields]
    return (
        *stages,
        "data",
        "model",
        "machine",
        "extends",
        "summary",
        "backbone",
        "decoder",
        "name",
        "dataset",
        "path",
        *options,
    )


def _recipes() -> st.SearchStrategy[Files]:
    shipped = {
        str(path): path.read_bytes()
        for path in sorted((Path(__file__).parents[3] / "recipes").rglob("*.yaml"))
    }
    content = mutations([*kept("recipes"), *small(shipped)]) | yaml_texts(_recipe_keys())
    sets = st.lists(
        st.tuples(st.sampled_from(_recipe_keys()), st.sampled_from(_recipe_keys()), words),
        max_size=2,
    )
    return st.builds(
        lambda text, sets: {
            "recipe.yaml": text,
            "sets": "\n".join(f"{a}.{b}={c}" for a, b, c in sets).encode("utf-8", "surrogatepass"),
        },
        content,
        sets,
    )


def _read_recipe(files: Files, folder: Path) -> None:
    parse_sets(files["sets"].decode("utf-8", "surrogatepass").splitlines())
    resolve_steps(load_recipe("recipe.yaml"), RecipeLayer(), installed())


def _plugins() -> st.SearchStrategy[Files]:
    names = st.sampled_from(("plugin", "core", "", "a b", *ODD[:20])) | st.text(max_size=6)
    return st.builds(
        lambda text, name: {"stranger.py": text, "name": name.encode("utf-8", "surrogatepass")},
        modules(),
        names,
    )


def _load_plugin(files: Files, folder: Path) -> str:
    """As at the start of every command: the entry point is loaded, its components are listed,
    and one is asked for.
    """
    name = files["name"].decode("utf-8", "surrogatepass")
    sys.path.insert(0, str(folder))
    sys.modules.pop("stranger", None)
    importlib.invalidate_caches()
    try:
        registry = Registry()
        registry.load([EntryPoint(name=name, value="stranger", group="plant")])
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("stranger", None)
    for record in registry.plugins:
        str(record)
    for spec in registry.specs(BackboneSpec):
        registry.resolve(BackboneSpec, Choice(name=spec.name))
    try:
        registry.find(BackboneSpec, "missing")
    except PlantError as error:
        check_message(error)
    return f"plugin: {(registry.plugins[0].error or 'ok')[:60]}"


PREDICTIONS = (
    b"doc_id,label,score\ntest-1,A,0.5\ntest-2,B,0.25\n",
    b'{"doc_id": "test-1", "labels": ["A"], "scores": [0.5]}\n{"doc_id": "test-2", "labels": [], "scores": []}\n',
    b"test-1 Q0 A 1 0.5 run\ntest-2 Q0 B 1 0.4 run\n",
    b"2 3\n0:0.5 1:0.25\n2:0.1\n",
    b"0:0.5 1:0.25\n2:0.1\n",
    b'{"document_id": "test-1", "results": [{"uri": "http://x/1", "label": "A", "score": 0.5}]}\n',
    b'{"test-1": {"A": 0.5, "B": 0.25}, "test-2": ["B"]}',
    b'[[{"label": "A", "score": 0.5}], []]',
    b"doc_id;A;B;fever\ntest-1;0,5;0;0,25\ntest-2;0;;1\n",
    b"label,test-1,test-2\nA,0.5,0\nB,0.25,1\n",
    b"id,top1,p1,top2,p2\ntest-1,A,0.5,B,0.25\ntest-2,fever,0.5,,\n",
    b"doc_id\tpred\tprobs\ntest-1\t['A', 'B']\t[0.5 0.25]\ntest-2\tA;B\t0,5;0,25\n",
    b"doc_id\tpred\ntest-1\tA:0.5|B:0.25\ntest-2\t{'B': 0.5}\n",
    b"test-1\tA:0,5\tB:0,25\ntest-2\n",
    b"__label__A 0.5 __label__B 0.25\n\n",
    b"0.5,0.25,0\n0,1,0.5\n",
    b"A\tB\nfever\n",
)


@cache
def _gold() -> object:
    matrix = csr_array(np.array([[1, 0, 1], [0, 1, 0]], dtype=np.float32))
    counts = np.array([3, 2, 1], dtype=np.int64)
    return Gold(
        split="test",
        doc_ids=["test-1", "test-2"],
        matrix=matrix,
        labels=["A", "B", "fever"],
        titles=[None] * 3,
        train_counts=counts,
        train_documents=6,
        indexed=2,
        label_hash="l" * 64,
        hash="h" * 64,
    )


def _predictions() -> st.SearchStrategy[Files]:
    content = (
        mutations([*PREDICTIONS, *kept("predictions")])
        | tables(("doc_id", "label", "score"))
        | tables(("doc_id", "labels", "scores"))
    )
    beside = st.sampled_from(
        (*[b""] * 12, b"A\nB\nfever\n", b"A\tx\n", b"0 1\n1 2\n", b"0 x\n", b"9 9\n", b"\xff")
    )
    return st.builds(
        lambda suffix, content, order, removed: {
            f"predictions{suffix}": content,
            "order": order,
            "removed": removed,
        },
        st.sampled_from((".csv", ".tsv", ".jsonl", ".parquet", ".npz", ".txt", ".trec", ".gz")),
        content,
        beside,
        beside,
    )


def _read_predictions(files: Files, folder: Path) -> None:
    order, removed = (
        ("order" if files["order"] else None),
        ("removed" if files["removed"] else None),
    )
    read_predictions(
        Path(next(iter(files))), _gold(), SilentReporter(), read_numbering(order, removed)
    )  # type: ignore[arg-type]


@st.composite
def _records(draw: st.DrawFn) -> Files:
    """A finished run with one file spoilt; in most cases its record is made to fit, as whoever
    passes a run on may do.
    """
    name = draw(st.sampled_from(sorted(RECORDS)))
    content = run_files()[name]
    ways = mutations([content])
    if name.endswith(".json"):
        ways = ways | changed_json([content])
    return {name: draw(ways), "fits": b"" if draw(st.integers(0, 3)) else b"no"}


TARGETS = {
    target.name: target
    for target in (
        Target("corpora", _corpora, _read_corpus),
        Target("formats", _formats, _read_format),
        Target(
            "titles",
            partial(_tables_beside, "titles", ("label", "title")),
            partial(_read_beside, "titles"),
        ),
        Target(
            "evidence",
            partial(_tables_beside, "evidence", ("doc_id", "label", "start", "end")),
            partial(_read_beside, "evidence"),
        ),
        Target("shares", shares, read_shares),
        Target("vocabularies", _vocabularies, partial(_read_beside, "vocabulary")),
        Target("recipes", _recipes, _read_recipe),
        Target("plugins", _plugins, _load_plugin),
        Target("predictions", _predictions, _read_predictions),
        Target("records", _records, read_run),
    )
}
