from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plant_cli.api import ArtefactError, DataError, UsageError
from plant_cli.commands.command_options import EditOptions, MigShowOptions
from plant_cli.commands.mig_words import _find_words, edit, show_words
from plant_cli.data.labels import LabelTable
from plant_cli.relevance.cooccurrence import Margins
from plant_cli.relevance.engine import KeptWords
from plant_cli.relevance.relevance_table import load_relevance, write_forms, write_relevance
from plant_cli.runs.lock import hold_lock
from plant_cli.testing.contexts import make_context

LABELS = LabelTable(
    ids=["flu", "trauma"], titles=["Influenza with cough", "Broken bones"], train_counts=[3, 2]
)
MARGINS = Margins(
    n_docs=5,
    words=("and", "fever", "arm", "broken", "cough", "leg"),
    docs_with_word=np.array([3, 3, 2, 2, 2, 2]),
    docs_with_label=np.array([3, 2]),
)


@pytest.fixture
def context(tmp_path: Path) -> Any:
    """A finished `mig` that kept three words for each label."""
    words = [
        MARGINS.words.index(word) for word in ("fever", "cough", "and", "arm", "broken", "leg")
    ]
    kept = KeptWords(
        offsets=np.array([0, 3, 6]),
        words=np.array(words, dtype=np.int32),
        values=np.array([0.67301166, 0.29, 0.02, 0.67301166, 0.67301166, 0.01]),
        both=np.array([3, 2, 2, 2, 2, 1], dtype=np.int32),
    )
    folder = tmp_path / "mig"
    write_relevance(folder, [(kept, np.array([1.0, 0.5, 0.25, 2 / 3, 0.5, 0.25]))], MARGINS, LABELS)
    return make_context(folder, inputs={"mig": folder})


@pytest.fixture
def coded(tmp_path: Path) -> Any:
    """The same with label ids that are alike but for their case, a part, or a dash, and no
    titles.
    """
    folder = tmp_path / "mig"
    names = ["-foo", "BAR", "Herz, links", "bar", "foo"]
    one = KeptWords(
        offsets=np.arange(len(names) + 1),
        words=np.zeros(len(names), dtype=np.int32),
        values=np.ones(len(names)),
        both=np.ones(len(names), dtype=np.int32),
    )
    margins = replace(MARGINS, docs_with_label=np.full(len(names), 2))
    labels = LabelTable(ids=names, titles=[None] * len(names), train_counts=[2] * len(names))
    write_relevance(folder, [(one, np.ones(len(names)))], margins, labels)
    return make_context(folder, inputs={"mig": folder})


def shown(context: Any, label: str, limit: int = 20) -> list[tuple[Any, ...]]:
    return [
        tuple(row)
        for row in show_words(context, MigShowOptions(label=label, limit=limit)).tables[0].rows
    ]


@pytest.mark.parametrize("label", ["trauma", "Broken bones", "bones"])
def test_show_by_id_title_or_part_of_it(label: str, context: Any) -> None:
    assert shown(context, label)[0] == ("arm", 0.673, 0.6667, 2, 2, "")
    assert [row[0] for row in shown(context, label, limit=2)] == ["arm", "broken"]
    result = show_words(context, MigShowOptions(label=label, limit=2))
    assert result.tables[0].title == "trauma Broken bones"
    assert result.tables[0].notes == ["2 training documents with the label; 2 of 3 words shown"]


def test_show_offers_near_names(context: Any) -> None:
    for misspelt in ("trama", "TRAMA"):
        with pytest.raises(DataError, match=f"no label is named '{misspelt}'") as caught:
            shown(context, misspelt)
        assert "'trauma'" in caught.value.expected
    with pytest.raises(DataError, match="2 labels have 'en' in the id or title") as caught:
        shown(context, "en")
    assert caught.value.expected == "one of flu (Influenza with cough), trauma (Broken bones)"


@pytest.mark.parametrize(
    ("wanted", "label"),
    [("foo", "foo"), ("FOO", "foo"), ("herz", "Herz, links"), ("-FOO", "-foo"), ("bar", "bar")],
)
def test_show_finds_a_label_whatever_the_case_and_says_which(
    wanted: str, label: str, coded: Any
) -> None:
    assert show_words(coded, MigShowOptions(label=wanted)).tables[0].title == label
    assert coded.reporter.notes == (
        [] if wanted == label else [f"'{wanted}' is taken for the label '{label}'"]
    )


