"""Specs, the descriptions of components that plugins register, and the table of kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from plant_cli.api import promises
from plant_cli.api.components import Spec
from plant_cli.api.context import Result, StageContext
from plant_cli.api.corpus import Dataset, DatasetCard, LabelIndex, WordReducer
from plant_cli.api.formats import (
    ForeignPredictions,
    ForeignVocabulary,
    PredictionFile,
    VocabularyFile,
)
from plant_cli.api.functions import Function
from plant_cli.api.model import Backbone, Decoder, DecoderShape, LabelLoss, RankLoss
from plant_cli.api.options import DataSection, MachineSection
from plant_cli.api.scorers import FittedScorer, Scorer, ScorerInput, Shortlist, ShortlistInput
from plant_cli.api.signals import Counts

if TYPE_CHECKING:
    import numpy.typing as npt

    from plant_cli.api.metrics import Metric, MetricInput
    from plant_cli.api.signals import Floats


@dataclass(frozen=True, kw_only=True)
class StageSpec(Spec):
    """A stage, a step of an experiment with its own folder in the run; or an action, which has
    no folder.
    """

    run: Function[Callable[[StageContext, Any], Result]] = Function(promises.STAGE_RESULT)
    """`run(context, options) -> Result` does the work."""
    check: Function[Callable[[StageContext, Any], None] | None] = Function(required=False)
    """`check(context, options)` raises an error if an input is missing; it is called before the
    module of `run` is imported.
    """
    help: str = ""
    """One or two sentences for `--help-all`, below the summary."""
    sections: tuple[Literal["data", "model", "machine"], ...] = ()
    """Shared sections of recipes whose options the command also takes as flags: `data` to read
    the corpus, `model` to build the network, `machine` for the seed and the device.
    """
    writes: bool = True
    """False for an action: it has no folder and takes no lock. Its name may have two words,
    such as `mig show`.
    """
    takes: tuple[Literal["tag", "force", "resume", "continue"], ...] = ()
    """Which of the general flags `--tag`, `--force`, `--resume` and `--continue` an action has;
    a stage has the first three.
    """
    needs_run: bool = True
    """False for an action that works without a run folder, such as `data make`."""
    parallel: bool = False
    """True if the processes of `accelerate launch` share its work: the first one writes to the
    run, the others to temporary copies of it. If it is false, only the first process works.
    """
    feeds: tuple[str, ...] = ()
    """Names of stages that read its results. A recipe runs it before them, in whatever order it
    lists them.
    """
    reads: Mapping[str, str] = field(default_factory=dict)
    """Stages that it reads, each with the option that names its tag. A changed copy of such a
    stage makes a copy of this one, and the model of such a stage is the default of this one's
    section `model`.
    """
    seeded: bool = False
    """True if its results depend on the seed of training, directly or through its inputs:
    `plant run --seeds` repeats it.
    """
    system: Literal["trains", "scores", "measures"] | None = None
    """Its part in a trained system, which is all stages of one tag. `trains`: it makes the
    system, and its folder is the system's name. `scores`: it keeps the system's scores.
    `measures`: it evaluates the system, and its folder is also a name of it.
    """
    looks: bool = False
    """True if it only looks at what others made: a new look takes the place of the last one,
    without `--force`.
    """
    judges: bool = False
    """True if it evaluates the system of its own tag, or the system without a tag if there is
    none.
    """
    compares: bool = False
    """True if it compares the systems that its option `systems` names, over the number of seeds
    in its option `seeds`. `plant run --seeds` runs it once, over all seeds, and adds it to a
    recipe without it.
    """
    figures: tuple[str, ...] = ()
    """JSON files in its folder that `plant verify` recomputes."""
    locks: bool = False
    """True for an action that locks the run itself; it cannot be a step of a recipe."""
    opens_model: bool = False
    """True for the action whose `machine` section and `check` hold for `open_model` of
    `plant_cli.kit`.
    """
    order: int = 100
    """Its position in its group of `plant --help`; then sorted by name."""
    group: str = "Tools"
    """Its heading in `plant --help`: Begin, Look, Train by hand, Corpus, Tools, or another one."""
    examples: tuple[str, ...] = ()
    """Two or three command lines, shown first in help."""

    @property
    def learns(self) -> bool:
        """Whether it learns from the training documents, so that it may take a part of them
        (`data.train_share`).
        """
        return (
            self.writes
            and "data" in self.sections
            and self.system in (None, "trains")
            and not self.judges
        )

    def accepts(self, flag: Literal["tag", "force", "resume"]) -> bool:
        """Whether the command has this general flag."""
        return self.writes or flag in self.takes


@dataclass(frozen=True, kw_only=True)
class NetworkSpec(StageSpec):
    """The stage with which a plugin brings networks, and what the core asks that plugin for. The
    core itself imports no torch; one plugin brings networks.
    """

    train: Function[Callable[[StageContext, Any, Any], Result]] = Function(promises.STAGE_RESULT)
    """`train(context, options, rule) -> Result` trains a network for `plant finetune`, with its
    options; `rule` (`RelevanceRule`) finds the relevance of words, where a scorer asks for it.
    """
    load: Function[Callable[[Any, Any], Any]] = Function()
    """`load(source, combination) -> TrainedModel` opens a network that was trained
    (`ModelSource`), with the scorers and the calibration that were saved with it.
    """
    meet: Function[Callable[[], object]] = Function()
    """`meet()` waits until all processes of `accelerate launch` call it."""
    examine: Function[Callable[[], Iterable[Any]]] = Function()
    """`examine()` gives checks of the machine (`CheckResult`), for `plant doctor`."""


@dataclass(frozen=True, kw_only=True)
class BackboneStart:
    """The stage of the run that makes a backbone's vocabulary and first weights."""

    stage: str
    """Name of that stage, such as `pretrain-lm`."""
    option: str
    """The backbone's option for the folder of that stage; training sets it if the user does
    not. A trained network is loaded from its own folder, where `save` writes everything that
    `load` needs.
    """


