"""`plant labels`: the edits that lead to a new vocabulary, and a model with edited labels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from builders import read_stage, run_at
from laboratory import CLINIC
from plant_review.labels_edited import _find_edits

from plant_cli.api import ArtefactError, DataError, Interrupted, SilentReporter, UsageError
from plant_cli.data.changed_labels import read_edit_rows
from plant_cli.data.records import RunHeader, read_record
from plant_cli.scoring.opened_models import open_model

TITLES = {
    "a": "high fever", "b": "stone in the kidney", "c": "broken arm", "d": "lost tooth", "e": "weak heart", "f": "blue skin",
    "g": "deep wound", "h": "dry throat", "i": "swollen knee", "j": "burnt finger",
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with scorers of ten labels, of which two have one training document."""
    folder = tmp_path_factory.mktemp("labels") / "corpus"
    folder.mkdir()
    for name, labels in (
        ("train", "ab" * 2 + "cdefghij" * 2 + "abc"),
        ("validation", "abcdefghij"),
        ("test", "abcdefghij"),
    ):
        labels = labels.replace("i", "", 1).replace("j", "", 1) if name == "train" else labels
        rows = {
            "doc_id": [f"{name} {row}" for row in range(len(labels))],
            "labels": [[label] for label in labels],
        }
        texts = [
            f"{name} patient number {row} came with a {TITLES[label]} today"
            for row, label in enumerate(labels)
        ]
        pl.DataFrame({**rows, "text": texts}).write_parquet(folder / f"{name}.parquet")
    pl.DataFrame({"label": list(TITLES), "title": list(TITLES.values())}).write_parquet(
        folder / "labels.parquet"
    )
    run_at(
        folder.parent / "run",
        "finetune",
        f"data.path={folder}",
        "finetune.network=false",
        *CLINIC[1:],
    )
    return folder.parent / "run"


def suggest(run: Path, text: str) -> list[Any]:
    return [one.label for one in open_model(run).suggest([text])[0]]


KEPT = "".join(f"{label},{TITLES[label]},,\n" for label in "defghij")
REST = {**dict.fromkeys("defgh", 2), "i": 1, "j": 1}
VOCABULARY = f"""label,title,deprecated,replaced_by
{KEPT}a,hot fever,,
b,stone in the kidney,true,n|m
n,stone in the left kidney,,
m,stone in the right kidney,,
k,cough,,
"""
EDITS = [
    ("add", "n", "stone in the left kidney", None),
    ("add", "m", "stone in the right kidney", None),
    ("add", "k", "cough", None),
    ("rename", "a", "hot fever", None),
    ("split", "b", "stone in the kidney", "n|m"),
    ("retire", "c", "broken arm", None),
]


def counts(run: Path) -> dict[str, int]:
    return dict(
        pl.read_parquet(run / "corpus" / "labels.parquet")
        .select("label", "train_count")
        .iter_rows()
    )


def diff(
    model: Path,
    folder: Path,
    vocabulary: str = VOCABULARY,
    reporter: SilentReporter | None = None,
    **options: str,
) -> Any:
    (folder / "new.csv").write_text(vocabulary)
    given = {
        "path": str(model),
        "vocabulary": str(folder / "new.csv"),
        "output": str(folder / "edits.csv"),
        **options,
    }
    return run_at(
        folder / "unused",
        "labels diff",
        flags={"labels diff": given},
        reporter=reporter or SilentReporter(),
    )


def apply(
    model: Path, edits: Path, target: Path, reporter: SilentReporter | None = None, **options: bool
) -> Any:
    flags = {"labels apply": {"path": str(model), "edits": str(edits), **options}}
    return run_at(target, "labels apply", flags=flags, reporter=reporter or SilentReporter())


def read(path: Path) -> list[tuple[Any, ...]]:
    return [
        tuple(row[name] for name in ("edit", "label", "title", "into"))
        for row in read_edit_rows(path)
    ]


def test_the_edits_to_a_new_edition(model: Path, tmp_path: Path) -> None:
    found = diff(model, tmp_path)
    assert read(tmp_path / "edits.csv") == EDITS
    assert found.summary == {"add": 3, "rename": 1, "split": 1, "retire": 1}
    assert ["retire", "c", "broken arm", None, 3] in [list(row) for row in found.tables[0].rows]
    with pytest.raises(UsageError, match="the output is there already"):
        diff(model, tmp_path)