def test_labels_that_cannot_be_told_apart_are_listed(coded: Any) -> None:
    with pytest.raises(DataError, match="2 labels have 'Bar' as the id or title") as caught:
        shown(coded, "Bar")
    assert caught.value.expected == "one of BAR, bar"
    with pytest.raises(DataError, match="2 labels have 'fo' in the id or title") as caught:
        shown(coded, "fo")
    assert caught.value.expected == "one of -foo, foo"
    assert "`plant mig show -- -ID`" in caught.value.todo


def test_edit_takes_no_part_of_a_name_for_a_label(coded: Any) -> None:
    with pytest.raises(DataError, match="one label has 'herz' in the id or title") as caught:
        edit(coded, EditOptions(label="herz", deny=("and",)))
    assert caught.value.expected == "one of Herz, links"
    assert "`plant mig edit ID`" in caught.value.todo
    assert not (coded.folder / "edits.yaml").exists()
    edit(coded, EditOptions(label="HERZ, LINKS", deny=("and",)))
    assert [row[0] for row in edit(coded, EditOptions(list=True)).tables[0].rows] == ["Herz, links"]
    assert coded.reporter.notes == ["'HERZ, LINKS' is taken for the label 'Herz, links'"]


def test_edits_show_and_reach_training(context: Any) -> None:
    wanted = EditOptions(label="flu", deny=("and",), allow=("leg=0.8", "cough=0.9"))
    first = edit(context, wanted)
    text = (context.folder / "edits.yaml").read_text()
    assert edit(context, wanted).tables == first.tables
    assert (context.folder / "edits.yaml").read_text() == text
    assert [(row[0], row[2], row[5]) for row in shown(context, "flu")] == [
        ("fever", 1.0, ""),
        ("cough", 0.9, "allowed"),
        ("leg", 0.8, "allowed"),
        ("and", 0.0, "denied"),
    ]
    table = load_relevance(context.folder, LABELS.hash)
    row = dict(zip(table.words, table.matrix.toarray()[0].tolist(), strict=True))
    assert row == pytest.approx(
        {"and": 0, "fever": 1, "arm": 0, "broken": 0, "cough": 0.9, "leg": 0.8}
    )


def test_forms_are_shown_and_edited_as_their_word(context: Any) -> None:
    write_forms(
        context.folder,
        [("fever", "fevers"), ("fever", "fever"), ("leg", "legs"), ("leg", "leg"), ("arm", "arm")],
    )
    assert [(row[0], row[-1]) for row in shown(context, "trauma")] == [
        ("arm", ""),
        ("broken", ""),
        ("leg", "legs, leg"),
    ]
    edit(context, EditOptions(label="trauma", allow=("Fevers=0.5",), deny=("legs",)))
    assert context.reporter.notes == [
        "'legs' is counted as 'leg'",
        "'Fevers' is counted as 'fever'",
    ]
    assert [(row[0], row[2]) for row in shown(context, "trauma")][2:] == [
        ("fever", 0.5),
        ("leg", 0.0),
    ]