@dataclass(frozen=True, kw_only=True)
class BackboneSpec(Spec):
    """A network that reads text and gives hidden states."""

    load: Function[Callable[[Any, MachineSection], Backbone]] = Function(promises.BACKBONE)
    """`load(options, machine) -> Backbone`; random weights are drawn from torch's generator."""
    languages: tuple[str, ...] | None = None
    """Languages that its default model was trained on, as ISO 639-1 codes; None if unknown.
    Training warns if the documents are in another language, and suggests backbones for it.
    """
    start: BackboneStart | None = None
    """For a backbone that needs a result of a stage, such as a vocabulary made from the corpus."""
    is_installed: Function[Callable[[], bool] | None] = Function(promises.TRUTH, required=False)
    """`is_installed() -> bool`: whether the package with its weights is installed; left out if
    its weights are in no package.
    """


@dataclass(frozen=True, kw_only=True)
class DecoderSpec(Spec):
    """A network that computes label scores from hidden states."""

    build: Function[Callable[[Any, DecoderShape], Decoder]] = Function(promises.DECODER_NETWORK)
    """`build(options, shape) -> Decoder`."""
    check: Function[Callable[[Any, LabelIndex], None] | None] = Function(required=False)
    """`check(options, labels)` raises an error if the corpus lacks what the decoder needs, such
    as parents of labels; it is called before anything is trained.
    """
    stage2_options: tuple[str, ...] = ()
    """Options that may differ between stage 1 and stage 2: they change neither what stage 1
    trains nor the names and shapes of weights.
    """


@dataclass(frozen=True, kw_only=True)
class LossSpec(Spec):
    """A loss of one of the two stages of training."""

    stage: Literal["rank", "label"]
    """`rank` for stage 1, `label` for stage 2."""
    build: Function[Callable[[Any], RankLoss | LabelLoss]] = Function(promises.LOSS)
    """`build(options)` returns a `RankLoss` for `rank`, a `LabelLoss` for `label`."""


