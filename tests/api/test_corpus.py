"""Value types of a corpus."""

from scipy.sparse import csr_array

from plant_cli.api import Split


def test_a_split_has_as_many_documents_as_ids() -> None:
    split = Split(name="train", doc_ids=["a", "b"], texts=["x", "y"], gold=csr_array((2, 3)), unseen=csr_array((2, 0)))
    assert len(split) == 2
    assert (split.unseen_labels, split.evidence) == ((), None)