def test_a_word_is_edited_however_it_is_written(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [("stage3", "stages3"), ("type2", "type2"), ("c++", "c++")]
    monkeypatch.setattr("plant_cli.commands.mig_words.read_pairs", lambda folder: pairs)
    find = _find_words(context, context.folder)
    written = ["Type 2", "type-2", "type2", "Stages 3", "C++", "heart failure", "FEVER"]
    assert [find(one) for one in written] == [
        "type2",
        "type2",
        "type2",
        "stage3",
        "c++",
        "heart failure",
        "fever",
    ]
    assert context.reporter.notes[0] == "'Type 2' is counted as 'type2'"


def test_edits_are_listed_and_cleared(context: Any) -> None:
    edit(context, EditOptions(label="flu", deny=("and",)))
    edit(context, EditOptions(label="trauma", allow=("fever=0.5",)))
    assert list(edit(context, EditOptions(list=True)).tables[0].rows) == [
        ("flu", "Influenza with cough", "and", "denied", None),
        ("trauma", "Broken bones", "fever", "allowed", 0.5),
    ]
    assert list(edit(context, EditOptions(label="flu", clear=True)).tables[0].rows) == []
    assert len(edit(context, EditOptions(list=True)).tables[0].rows) == 1
    before = (context.folder / "edits.yaml").read_text()
    assert len(edit(context, EditOptions(list=True, clear=True)).tables[0].rows) == 1
    assert (context.folder / "edits.yaml").read_text() == before


def test_all_edits_are_counted_and_kept_in_a_file_when_they_are_forgotten(context: Any) -> None:
    edit(context, EditOptions(label="flu", deny=("and",), allow=("fever=0.5", "leg=1")))
    edit(context, EditOptions(label="trauma", allow=("fever=0.5",)))
    path, kept = context.folder / "edits.yaml", context.folder.parent / "mig.edits.yaml.bak"
    before = path.read_text()
    assert edit(context, EditOptions(clear=True)).tables[0].notes == [
        f"forgotten: 4 edits of 2 labels; {kept} keeps them"
    ]
    assert not path.exists()
    again = edit(context, EditOptions(clear=True))
    assert (again.tables[0].notes, again.next_step) == (["there were no edits to forget"], None)
    assert kept.read_text() == before
    path.write_text("flu: [")
    assert "could not be read" in edit(context, EditOptions(clear=True)).tables[0].notes[0]
    assert kept.read_text() == "flu: ["
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (EditOptions(label="flu"), "nothing to edit"),
        (EditOptions(deny=("and",)), "for one label"),
        (EditOptions(label="flu", list=True, deny=("and",)), "for one label"),
        (EditOptions(label="flu", deny=("fevre",)), "no training document has the word 'fevre'"),
        (EditOptions(label="flu", allow=("and",)), "not a word with a relevance"),
        (EditOptions(label="flu", allow=("and=2",)), "not a word with a relevance"),
        (
            EditOptions(label="flu", deny=("and",), allow=("and=0.3",)),
            "'and' is denied and allowed at once",
        ),
    ],
)
def test_wrong_edits_are_refused_and_change_nothing(
    options: EditOptions, what: str, context: Any
) -> None:
    with pytest.raises(UsageError, match=what) as caught:
        edit(context, options)
    assert caught.value.exit_code == 2
    assert not (context.folder / "edits.yaml").exists()
    if "fevre" in what:
        assert "'fever'" in caught.value.expected


def test_edits_at_one_time_are_all_kept(context: Any) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda word: edit(context, EditOptions(label="flu", deny=(word,))), MARGINS.words
            )
        )
    assert [row[2] for row in edit(context, EditOptions(list=True)).tables[0].rows] == sorted(
        MARGINS.words
    )


def test_an_edit_of_a_run_that_is_being_written_is_refused(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_cli.commands.mig_words.WAIT", 0.01)
    for options in (EditOptions(label="flu", deny=("and",)), EditOptions(clear=True)):
        with (
            hold_lock(context.folder.parent, "finetune"),
            pytest.raises(ArtefactError, match="another process is writing to this run: finetune"),
        ):
            edit(context, options)
    assert not (context.folder / "edits.yaml").exists()
    with hold_lock(context.folder.parent, "finetune"):
        assert list(edit(context, EditOptions(list=True)).tables[0].rows) == []


def test_an_edit_reads_the_relevance_that_it_waited_for(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What held the lock may have made the relevance anew: nothing that was read before counts."""
    read: list[bool] = []
    lock = hold_lock

    @contextmanager
    def note(*arguments: Any, **options: Any) -> Iterator[None]:
        with lock(*arguments, **options):
            read.append(False)
            yield

    take = context.input
    monkeypatch.setattr("plant_cli.commands.mig_words.hold_lock", note)
    monkeypatch.setattr(
        type(context), "input", lambda self, name, tag=None: (read.append(True), take(name, tag))[1]
    )
    edit(context, EditOptions(label="flu", deny=("and",)))
    assert read[0] is False
    assert True in read