def test_a_first_title_is_no_new_name() -> None:
    old = pl.DataFrame({"label": ["a", "b", "c"], "title": [None, "fever", "cough"]})
    new = pl.DataFrame(
        {
            "label": ["a", "b", "c"],
            "title": ["arm", "high fever", "cough"],
            "deprecated": [False] * 3,
            "replaced_by": [[]] * 3,
        }
    )
    edits = [
        (row["edit"], row["label"], row["title"]) for row in _find_edits(old, new, {}, {*"abc"})
    ]
    assert edits == [("title", "a", "arm"), ("rename", "b", "high fever")]


def test_an_earlier_edition_and_a_mapping(model: Path, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("label,title\na,fever\nk,cough\nb,stone\n")
    (tmp_path / "map.csv").write_text("old,new\nb,x\nx,m;\nc,a\na,k\n")
    diff(
        model,
        tmp_path,
        old=str(tmp_path / "old.csv"),
        mapping=str(tmp_path / "map.csv"),
        vocabulary=VOCABULARY.replace("b,stone", "y,stone").replace("m,", "m;,"),
    )
    assert read(tmp_path / "edits.csv") == [
        ("add", "n", "stone in the left kidney", None),
        ("add", "m;", "stone in the right kidney", None),
        ("add", "k", "cough", None),
        ("rename", "a", "hot fever", None),
        ("split", "a", "high fever", "a|k"),
        ("merge", "b", "stone in the kidney", '["m;"]'),
        ("merge", "c", "broken arm", "a"),
    ]


OF_TITLES = {f"x:{number}": title for number, title in enumerate(TITLES.values())}


@pytest.fixture(scope="module")
def titled(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a catalogue whose labels are titles, and one free keyword; a vocabulary has ids."""
    folder = tmp_path_factory.mktemp("titled")
    train = pl.read_parquet(model.parent / "corpus" / "train.parquet").with_columns(
        pl.col("labels").list.eval(pl.element().replace(TITLES))
    )
    train = train.with_columns(
        pl.when(pl.int_range(pl.len()) < 3)
        .then(pl.col("labels").list.concat(pl.lit(["free keyword"])))
        .otherwise("labels")
        .alias("labels")
    )
    train.select("doc_id", "text", "labels").write_parquet(folder / "catalogue.parquet")
    (folder / "old.csv").write_text(edition(OF_TITLES))
    run_at(
        folder / "run",
        "finetune",
        f"data.path={folder / 'catalogue.parquet'}",
        f"data.vocabulary={folder / 'old.csv'}",
        "finetune.network=false",
        *CLINIC[1:],
    )
    return folder / "run"


def edition(titles: dict[str, str]) -> str:
    return "id,title\n" + "".join(f"{label},{title}\n" for label, title in titles.items())


def test_labels_that_are_titles_are_followed_by_their_ids(titled: Path, tmp_path: Path) -> None:
    """A new name was a retirement and an addition, and a free keyword was retired."""
    new = {**OF_TITLES, "x:0": "raised temperature", "x:1": OF_TITLES["x:2"], "x:11": "cough"}
    new["x:2"] = OF_TITLES["x:1"]
    del new["x:9"]
    options = {"old": str(titled.parent / "old.csv")}
    found = diff(titled, tmp_path, vocabulary=edition(new), **options)
    assert sorted(read(tmp_path / "edits.csv")) == [
        ("add", "cough", "cough", None),
        ("rename", "broken arm", "stone in the kidney", None),
        ("rename", "high fever", "raised temperature", None),
        ("rename", "stone in the kidney", "broken arm", None),
        ("retire", "burnt finger", "burnt finger", None),
    ]
    assert "2 labels take a title that another one had" in found.tables[0].notes[-1]
    (tmp_path / "edits.csv").unlink()
    assert diff(titled, tmp_path, vocabulary=edition(OF_TITLES), **options).summary == {}
    (tmp_path / "edits.csv").unlink()
    (tmp_path / "map.csv").write_text("old,new\nx:9,x:11\n")  # ids, as in the editions
    diff(titled, tmp_path, vocabulary=edition(new), mapping=str(tmp_path / "map.csv"), **options)
    assert ("merge", "burnt finger", "burnt finger", "cough") in read(tmp_path / "edits.csv")


def test_the_edits_of_a_large_catalogue_are_those_that_were_made() -> None:
    """2,500 headings, most of them with a title in place of an id, and 1,100 free keywords."""
    labels = [f"heading {number}" for number in range(2500)]
    free = [f"keyword {number}" for number in range(1100)]
    old = pl.DataFrame({"label": labels + free, "title": labels + [None] * len(free)})
    titles = dict(zip(labels, labels, strict=True))
    titles |= {"heading 7": "heading 8", "heading 8": "heading 7", "heading 9": "another name"}
    replaced = {"heading 20": ["heading 21"], "heading 30": ["heading 31", "heading 32"]}
    gone = {"heading 40", "heading 41"}
    rows = [
        (label, title, label in replaced, replaced.get(label, []))
        for label, title in titles.items()
        if label not in gone
    ]
    schema = ["label", "title", "deprecated", "replaced_by"]
    new = pl.DataFrame([*rows, ("new one", "new one", False, [])], schema=schema, orient="row")
    new = new.with_columns(description=pl.lit(None, dtype=pl.String))
    edits = [(row["edit"], row["label"]) for row in _find_edits(old, new, {}, {*labels})]
    assert edits == [
        ("add", "new one"),
        ("rename", "heading 7"),
        ("rename", "heading 8"),
        ("rename", "heading 9"),
        ("merge", "heading 20"),
        ("split", "heading 30"),
        ("retire", "heading 40"),
        ("retire", "heading 41"),
    ]


def test_another_vocabulary_is_suspected_and_a_wide_mapping_refused(
    model: Path, tmp_path: Path
) -> None:
    reporter = SilentReporter()
    diff(model, tmp_path, vocabulary="label,title\na,fever\nx,other\n", reporter=reporter)
    assert (
        f"only 1 of the 10 labels of the run are in {tmp_path / 'new.csv'}: is it the right one?"
        in reporter.warnings
    )
    (tmp_path / "map.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(DataError, match="the mapping has 3 columns"):
        diff(model, tmp_path, output=str(tmp_path / "more.csv"), mapping=str(tmp_path / "map.csv"))


def test_a_model_with_edited_labels_and_one_of_that(model: Path, tmp_path: Path) -> None:
    diff(model, tmp_path)
    reporter, target = SilentReporter(), tmp_path / "edited"
    before = read_record(model / "run.json", RunHeader, "").data_hash
    apply(model, tmp_path / "edits.csv", target, reporter)
    assert counts(target) == {"a": 3, "k": 0, "m": 0, "n": 3, **REST}
    assert suggest(target, "a bad cough")[0] == "k"
    assert suggest(target, "a stone in the left kidney")[0] == "n"
    assert "c" not in suggest(target, "a broken arm")
    assert any("1 split label: their documents" in warning for warning in reporter.warnings)
    assert read_record(model / "run.json", RunHeader, "").data_hash == before
    assert suggest(model, "a broken arm")[0] == "c"

    target = target.rename(tmp_path / "moved")
    (tmp_path / "more.csv").write_text(
        "edit,label,into,text\nexample,k,,coughing at night\nmerge,m,n,\n"
    )
    apply(target, tmp_path / "more.csv", tmp_path / "again")
    assert counts(tmp_path / "again") == {"a": 3, "k": 1, "n": 3, **REST}
    started = read_stage(tmp_path / "again", "finetune")["started"]
    apply(
        target, tmp_path / "more.csv", tmp_path / "again"
    )  # after a stop: what is finished is skipped
    assert read_stage(tmp_path / "again", "finetune")["started"] == started
    opened = open_model(tmp_path / "again")
    assert opened.model.scorers is not None
    known = zip(opened.labels.ids, opened.model.scorers.train_counts.tolist(), strict=True)
    assert {label: number for label, number in known if number < 0} == {
        "k": -1,
        "n": -3,
    }  # those that were added
    run_at(tmp_path / "again", "export", f"export.folder={tmp_path / 'exported'}")
    exported = open_model(tmp_path / "exported")
    for text in ("a bad cough", "coughing", "a stone in the left kidney"):
        assert exported.suggest([text]) == opened.suggest([text])


def test_what_was_stopped_goes_on(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise Interrupted("stopped", where="", expected="", todo="with --resume")

    (tmp_path / "edits.csv").write_text("edit,label\nretire,c\n")
    with monkeypatch.context() as stopping:
        stopping.setattr("plant_cli.training.scorers_alone.fit_scorers", stop)
        with pytest.raises(Interrupted) as caught:
            apply(model, tmp_path / "edits.csv", tmp_path / "new")
    assert caught.value.todo == "the same command goes on where it stopped"
    apply(model, tmp_path / "edits.csv", tmp_path / "new")
    assert "c" not in suggest(tmp_path / "new", "a broken arm")
    (tmp_path / "new" / "finetune").rename(tmp_path / "new" / ".finetune.previous")
    apply(model, tmp_path / "edits.csv", tmp_path / "new")  # killed before the new one had a record
    assert "c" not in suggest(tmp_path / "new", "a broken arm")


@pytest.mark.slow
def test_a_network_keeps_its_rows_and_gives_one_to_the_successor_of_a_label(
    model: Path, tmp_path: Path
) -> None:
    for stage in ("mig", "pretrain-attn", "finetune"):
        run_at(tmp_path / "net", stage, f"data.path={model.parent / 'corpus'}", *CLINIC[1:])
    (tmp_path / "edits.csv").write_text(
        "edit,label,title,into\nadd,n,kidney stone,\nmerge,b,,n\nadd,k,bad cough,\nretire,c,,\n"
    )
    for options, how, stays in (
        ({}, "stays as it is", True),
        ({"train": True}, "goes on from its weights", False),
    ):
        reporter, target = SilentReporter(), tmp_path / how
        apply(tmp_path / "net", tmp_path / "edits.csv", target, reporter, **options)
        assert f"the network {how}; 1 of 10 labels are new to it" in reporter.notes
        assert (target / "pretrain-attn").exists() == (not stays)
        assert (read_stage(target, "finetune")["summary"]["epochs"] == 0) == stays
        rows = {}
        for run in (tmp_path / "net", target):
            opened = open_model(run)
            network: Any = opened.model
            rows[run] = dict(
                zip(
                    opened.labels.ids, network.network.decoder.get_buffer("directions"), strict=True
                )
            )
        pairs = [*zip("adefghij", "adefghij", strict=True), ("n", "b")]
        same = [
            torch.equal(rows[target][label], rows[tmp_path / "net"][old]) for label, old in pairs
        ]
        assert all(same) or not stays  # an epoch that is not better is not kept


def test_a_run_of_scorers_stays_one_and_a_new_run_has_no_labels_to_add(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "edits.csv").write_text("edit,label,title\nadd,k,cough\n")
    shutil.copytree(model, tmp_path / "left")
    record = json.loads((tmp_path / "left" / "finetune" / "stage.json").read_text())
    record["options"]["network"] = (
        True  # as --only-if-better leaves it where the network does not add
    )
    (tmp_path / "left" / "finetune" / "stage.json").write_text(json.dumps(record))
    apply(tmp_path / "left", tmp_path / "edits.csv", tmp_path / "new")
    assert suggest(tmp_path / "new", "a bad cough")[0] == "k"
    with pytest.raises(UsageError, match="no trained network that new labels could be added to"):
        run_at(
            tmp_path / "other",
            "finetune",
            f"data.path={model.parent / 'corpus'}",
            "finetune.only_new=true",
            *CLINIC[1:],
        )


def test_a_network_without_prototypes_takes_no_new_label_without_training(
    model: Path, tmp_path: Path
) -> None:
    sets = (
        f"data.path={model.parent / 'corpus'}",
        "finetune.init=random",
        "finetune.head=random",
        "finetune.scorers=none",
        "finetune.scorers=none",
        "finetune.epochs=1",
        *CLINIC[1:],
    )
    run_at(tmp_path / "net", "finetune", *sets)
    (tmp_path / "edits.csv").write_text("edit,label,title\nadd,k,cough\n")
    with pytest.raises(UsageError, match="did not start from prototypes"):
        apply(tmp_path / "net", tmp_path / "edits.csv", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_edited_changes_nothing(model: Path, tmp_path: Path) -> None:
    edits = tmp_path / "edits.csv"
    edits.write_text("edit,label\nretire,unknown\n")
    with pytest.raises(DataError, match="there is no label 'unknown'"):
        apply(model, edits, tmp_path / "new")
    for nothing in ("edit,label\n", "edit,label\n,\n"):
        edits.write_text(nothing)
        with pytest.raises(DataError, match="there are no edits"):
            apply(model, edits, tmp_path / "new")
    edits.write_text("edit,label\nretire,a\n")
    with pytest.raises(UsageError, match="would take the place of the other"):
        apply(model, edits, model)
    with pytest.raises(ArtefactError, match="was prepared with label_edits = None"):
        run_at(model, "finetune", f"data.label_edits={edits}", force=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists already, and is no run with these edits"):
        apply(model, edits, tmp_path / "full")
    bare = tmp_path / "bare"
    shutil.copytree(model, bare)
    shutil.rmtree(bare / "finetune")
    with pytest.raises(ArtefactError, match="has no model"):
        apply(bare, edits, tmp_path / "new")
    assert not (tmp_path / "new").exists()
