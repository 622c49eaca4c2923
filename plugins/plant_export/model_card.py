"""The card of an exported model, as the Hugging Face hub shows it: what it is, its data and
figures, its limits, how to use it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from plant_cli.api import Column, Table
from plant_cli.data.corpus_files import STATISTICS_FILE, CorpusRecord
from plant_cli.data.files import read_json
from plant_cli.data.languages import name_language
from plant_cli.data.printed_tables import printable, show_count, write_markdown
from plant_cli.data.records import StageRecord
from plant_cli.evaluation.metric_tables import show_bound
from plant_cli.evaluation.results import DEFAULT_METRICS, Bound, MetricsRecord, read_metrics
from plant_cli.runs.changes import trace_stale
from plant_cli.runs.folder import Run
from plant_cli.runs.recipes import dump_yaml

TAGS = ("extreme-multi-label-classification", "multi-label-classification", "subject-indexing")
CHOSEN_ON = "validation"
LIMITS = (
    "Labels are suggestions. A label in the band `review` is to be checked by a person.",
    "Scores are probabilities, calibrated on {chosen}: on texts of another kind, length or "
    "language they may be wrong.",
    "Rare labels are found less often than frequent ones (`R@10[1-5]`: labels of one to five "
    "training documents).",
    "A label that no training document has is not suggested, unless the corpus named it and the "
    "scorer `titles` can find it.",
    "The folder holds no texts. But scorers learned words, ids and labels of the training "
    "documents: from the model one may learn "
    "what these were about.",
)


def write_model_card(
    run: Path,
    corpus: Path,
    model: Path,
    name: str,
    *,
    parts: Sequence[str],
    base: str | None,
    licence: str | None,
    light_lock: str | None,
) -> str:
    """The card in Markdown, with its front matter in YAML.

    Args:
        run: that the model is of.
        corpus: the folder of the corpus that it was trained on.
        model: the folder of its stage there.
        name: of the folder that it is exported to.
        parts: of the model, in words.
        base: id of the network that it was trained from, if the hub has it.
        licence: as the hub names it; None: none is named.
        light_lock: the file there that locks an installation without PyTorch, if that is enough.
    """
    record, opened = CorpusRecord.read(corpus), Run.open(run)
    trained = opened.folder(model.name).record()
    assert trained is not None  # it is exported
    languages = list(record.analyser.shares)
    front = {
        "library_name": "plant",
        "pipeline_tag": "text-classification",
        **({"license": licence} if licence else {}),
        **({"language": languages} if languages else {}),
        **({"base_model": base} if base else {}),
        "tags": [*TAGS],
    }
    texts = Path(str(record.source["path"])).name if record.source.get("path") else "texts"
    chosen = CHOSEN_ON if CHOSEN_ON in record.sizes else "left-out scores of train"
    folder = shlex.quote(name)
    lock = shlex.quote(f"{name}/{light_lock}")
    install, without = "pip install plant-cli", ""
    if light_lock:
        install = f"pip install --require-hashes -r {lock}\npip install --no-deps plant-cli"
        without = "\n\nThe model has no network, so this installation has no PyTorch."
    sections = [
        f"---\n{dump_yaml(front)}---\n\n# Labels for {printable(texts)}",
        f"A model that assigns labels to texts: {', '.join(parts)}. Trained with plant "
        f"{opened.header.plant_version} on {trained.started[:10]}.",
        f"## Use\n\n```sh\n{install}\nplant suggest new.csv --run {folder}\nplant serve {folder}"
        f"\n```{without}",
        f"## Data\n\n{_describe_data(corpus, record)}",
        f"## Figures\n\n{_describe_figures(opened, model.name, trained)}",
        "## Limits\n\n" + "\n".join(f"* {limit.format(chosen=chosen)}" for limit in LIMITS),
        f"## Licence\n\n{licence or 'None was named: ask whoever gave you the model.'}",
    ]
    return "\n\n".join(sections) + "\n"


def _describe_data(corpus: Path, record: CorpusRecord) -> str:
    statistics = read_json(corpus / STATISTICS_FILE, "the statistics of the corpus")
    columns = {
        "documents": "documents",
        "labels": "labels",
        "labels of a document": "labels_per_document_mean",
        "median words": "words_per_document_median",
    }
    rows = [
        [
            name,
            *(
                f"{values[key]:,.1f}" if isinstance(values[key], float) else f"{values[key]:,}"
                for key in columns.values()
            ),
        ]
        for name, values in statistics["splits"].items()
    ]
    spoken = ", ".join(
        f"{name_language(code)} {share:.0%}" for code, share in record.analyser.shares.items()
    )
    bins = ", ".join(f"{name}: {count:,}" for name, count in statistics["bins"].items())
    return "\n".join(
        [
            _lay_out(["split", *columns], rows),
            "",
            f"Labels by training documents: {bins}.",
            *([f"Languages, by share of the training documents: {spoken}."] if spoken else []),
            f"Hash of documents, labels and splits: `{record.data_hash}`.",
        ]
    )


def _describe_figures(run: Run, model: str, trained: StageRecord) -> str:
    """The evaluations of the model that are up to date, by split; where validation was not
    measured, what training found.
    """
    measured: dict[str, MetricsRecord] = {}
    for stage in run.stages():
        record = stage.finished()
        if record is None or record.stage != "eval" or trace_stale(stage.name, run):
            continue
        metrics = read_metrics(stage.path)
        if metrics.system == model:
            measured[metrics.split] = metrics
    columns: dict[str, Mapping[str, Bound]] = {
        split: metrics.all_metrics() for split, metrics in measured.items()
    }
    found = {
        name: Bound(value=value)
        for name, value in trained.summary.items()
        if name in DEFAULT_METRICS and isinstance(value, float)
    }
    if CHOSEN_ON not in columns and found:
        columns[CHOSEN_ON] = found
    if not columns:
        return "None: nothing was measured."
    names = [name for name in DEFAULT_METRICS if any(name in column for column in columns.values())]
    rows = [
        [name, *(show_bound(column.get(name), undefined="") for column in columns.values())]
        for name in names
    ]
    notes = [_describe_evaluation(metrics) for metrics in measured.values()]
    if CHOSEN_ON in columns:
        notes.append(
            f"Weights, thresholds and probabilities were chosen on {CHOSEN_ON}: its figures are "
            "too good."
        )
    if "test" not in columns:
        notes.append("The model was not measured on test.")
    return "\n".join(
        [_lay_out(["in points", *columns], rows), "", *(f"* {note}" for note in notes)]
    )


def _describe_evaluation(metrics: MetricsRecord) -> str:
    resampled = any(one.low is not None for one in metrics.metrics.values())
    intervals = (
        f"{metrics.level:.0%} intervals from documents drawn with replacement"
        if resampled
        else "no intervals"
    )
    convention = f"convention {metrics.convention} ({'; '.join(metrics.assumptions)})"
    leak = "; documents of it were seen in training" if metrics.leakage else ""
    return (
        f"{metrics.split}: {show_count(metrics.documents, 'document')}, {intervals}; "
        f"{convention}; {metrics.threshold}{leak}."
    )


def _lay_out(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    columns = [
        Column(name=name, kind="text" if number == 0 else "count")
        for number, name in enumerate(head)
    ]
    return write_markdown(Table(title="", columns=columns, rows=rows)).rstrip()
