"""A corpus that was named for a run which has one: it must be the same, wherever it lies now."""

from __future__ import annotations

from pathlib import Path

from plant_cli.api import ArtefactError, Choice
from plant_cli.base.hashing import hash_file
from plant_cli.running.context import RunContext
from plant_cli.runs.folder import Run


def refuse_other_corpus(context: RunContext, run: Run) -> None:
    """Refuse a named corpus that is not that of the run, before anything is said of stages; nothing is read for one at the known place.

    A corpus that moved is known by the hashes of its files, one in another format by those of its documents.

    Args:
        context: of the step that is to begin.
        run: the run, held.

    Raises:
        DataError: it cannot be read.
        ArtefactError: it has other documents, labels or splits, or the run's corpus was made and not read from a path.
    """
    named = context.data.path
    if named is None or run.header.data_hash is None:
        return
    from plant_cli.artefacts.corpus import NEW_RUN, SPLITS_FILE, CorpusRecord
    from plant_cli.running.loading import ANY, load_dataset

    source = CorpusRecord.read(run.corpus_path).source
    before = source.get("path")
    if named == before:
        return
    if before is None:
        dataset = source.get("dataset") or {}
        if not Path(named).exists():
            load_dataset(context, context.data.model_copy(update={"dataset": Choice(name=ANY)}))  # says what is missing
        raise ArtefactError(
            f"this run belongs to another corpus, made by '{dataset.get('name')}', and not to '{named}'",
            where=str(run.corpus_path / SPLITS_FILE),
            expected="a run folder of its own for each corpus",
            todo=NEW_RUN,
        )
    corpus = context.open_corpus()
    if all(Path(file).is_file() and hash_file(Path(file)) in run.header.sources.values() for file in corpus.dataset.files):
        return
    for split in corpus.record.splits:
        for _ in corpus.stream(split):
            pass
