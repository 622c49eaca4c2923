from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import ArtefactError
from plant_cli.artefacts.lexical import LEXICAL, StoredLexicon, read_lexicon, write_lexicon
from tests.artefacts.conftest import record_outputs

LEXICON = StoredLexicon(
    words=("cough", "fièvre", "leg"),
    idf=np.array([0.5, 1.0, 2.0], dtype=np.float32),
    by_label=csr_array(np.array([[1, 0, 0], [0, 0.6, 0.8]], dtype=np.float32)),
    silent=np.array([0, 0.25], dtype=np.float32),
    weight=8.0,
    centre=0.1,
)


def test_it_comes_back(tmp_path: Path) -> None:
    write_lexicon(tmp_path, LEXICON, "l")
    found = read_lexicon(tmp_path, "l")
    assert found is not None
    assert (found.words, found.weight, found.centre) == (LEXICON.words, 8.0, 0.1)
    assert np.array_equal(found.by_label.toarray(), LEXICON.by_label.toarray())
    assert np.array_equal(found.idf, LEXICON.idf)
    assert np.array_equal(found.silent, LEXICON.silent)


def test_a_folder_without_the_file_has_none(tmp_path: Path) -> None:
    assert read_lexicon(tmp_path, "l") is None


def test_another_label_order_is_refused(tmp_path: Path) -> None:
    write_lexicon(tmp_path, LEXICON, "l")
    with pytest.raises(ArtefactError, match="the file of lexical scores was made for another label order"):
        read_lexicon(tmp_path, "m")


def test_equal_content_is_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_lexicon(tmp_path / name, replace(LEXICON), "l")
    assert (tmp_path / "one" / LEXICAL).read_bytes() == (tmp_path / "two" / LEXICAL).read_bytes()


def test_a_flipped_bit_is_told(tmp_path: Path) -> None:
    write_lexicon(tmp_path, LEXICON, "l")
    record_outputs(tmp_path, "finetune")
    path = tmp_path / LEXICAL
    content = bytearray(path.read_bytes())
    content[-2] ^= 2
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=f"the file '{LEXICAL}' of the stage .* is damaged"):
        read_lexicon(tmp_path, "l")