@dataclass(frozen=True, kw_only=True)
class SignalSpec(Spec):
    """How strongly a word indicates a label."""

    score: Function[Callable[[Counts, Any], Floats]] = Function(promises.SIGNAL)
    """`score(counts, options) -> values`, a pure function; values are float64 with the shape of
    the counts.
    """
    needs_occurrences: bool = False
    """True if it reads `Counts.occurrences` and `Counts.words_with_label`."""
    needs_pairs: bool = False
    """True if it reads `Counts.pairs`; then only words that occur with the label are scored."""
    signed: bool = False
    """True if a negative value means that the word's absence indicates the label; then only
    words that occur with the label are scored.
    """
    quasi_convex: bool = False
    """True if values first fall and then rise (or only fall) as `docs_with_word` grows, for a
    fixed label and `docs_with_both`. Then most words that occur with a label in at most one
    document need no score, and the result is the same.
    """


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(Spec):
    """A corpus, or a reader of a format."""

    load: Function[Callable[[DataSection, Any], Dataset]] = Function(promises.DATASET)
    """`load(data, options) -> Dataset`; `data` is the section `data` of the recipe."""
    recognise: Function[Callable[[DataSection], str | None] | None] = Function(
        promises.SENTENCE, required=False
    )
    """`recognise(data) -> sentence or None`: describes the content of the path if it is in this
    format. The dataset `files` asks all datasets, and the one that answers reads the corpus. It
    reads a few lines, and raises no error for any file.
    """
    guess: Function[Callable[[DataSection], Mapping[str, str]] | None] = Function(
        promises.NAMED_COLUMNS, required=False
    )
    """`guess(data) -> options`: those of the section `data`, such as `text_column`, that fit
    the corpus better than the section does, for `plant train`. Two columns that may be meant
    equally well are a `DataError`.
    """
    write: Function[Callable[[Dataset, Path, str], Sequence[str]] | None] = Function(
        promises.REMARKS, required=False
    )
    """`write(dataset, folder, suffix) -> remarks`, for `plant data convert --to NAME`: writes
    the splits into an empty folder, where `load` can read them; `suffix` is "", ".gz" or
    ".zst". The remarks say what the format cannot store.
    """
    hub: bool = False
    """True if the path may also be the id of a data set on a hub, which is asked for only if
    the user names it.
    """
    answers: bool = False
    """True if `load` follows `data.question` and `data.annotators`; else they are refused."""
    card: DatasetCard | None = None
    """Facts about a published corpus, shown by `plant data info NAME`."""


@dataclass(frozen=True, kw_only=True)
class MetricSpec(Spec):
    """A family of metrics. The name is that of the family (`precision`); its values have their
    usual names (`P@1`, `P@5`).
    """

    compute: Function[Callable[[MetricInput, Any], Sequence[Metric]]] = Function(
        promises.METRIC_VALUES
    )
    """`compute(input, options) -> values`."""
    needs_all_scores: tuple[str, ...] = ()
    """The names of its values if they need `MetricInput.all_scores`; without these scores they
    are reported as not available.
    """


@dataclass(frozen=True, kw_only=True)
class ShortlistSpec(Spec):
    """A way to choose the labels that are worth scoring."""

    build: Function[Callable[[Any, ShortlistInput], Shortlist]] = Function(promises.SHORTLIST)
    """`build(options, input) -> Shortlist`."""
    most: Function[Callable[[Any, int], int] | None] = Function(
        promises.WHOLE_NUMBER, required=False
    )
    """`most(options, labels) -> int`: how many of `labels` it proposes for a document at most;
    for `plant plan`. By default all.
    """


@dataclass(frozen=True, kw_only=True)
class ScorerSpec(Spec):
    """A way to score labels without the network."""

    fit: Function[Callable[[Any, ScorerInput], FittedScorer]] = Function(promises.FITTED)
    """`fit(options, input) -> FittedScorer`, from training documents and names of labels."""
    load: Function[Callable[[Any, Mapping[str, npt.NDArray[Any]]], Scorer]] = Function(
        promises.SCORER
    )
    """`load(options, tensors) -> Scorer`, from the arrays of `Scorer.tensors()`."""
    needs_names: bool = False
    """True if it needs names of labels; without them it is left out with a note."""
    needs_relevance: bool = False
    """True if it asks for the relevance of words (`ScorerInput.relate`); it is then fitted anew
    when the run's `plant mig` has changed.
    """
    needs_texts: bool = False
    """True if it reads texts as they were written (`Documents.texts`); without it train comes
    without them.
    """
    zero_shot: bool = False
    """True if it also scores labels without training documents."""
    memory: Function[Callable[[Any, int], int] | None] = Function(
        promises.WHOLE_NUMBER, required=False
    )
    """`memory(options, documents) -> int`, for `plant plan`: bytes that fitting needs, if they
    grow faster than the number of documents (a matrix of all pairs of documents). By default
    they are estimated from fits on samples.
    """


@dataclass(frozen=True, kw_only=True)
class AnalyserSpec(Spec):
    """What counts as one word: reduces the forms of a word in a language to one form."""

    load: Function[Callable[[Any, str], WordReducer]] = Function(promises.REDUCER)
    """`load(options, language) -> WordReducer` by ISO 639-1 code; raises `LookupError` for an
    unknown language.
    """
    languages: tuple[str, ...] | None = None
    """The languages that it knows; None: those that `load` accepts. An analyser with one
    language skips the detection of languages.
    """
    phrase: str = "in a form of its own"
    """How it counts words, for messages, such as "as lemmas"."""
    package: str | None = None
    """The package whose version changes its words; by default the distribution of the plugin.
    The version is recorded with the corpus.
    """
    automatic: int | None = None
    """Its rank among the analysers that `auto` tries, lowest first; None if it is used only by
    name.
    """


