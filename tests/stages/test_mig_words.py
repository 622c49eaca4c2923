from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plant_cli.api import DataError, UsageError
from plant_cli.corpus.labels import LabelTable
from plant_cli.relevance.counting import Margins
from plant_cli.relevance.kept import KeptWords
from plant_cli.relevance.store import load_relevance, write_relevance
from plant_cli.stages.mig_words import EditOptions, ShowOptions, edit, show

LABELS = LabelTable(ids=["flu", "trauma"], titles=["Influenza with cough", "Broken bones"], train_counts=[3, 2])
MARGINS = Margins(
    n_docs=5,
    words=("and", "fever", "arm", "broken", "cough", "leg"),
    docs_with_word=np.array([3, 3, 2, 2, 2, 2]),
    docs_with_label=np.array([3, 2]),
)


@pytest.fixture
def context(tmp_path: Path) -> Any:
    """A finished `mig` that kept three words for each label."""
    words = [MARGINS.words.index(word) for word in ("fever", "cough", "and", "arm", "broken", "leg")]
    kept = KeptWords(
        offsets=np.array([0, 3, 6]),
        words=np.array(words, dtype=np.int32),
        values=np.array([0.67301166, 0.29, 0.02, 0.67301166, 0.67301166, 0.01]),
        both=np.array([3, 2, 2, 2, 2, 1], dtype=np.int32),
    )
    folder = tmp_path / "mig"
    write_relevance(folder, [(kept, np.array([1.0, 0.5, 0.25, 2 / 3, 0.5, 0.25]))], MARGINS, LABELS)
    return SimpleNamespace(folder=folder, input=lambda stage, tag=None: folder)


def shown(context: Any, label: str, limit: int = 20) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in show(context, ShowOptions(label=label, limit=limit)).tables[0].rows]


@pytest.mark.parametrize("label", ["trauma", "Broken bones", "bones"])
def test_show_by_id_title_or_part_of_it(label: str, context: Any) -> None:
    assert shown(context, label)[0] == ("arm", 0.673, 0.6667, 2, 2, "")
    assert [row[0] for row in shown(context, label, limit=2)] == ["arm", "broken"]
    result = show(context, ShowOptions(label=label, limit=2))
    assert result.tables[0].title == "trauma Broken bones"
    assert result.tables[0].notes == ["2 training documents carry the label; 2 of 3 words shown"]


def test_show_offers_near_names(context: Any) -> None:
    with pytest.raises(DataError, match="no labels are named 'trama'") as caught:
        shown(context, "trama")
    assert "'trauma'" in caught.value.expected
    with pytest.raises(DataError, match="2 labels are named 'en'") as caught:
        shown(context, "en")
    assert caught.value.expected == "one of flu (Influenza with cough), trauma (Broken bones)"


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
    assert row == pytest.approx({"and": 0, "fever": 1, "arm": 0, "broken": 0, "cough": 0.9, "leg": 0.8})


def test_edits_are_listed_and_cleared(context: Any) -> None:
    edit(context, EditOptions(label="flu", deny=("and",)))
    edit(context, EditOptions(label="trauma", allow=("fever=0.5",)))
    assert list(edit(context, EditOptions(list=True)).tables[0].rows) == [
        ("flu", "and", "denied", None),
        ("trauma", "fever", "allowed", 0.5),
    ]
    assert list(edit(context, EditOptions(label="flu", clear=True)).tables[0].rows) == []
    assert len(edit(context, EditOptions(list=True)).tables[0].rows) == 1
    edit(context, EditOptions(clear=True))
    assert not (context.folder / "edits.yaml").exists()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (EditOptions(label="flu"), "nothing to edit"),
        (EditOptions(deny=("and",)), "for one label"),
        (EditOptions(label="flu", list=True, deny=("and",)), "for one label"),
        (EditOptions(label="flu", deny=("fevre",)), "no training document has the word 'fevre'"),
        (EditOptions(label="flu", allow=("and",)), "not a word with a relevance"),
        (EditOptions(label="flu", allow=("and=2",)), "not a word with a relevance"),
    ],
)
def test_wrong_edits_are_refused_and_change_nothing(options: EditOptions, what: str, context: Any) -> None:
    with pytest.raises(UsageError, match=what) as caught:
        edit(context, options)
    assert caught.value.exit_code == 2
    assert not (context.folder / "edits.yaml").exists()
    if "fevre" in what:
        assert "'fever'" in caught.value.expected
