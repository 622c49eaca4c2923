from __future__ import annotations

import shutil

import polars as pl
import pytest
from builders import run_at

from plant_cli.api import (
    ArtefactError,
    Choice,
    ComponentError,
    DataError,
    DatasetSpec,
    Interrupted,
    UsageError,
)
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.files import hash_file, read_json, write_json
from plant_cli.runs.folder import Run
from plant_cli.runs.run_corpus import find_corpus


@pytest.fixture
def prepared(laboratory):
    """A laboratory whose stages read the corpus, after its first stage; `corpora` collects what
    they got.
    """
    laboratory.corpora = []
    laboratory.on["alpha"] = laboratory.on["beta"] = laboratory.on["look"] = lambda context: (
        laboratory.corpora.append(context.corpus())
    )
    laboratory.run("alpha", flags={"data": {"path": str(laboratory.data)}})
    return laboratory


def test_the_first_stage_prepares_the_corpus_binds_the_run_and_later_stages_find_it(prepared):
    header, corpus = read_json(prepared.path / "run.json", "the header"), prepared.corpora[0]
    assert (header["data_hash"], header["label_hash"]) == (corpus.data_hash, corpus.labels.hash)
    assert header["sources"] == {str(prepared.data): hash_file(prepared.data)}
    prepared.run("beta")
    prepared.run("look")
    assert [later.data_hash for later in prepared.corpora] == [corpus.data_hash] * 3
    assert len(prepared.corpora[1].split("test")) == 24