@dataclass(frozen=True, kw_only=True)
class PredictionsSpec(Spec):
    """A format in which other tools write predictions."""

    recognise: Function[Callable[[PredictionFile], str | None]] = Function(promises.SENTENCE)
    """`recognise(file) -> phrase or None`: what the file is, such as "a TREC run", if it is in
    this format. It looks at the sample, and raises no error for any file.
    """
    read: Function[Callable[[PredictionFile], ForeignPredictions]] = Function(
        promises.FOREIGN_PREDICTIONS
    )
    """`read(file) -> ForeignPredictions`; a `DataError` names the line that is not in this
    format.
    """
    order: int = 0
    """Formats are asked from the lowest order to the highest, and the first that recognises a
    file reads it. Those of `plant` have 1 and more; the last one reads any table.
    """


@dataclass(frozen=True, kw_only=True)
class VocabularySpec(Spec):
    """A format of controlled vocabularies."""

    recognise: Function[Callable[[VocabularyFile], str | None]] = Function(promises.SENTENCE)
    """`recognise(file) -> phrase or None`: what the file is, such as "SKOS in Turtle", if it is
    in this format. It raises no error for any file.
    """
    read: Function[Callable[[VocabularyFile], ForeignVocabulary]] = Function(promises.VOCABULARY)
    """`read(file) -> ForeignVocabulary`."""
    order: int = 0
    """Formats are asked from the lowest order to the highest, and the first that recognises a
    file reads it. Those of `plant` have 1 and more; the last one reads any table.
    """


@dataclass(frozen=True)
class Kind:
    """A kind of component."""

    name: str
    """Singular, as in messages and `choice(...)`."""
    plural: str
    """Plural, as in the hook `plant_register_<plural>`."""
    spec: type[Spec]
    """The class of its specs."""
    summary: str
    """One sentence about these components."""
    network: bool = False
    """Whether they are parts of networks, whose plugin has their conformance checks."""

    @property
    def hook(self) -> str:
        """The function that registers components of this kind."""
        return f"plant_register_{self.plural}"

    @property
    def checks(self) -> str:
        """The module with the conformance checks of this kind."""
        return f"{'plant_network' if self.network else 'plant_cli.testing'}.{self.name}_checks"


TABLE = (
    Kind(
        "stage",
        "stages",
        StageSpec,
        "Stages and actions: each becomes a subcommand with flags, a recipe section and a docs "
        "page.",
    ),
    Kind(
        "backbone",
        "backbones",
        BackboneSpec,
        "Networks that read text and give hidden states.",
        network=True,
    ),
    Kind(
        "decoder",
        "decoders",
        DecoderSpec,
        "Networks that compute label scores from hidden states and rank words for a label.",
        network=True,
    ),
    Kind(
        "loss",
        "losses",
        LossSpec,
        "Losses of stage 1 (`rank`) and stage 2 (`label`).",
        network=True,
    ),
    Kind("signal", "signals", SignalSpec, "Relevance signals: pure functions of the count table."),
    Kind("dataset", "datasets", DatasetSpec, "Corpora and readers of corpora."),
    Kind("metric", "metrics", MetricSpec, "Metrics of evaluation."),
    Kind(
        "shortlist",
        "shortlists",
        ShortlistSpec,
        "Choices of the labels worth scoring if there are too many to score all.",
    ),
    Kind(
        "scorer",
        "scorers",
        ScorerSpec,
        "Label scores without the network: by words, titles, neighbours or linear weights.",
    ),
    Kind(
        "analyser",
        "analysers",
        AnalyserSpec,
        "What counts as one word: lemmas, stems or another reduction, by language.",
    ),
    Kind(
        "predictions",
        "predictions",
        PredictionsSpec,
        "Formats in which other tools write predictions.",
    ),
    Kind(
        "vocabulary",
        "vocabularies",
        VocabularySpec,
        "Formats of controlled vocabularies: labels with titles, other names and parents.",
    ),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in TABLE}


def kind_of(spec: type[Spec]) -> Kind:
    """The kind of a class of specs or of a class derived from it; `TypeError` for another class."""
    for kind in TABLE:
        if issubclass(spec, kind.spec):
            return kind
    raise TypeError(
        f"{spec.__name__} is not the spec of any kind of component: "
        f"{', '.join(kind.spec.__name__ for kind in TABLE)}"
    )