def write_named_columns(path):
    """A table whose columns have other names; `topics` is likelier to hold labels than `about`."""
    rows = [(f"fever and cough in house {i}", f"a{i % 5};b{i % 4}") for i in range(60)]
    lines = ["body,about", *(f"{text},{labels}" for text, labels in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_run_keeps_the_columns_that_were_found(laboratory, tmp_path):
    laboratory.on["alpha"] = laboratory.on["look"] = lambda context: context.corpus()
    table = write_named_columns(tmp_path / "notes.csv")
    data = {"path": str(table)}
    laboratory.run("alpha", flags={"data": data})
    found = {"text_column": "body", "labels_column": "about"}
    recorded = laboratory.record("alpha")["sections"]["data"]
    assert {name: recorded[name] for name in found} == found
    source = CorpusRecord.read(laboratory.path / "corpus").source
    assert {name: source[name] for name in found} == found
    texts = table.read_text("utf-8").splitlines()
    grown = [f"{texts[0]},topics", *(f"{line},x{i % 3}" for i, line in enumerate(texts[1:]))]
    table.write_text("\n".join([*grown, "a further text,a1;b1,x1"]), encoding="utf-8")
    laboratory.run("alpha", grow=True)  # a likelier column has come
    assert laboratory.record("alpha")["sections"]["data"]["labels_column"] == "about"
    laboratory.run("look")


def test_steps_of_a_recipe_share_the_columns_that_were_found(
    laboratory, tmp_path, recipe, statuses
):
    laboratory.on["alpha"] = laboratory.on["look"] = lambda context: context.corpus()
    path = write_named_columns(tmp_path / "notes.csv")
    recipe.write_text(f"data: {{path: {path}}}\nalpha: {{}}\nlook: {{}}\n")
    laboratory.run("run", options={"recipe": str(recipe)})
    assert laboratory.record("alpha")["sections"]["data"]["labels_column"] == "about"
    again = laboratory.run("run", options={"recipe": str(recipe)})
    assert statuses(again)["alpha"] == "unchanged"


def test_what_a_kill_left_of_a_corpus_is_removed(laboratory):
    left = Run.create(laboratory.path).corpus_path / f".{'a' * 32}-labels.parquet"
    left.parent.mkdir()
    left.write_text("half")
    laboratory.on["alpha"] = lambda context: context.corpus()
    laboratory.run("alpha", flags={"data": {"path": str(laboratory.data)}})
    assert not left.exists()


def test_a_corpus_named_relative_to_one_folder_is_found_from_another(
    laboratory, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "titles.csv").write_text("label,title\nlabel 1,One\n")
    seen = []
    laboratory.on["alpha"] = laboratory.on["beta"] = lambda context: seen.append(
        context.corpus().split("test").doc_ids
    )
    monkeypatch.chdir(tmp_path)
    laboratory.run("alpha", flags={"data": {"path": laboratory.data.name, "titles": "titles.csv"}})
    assert laboratory.record("alpha")["sections"]["data"]["path"] == str(laboratory.data)
    monkeypatch.chdir(elsewhere)
    laboratory.run("beta")
    laboratory.run(
        "run", options={"recipe": str(laboratory.path / "recipe.yaml")}
    )  # the run's own recipe repeats it from here too
    assert seen[0] == seen[1]
    assert len(seen) == 2


def test_a_corpus_that_moved_is_told_with_where_it_may_be(prepared, monkeypatch):
    moved = prepared.data.parent / "moved" / prepared.data.name
    moved.parent.mkdir()
    prepared.data.rename(moved)
    prepared.on["beta"] = lambda context: context.corpus().split("test")
    monkeypatch.chdir(moved.parent)
    with pytest.raises(ArtefactError, match="made from is no longer where it was") as caught:
        prepared.run("beta")
    assert (caught.value.where, str(moved) in caught.value.todo) == (str(prepared.data), True)


def test_steps_of_one_command_share_one_corpus(laboratory, tmp_path):
    seen = []
    laboratory.on["alpha"] = laboratory.on["beta"] = lambda context: seen.append(context.corpus())
    recipe = tmp_path / "r.yaml"
    recipe.write_text(f"data: {{path: {laboratory.data}}}\nalpha:\nbeta:\n")
    laboratory.run("run", options={"recipe": str(recipe)})
    assert seen[0] is seen[1]


@pytest.mark.parametrize(
    ("key", "what", "file"),
    [
        ("data_hash", "the documents", "splits.json"),
        ("label_hash", "the label order", "labels.parquet"),
    ],
)
def test_a_corpus_folder_of_another_run_is_refused(prepared, key, what, file):
    header = prepared.path / "run.json"
    write_json(header, {**read_json(header, "the header"), key: "0" * 64})
    error = prepared.fails(ArtefactError, f"{what} of the corpus in this run", "beta")
    assert (
        str(header) in error.where,
        str(prepared.path / "corpus" / file) in error.where,
        error.exit_code,
    ) == (True, True, 4)


def test_a_stage_learns_from_a_part_of_train(prepared):
    for tag, share in (("few", 0.5), ("fewer", 0.25)):
        prepared.run("alpha", tag, flags={"data": {"train_share": share}})
    whole, half, _ = prepared.corpora
    names = [set(corpus.split("train").doc_ids) for corpus in prepared.corpora]
    assert (
        [len(ids) for ids in names]
        == [corpus.sizes["train"] for corpus in prepared.corpora]
        == [36, 18, 9]
    )
    assert names[2] < names[1] < names[0]
    assert [doc_id for part in half.stream("train") for doc_id in part.doc_ids] == list(
        half.split("train").doc_ids
    )
    assert (
        half.labels.train_counts
        == half.gold_labels("train").gold.sum(axis=0).tolist()
        != whole.labels.train_counts
    )
    assert half.labels.hash == whole.labels.hash
    assert half.split("test").texts == whole.split("test").texts
    assert len({corpus.data_hash for corpus in prepared.corpora}) == 3
    prepared.fails(
        DataError,
        "no training document is left",
        "alpha",
        "none",
        flags={"data": {"train_share": 0.001}},
    )
    prepared.fails(
        ArtefactError,
        "prepared with train_share = 1.0, not 0.5",
        "look",
        flags={"data": {"train_share": 0.5}},
    )


def test_a_stage_on_a_part_of_train_reads_what_learned_from_the_same(prepared):
    few = {"data": {"train_share": 0.5}}
    prepared.run("alpha", "few", flags=few)
    seen = []
    prepared.on["alpha"] = lambda context: seen.extend(
        [context.find_input("alpha"), context.find_input("alpha", "few")]
    )
    prepared.run("alpha", "own", flags=few)
    assert seen == [None, prepared.path / "alpha-few"]  # and not the untagged one
    prepared.on["alpha"] = lambda context: context.input("alpha", "few")
    error = prepared.fails(
        ArtefactError,
        "'alpha-few' learned from other training documents: data.train_share is 0.5 there, and 1 "
        "here",
        "alpha",
        "all",
    )
    assert error.where == str(prepared.path / "alpha-few")


def test_labels_that_were_reordered_by_hand_and_other_options_are_refused(prepared):
    prepared.fails(
        ArtefactError,
        r"prepared with validation_share = 0\.05, not 0\.3",
        "beta",
        flags={"data": {"validation_share": 0.3}},
    )
    labels = prepared.path / "corpus" / "labels.parquet"
    pl.read_parquet(labels).reverse().write_parquet(labels)
    assert str(labels) in prepared.fails(ArtefactError, "", "beta", tag="other").where


def test_a_vocabulary_is_known_by_what_it_holds(laboratory, tmp_path):
    """It may have moved with the corpus; a new edition is told, since the run keeps its titles."""
    laboratory.on["alpha"] = laboratory.on["look"] = lambda context: context.corpus()
    before, after = tmp_path / "titles.csv", tmp_path / "moved.csv"
    before.write_text("label,title\na,Apple\n")
    data = {"path": str(laboratory.data), "vocabulary": str(before)}
    laboratory.run("alpha", flags={"data": data})
    before.rename(after)
    laboratory.run("look", flags={"data": {**data, "vocabulary": str(after)}})
    after.write_text("label,title\na,Another\n")
    laboratory.fails(
        ArtefactError,
        "prepared with vocabulary",
        "look",
        flags={"data": {**data, "vocabulary": str(after)}},
    )
    after.rename(before)
    laboratory.run("look", flags={"data": data})
    assert [
        text
        for text in laboratory.reporter.warnings
        if "has changed since this run was begun" in text
    ]


def test_a_file_of_rejects_is_written_only_when_this_command_names_it(laboratory, tmp_path):
    """A run folder that somebody passes on must not replace a file of ours."""
    laboratory.data = tmp_path / "data.csv"
    laboratory.data.write_text(
        "text,labels,split\none,a,train\ntwo,a,test\n" + 'thr"ee,a,train,more,cells\n'
    )
    mine, other = tmp_path / "mine.tsv", tmp_path / "other.tsv"
    laboratory.on["alpha"] = laboratory.on["beta"] = lambda context: (
        context.corpus().split("test").doc_ids
    )
    laboratory.run("alpha", flags={"data": {"path": str(laboratory.data), "rejects": str(mine)}})
    assert "more,cells" in mine.read_text()
    other.write_text("precious")
    for file in laboratory.path.rglob("*"):
        if file.suffix in (".yaml", ".json"):
            file.write_text(file.read_text().replace(str(mine), str(other)))
    for act in (
        lambda: laboratory.run("beta"),
        lambda: laboratory.run("beta", resume=True),
        lambda: laboratory.run("alpha", force=True),
    ):
        act()
        assert other.read_text() == "precious"
    laboratory.run("run", options={"recipe": str(laboratory.path / "recipe.yaml")}, force=True)
    assert other.read_text() == "precious"
    laboratory.fails(
        UsageError,
        "would replace another file",
        "alpha",
        flags={"data": {"rejects": str(other)}},
        force=True,
    )
    assert other.read_text() == "precious"
    laboratory.run("alpha", flags={"data": {"rejects": str(mine)}}, force=True)
    assert "more,cells" in mine.read_text()


def test_an_action_prepares_no_corpus(laboratory):
    laboratory.run("alpha")
    laboratory.on["look"] = lambda context: context.corpus()
    assert (
        "plant mig"
        in laboratory.fails(
            ArtefactError,
            "has no corpus yet",
            "look",
            flags={"data": {"path": str(laboratory.data)}},
        ).todo
    )
    assert not (laboratory.path / "corpus").exists()


def test_components_are_found_by_kind_and_name(laboratory):
    seen = []
    laboratory.on["outside"] = lambda context: seen.append(
        context.component(DatasetSpec, Choice(name="files"))
    )
    laboratory.run("outside")
    assert seen[0][0].name == "files"
    laboratory.on["outside"] = lambda context: context.component(DatasetSpec, Choice(name="flies"))
    laboratory.fails(ComponentError, "flies", "outside")


def test_an_input_is_found_only_when_its_stage_is_done(laboratory):
    found = []
    laboratory.on["beta"] = lambda context: found.append(
        (context.find_input("alpha"), context.find_input("alpha", "other"))
    )
    laboratory.run("alpha")
    laboratory.run("beta")
    assert found == [(laboratory.path / "alpha", None)]
    (laboratory.path / "alpha" / "alpha.txt").unlink()
    laboratory.fails(ArtefactError, "alpha", "beta", force=True)


def test_a_run_that_lost_its_recipe_says_so(prepared):
    (prepared.path / "recipe.yaml").unlink()
    assert (
        "--set data.path=PATH"
        in prepared.fails(ArtefactError, "the run has lost its recipe", "look").todo
    )


@pytest.fixture
def real(tmp_path):
    """Run a real stage in a run that is not there yet: `real("mig", corpus)`; `.path` is the
    run.
    """

    def run(name, path=None):
        flags = {} if path is None else {"data": {"path": str(path)}}
        return run_at(run.path, name, flags=flags)

    run.path = tmp_path / "new"
    return run


def test_a_run_in_which_nothing_has_finished_never_had_a_recipe(real, laboratory):
    with pytest.raises(ArtefactError) as caught:
        real("pretrain-attn", laboratory.data)
    assert caught.value.todo == f"plant mig --run {real.path} {laboratory.data}"
    with pytest.raises(ArtefactError, match="no stage of this run has finished") as caught:
        real("mig")
    assert "lost" not in caught.value.what
    assert "lost" not in caught.value.todo
    real("mig", laboratory.data)


@pytest.mark.parametrize("stage", ["mig", "pretrain-attn", "finetune", "predict", "eval"])
def test_a_mistyped_run_is_told_and_not_made(real, stage):
    with pytest.raises(UsageError, match="no corpus was named to start one with") as caught:
        real(stage)
    assert caught.value.what.startswith(f"there is no run in '{real.path}'")
    assert "--run DIR" in caught.value.todo
    assert not real.path.exists()


def _run(laboratory, path, **request):
    return laboratory.run("alpha", flags={"data": {"path": str(path)}}, **request)


def _change(laboratory, path):
    pl.read_parquet(laboratory.data).with_columns(text=pl.col("text") + " changed").write_parquet(
        path
    )
    return path


@pytest.mark.parametrize("request_", [{}, {"force": True}, {"tag": "other"}, {"resume": True}])
def test_another_corpus_is_told_before_anything_is_said_or_done(prepared, tmp_path, request_):
    other = _change(prepared, tmp_path / "other.parquet")
    with pytest.raises(ArtefactError, match="the split 'train' has other texts") as caught:
        _run(prepared, other, **request_)
    assert ("splits.json" in caught.value.where, "--run NEW" in caught.value.todo) == (True, True)
    assert prepared.calls == ["alpha"]
    assert not prepared.reporter.warnings
    assert not (prepared.path / "alpha-other").exists()


def test_a_corpus_that_moved_or_changed_its_format_is_the_same(prepared, tmp_path):
    moved, table = tmp_path / "moved.parquet", tmp_path / "data.jsonl"
    shutil.copyfile(prepared.data, moved)
    pl.read_parquet(prepared.data).write_ndjson(table)
    known = read_json(prepared.path / "run.json", "the run")["data_hash"]
    for path in (moved, table):
        _run(prepared, path, force=True)
    assert prepared.calls == 3 * ["alpha"]
    assert read_json(prepared.path / "run.json", "the run")["data_hash"] == known


def _grow(laboratory):
    """Add a training document to the corpus of a laboratory."""
    documents = pl.read_parquet(laboratory.data)
    documents.vstack(
        documents.head(1).with_columns(doc_id=pl.lit("new"), text=pl.lit("something new"))
    ).write_parquet(laboratory.data)


def test_a_run_goes_on_with_a_corpus_that_has_grown(prepared):
    prepared.run("beta")
    _grow(prepared)
    prepared.on["alpha"] = lambda context: context.corpus().split("train") and {}
    with pytest.raises(
        ArtefactError, match="other documents, ids, texts, labels than when the run was made"
    ) as caught:
        prepared.run("alpha", force=True)
    assert "`plant train --continue`" in caught.value.todo
    sizes = []
    prepared.on["alpha"] = lambda context: sizes.append(len(context.corpus().split("train"))) or {}
    prepared.run("alpha", grow=True, options={"k": 3})
    assert sizes == [37]
    header = read_json(prepared.path / "run.json", "the run")
    assert len(header["former"]) == 1
    assert not [path.name for path in prepared.path.glob(".corpus*")]
    with pytest.raises(UsageError, match="the stage 'beta' is finished") as caught:
        prepared.run("beta")
    assert "its input 'alpha'" not in caught.value.where  # its file is the same
    assert "the corpus has grown since" in caught.value.where
    prepared.run("beta", grow=True)
    assert prepared.calls.count("alpha") == 3
    prepared.run("alpha", grow=True, resume=True)
    assert prepared.reporter.notes[-1] == "alpha: unchanged, skipped"


def test_a_later_export_may_call_its_columns_otherwise(prepared):
    _grow(prepared)
    pl.read_parquet(prepared.data).rename({"text": "body"}).write_parquet(prepared.data)
    prepared.run("alpha", grow=True, flags={"data": {"text_column": "body"}})
    assert prepared.record("alpha")["sections"]["data"]["text_column"] == "body"
    assert (
        "the corpus of the run has grown: 1 new documents (1 in train)" in prepared.reporter.notes
    )


def test_other_options_are_refused_though_the_corpus_has_grown(prepared):
    _grow(prepared)
    with pytest.raises(UsageError, match="with other options or inputs than now"):
        prepared.run("alpha", grow=True, options={"k": 5})


def test_what_was_not_finished_on_the_earlier_corpus_is_put_aside(prepared):
    def stop(context):
        raise Interrupted("stopped", expected="", todo="")

    prepared.on["alpha"] = stop
    prepared.fails(Interrupted, "stopped", "alpha", force=True)
    _grow(prepared)
    del prepared.on["alpha"]
    prepared.run("alpha", grow=True)
    assert "'alpha' was not finished on the earlier corpus: it is kept in" in "".join(
        prepared.reporter.notes
    )
    assert prepared.record("alpha")["status"] == "done"


@pytest.mark.parametrize("killed", ["before", "after"])
def test_a_process_that_was_killed_while_the_corpus_was_replaced_loses_nothing(prepared, killed):
    corpus, known = (
        prepared.path / "corpus",
        read_json(prepared.path / "run.json", "the run")["data_hash"],
    )
    labels = Run.open(prepared.path).header.label_hash
    former = prepared.path / ".former" / f"{known}-{labels}"
    former.parent.mkdir()
    corpus.rename(former)
    if killed == "after":  # another corpus is in its place already
        shutil.copytree(former, corpus)
        CorpusRecord.read(corpus).model_copy(update={"held_out": ["x"]}).write(corpus)
    assert find_corpus(Run.open(prepared.path)) == former
    prepared.run("alpha", grow=True, resume=True)
    assert read_json(corpus / "splits.json", "the corpus")["data_hash"] == known
    assert not former.exists()


def test_a_made_up_corpus_cannot_grow(clinic):
    clinic("mig", "mig.k=5")
    header = read_json(clinic.path / "run.json", "the run")
    assert header["sources"] == {}
    with pytest.raises(UsageError, match="it cannot grow"):
        clinic("mig", "mig.k=5", grow=True)


def test_a_corpus_that_is_not_there_is_told_so(prepared, tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        _run(prepared, tmp_path / "nowhere.parquet")


@pytest.mark.parametrize("request_", [{}, {"force": True}, {"tag": "other"}])
def test_the_run_of_a_made_up_corpus_takes_no_file(clinic, laboratory, request_):
    clinic("mig", "mig.k=5")
    named = f"data.path={laboratory.data}"
    with pytest.raises(
        ArtefactError, match="this run belongs to another corpus, made by 'synthetic-clinic'"
    ) as caught:
        clinic("mig", "mig.k=5", named, **request_)
    assert "--run NEW" in caught.value.todo
    with pytest.raises(DataError, match="there is no such file"):
        clinic("mig", "mig.k=5", f"{named}x", **request_)
