"""Specs: what a plugin registers, one frozen description for each component, and the table of their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from plant_cli.api.components import Spec
from plant_cli.api.context import Result, StageContext
from plant_cli.api.corpus import Dataset, DatasetCard, WordReducer
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
    """A step of an experiment with a folder of its own in the run, or an action without one."""

    run: Function[Callable[[StageContext, Any], Result]] = Function()
    """Does the work: `run(context, options) -> Result`."""
    check: Function[Callable[[StageContext, Any], None] | None] = Function(required=False)
    """Refuses what is missing: `check(context, options)`. It is called before `run` is imported, so that an error needs no seconds."""
    help: str = ""
    """A sentence or two for `--help`, below the summary."""
    sections: tuple[Literal["data", "model", "machine"], ...] = ()
    """Shared recipe sections whose options this stage takes as flags too, from `data`, `model`, `machine`."""
    writes: bool = True
    """False for an action: it leaves no folder and needs no lock. An action's name may have two words (`mig show`)."""
    takes: tuple[Literal["tag", "force", "resume"], ...] = ()
    """General flags that an action takes, from `tag`, `force`, `resume`; a stage takes all three. It reads them from its context."""
    needs_run: bool = True
    """False for an action that works outside any run folder (`data make`)."""
    parallel: bool = False
    """True if the processes of `accelerate launch` share its work; those beside the first read the run and write to a copy that is thrown
    away. A stage without it is run by the first process alone.
    """
    feeds: tuple[str, ...] = ()
    """Names of stages that read its results. In a recipe it runs before them, even if all its sections stand later."""
    seeded: bool = False
    """True if what it leaves depends, by itself or through its inputs, on the seed of training: `plant run --seeds` repeats it."""
    system: Literal["trains", "scores", "measures"] | None = None
    """Its part in a trained system, which is all stages of one tag. `trains`: it makes the system, and its folder names it. `scores`: it
    keeps the scores of the system of its tag. `measures`: its folder names that system, too.
    """
    judges: bool = False
    """True if it judges the system of its own tag if there is one, else the one without a tag."""
    compares: bool = False
    """True if it compares the systems that its option `systems` names, over as many seeds as its option `seeds` says: `plant run --seeds`
    runs it once, over all seeds, and adds one to a recipe that has none.
    """
    figures: tuple[str, ...] = ()
    """JSON files in its folder that `plant verify` computes again."""
    locks: bool = False
    """True for an action that locks the run itself, and so cannot be a step of a recipe."""
    order: int = 100
    """Its place in `plant --help`; equal ones by name."""
    group: str = "Tools"
    """Heading under which `plant --help` lists it: Begin, Look, Train by hand, Corpus, Tools, or another one."""
    examples: tuple[str, ...] = ()
    """Two or three whole command lines; help begins with them."""

    def accepts(self, flag: Literal["tag", "force", "resume"]) -> bool:
        """Whether its command has this general flag."""
        return self.writes or flag in self.takes


@dataclass(frozen=True, kw_only=True)
class BackboneStart:
    """Where a backbone's vocabulary and first weights come from, if a stage of the run makes them."""

    stage: str
    """Name of that stage, such as `pretrain-lm`."""
    option: str
    """The backbone's option that names its folder. Where the user names none, training gives it the folder of the run's stage. What a
    trained network is loaded from is its own folder: `save` writes there what `load` needs, trained or not.
    """


@dataclass(frozen=True, kw_only=True)
class BackboneSpec(Spec):
    """A network that turns text into hidden states."""

    load: Function[Callable[[Any, MachineSection], Backbone]] = Function()
    """`load(options, machine) -> Backbone`; torch is imported inside, random weights follow torch's generator."""
    languages: tuple[str, ...] | None = None
    """ISO 639-1 codes of the languages that its default model was trained on (None: not declared). Training warns if the documents are in
    another language, and names the backbones that declare it.
    """
    start: BackboneStart | None = None
    """For a backbone that starts from what a stage of the run made, such as a vocabulary of the corpus's own words."""
    is_installed: Function[Callable[[], bool] | None] = Function(required=False)
    """Whether the package with its weights is installed, without reading them; None where no package has them."""


@dataclass(frozen=True, kw_only=True)
class DecoderSpec(Spec):
    """A network that turns hidden states into label scores."""

    build: Function[Callable[[Any, DecoderShape], Decoder]] = Function()
    """`build(options, shape) -> Decoder`."""
    stage2_options: tuple[str, ...] = ()
    """Options that change neither what stage 1 trains nor the names and shapes of the weights: they may differ between stage 1 and stage
    2.
    """


@dataclass(frozen=True, kw_only=True)
class LossSpec(Spec):
    """A loss of one of the two stages of training."""

    stage: Literal["rank", "label"]
    """`rank` for stage 1, `label` for stage 2."""
    build: Function[Callable[[Any], RankLoss | LabelLoss]] = Function()
    """`build(options)` gives a `RankLoss` for the stage `rank`, a `LabelLoss` for the stage `label`."""


@dataclass(frozen=True, kw_only=True)
class SignalSpec(Spec):
    """How strongly a word indicates a label."""

    score: Function[Callable[[Counts, Any], Floats]] = Function()
    """`score(counts, options) -> values`, a pure function; the values have the shape of the counts, float64."""
    needs_occurrences: bool = False
    """True if it reads `Counts.occurrences` and `Counts.words_with_label`."""
    needs_pairs: bool = False
    """True if it reads `Counts.pairs`; then only words that meet the label are scored."""
    signed: bool = False
    """True if its values already say which way the association goes (negative = the word's absence tells); then only words that meet the
    label are scored.
    """
    quasi_convex: bool = False
    """True if, for one label and one number of documents with both, values fall and then rise (or only fall) with the documents of the
    word; then most words that meet a label in one document or in none need no score, and the lists stay the same.
    """


@dataclass(frozen=True, kw_only=True)
class DatasetSpec(Spec):
    """A corpus, or a reader of corpora."""

    load: Function[Callable[[DataSection, Any], Dataset]] = Function()
    """`load(data, options) -> Dataset`; `data` is the recipe section of that name."""
    recognise: Function[Callable[[DataSection], str | None] | None] = Function(required=False)
    """`recognise(data) -> sentence or None`: what the path holds, if its content is in the format that this reads. With the dataset
    `files` all are asked, and the one that answers reads. It looks at a few lines, and raises for no file.
    """
    write: Function[Callable[[Dataset, Path, str], Sequence[str]] | None] = Function(required=False)
    """`write(dataset, folder, suffix) -> remarks`: writes tidy splits into an empty folder, so that `load` reads them again; `suffix` is
    "", ".gz" or ".zst". The remarks say what the format cannot hold (`plant data convert --to NAME`).
    """
    card: DatasetCard | None = None
    """Of a published corpus (`plant data info NAME`)."""


@dataclass(frozen=True, kw_only=True)
class MetricSpec(Spec):
    """A family of metrics. The spec's name is the family (`precision`); its values have the field's names (`P@1`, `P@5`)."""

    compute: Function[Callable[[MetricInput, Any], Sequence[Metric]]] = Function()
    """`compute(input, options) -> values`, each with per-document values where they exist."""
    needs_all_scores: tuple[str, ...] = ()
    """The names of its values, if they are computed from `MetricInput.all_scores`: where those were not kept the family is not computed,
    and these names are reported as not available.
    """


@dataclass(frozen=True, kw_only=True)
class ShortlistSpec(Spec):
    """A way to propose the labels that are worth scoring."""

    build: Function[Callable[[Any, ShortlistInput], Shortlist]] = Function()
    """`build(options, given) -> Shortlist`."""
    most: Function[Callable[[Any, int], int] | None] = Function(required=False)
    """`most(options, labels) -> int`: labels that it proposes for a document at most, of so many; for `plant plan`. Default: all."""


@dataclass(frozen=True, kw_only=True)
class ScorerSpec(Spec):
    """A way to score labels without the network."""

    fit: Function[Callable[[Any, ScorerInput], FittedScorer]] = Function()
    """`fit(options, given) -> FittedScorer`; sees training documents and names of labels only."""
    load: Function[Callable[[Any, Mapping[str, npt.NDArray[Any]]], Scorer]] = Function()
    """`load(options, tensors) -> Scorer`: the scorer again, from its own `tensors()`."""
    needs_names: bool = False
    """True if it says nothing where no label has a name: it is then left out with a note."""
    zero_shot: bool = False
    """True if it scores labels that no training document has, too."""
    memory: Function[Callable[[Any, int], int] | None] = Function(required=False)
    """`memory(options, documents) -> int`: bytes that fitting takes on so many training documents, where that grows faster than their
    number (a matrix of all pairs of documents); for `plant plan`, which extends the rest from fits on samples.
    """


@dataclass(frozen=True, kw_only=True)
class AnalyserSpec(Spec):
    """What counts as one word: how the forms of a word are reduced in one language."""

    load: Function[Callable[[Any, str], WordReducer]] = Function()
    """`load(options, language) -> WordReducer`, by the ISO 639-1 code; a `LookupError` says that it does not know the language."""
    languages: tuple[str, ...] | None = None
    """Those that it knows (None: those that `load` takes). An analyser of one language reads all documents in it where it is named, so
    that no text need be recognised.
    """
    phrase: str = "in a form of its own"
    """How words are counted with it, for messages: "as lemmas"."""
    package: str | None = None
    """The installed package on whose version the words depend: it is recorded with the corpus."""
    automatic: int | None = None
    """Its turn among those that the option value `auto` asks, lowest first; None: it is used only where it is named."""


@dataclass(frozen=True)
class Kind:
    """A kind of component."""

    name: str
    """The singular, as messages and `choice(...)` write it."""
    plural: str
    """As in the hook `plant_register_<plural>`."""
    spec: type[Spec]
    """The class of its specs."""
    summary: str
    """What these components are, in one sentence."""

    @property
    def hook(self) -> str:
        """The name of the function that registers components of this kind."""
        return f"plant_register_{self.plural}"

    @property
    def checks(self) -> str:
        """The module that puts the conformance checks of this kind on their list."""
        return f"plant_cli.testing.{self.name}_checks"


TABLE = (
    Kind("stage", "stages", StageSpec, "Stages and actions: each becomes a subcommand with flags, a recipe section and a docs page."),
    Kind("backbone", "backbones", BackboneSpec, "Networks that turn text into hidden states."),
    Kind("decoder", "decoders", DecoderSpec, "Networks that turn hidden states into label scores and rank words for a label."),
    Kind("loss", "losses", LossSpec, "Losses of stage 1 (`rank`) and stage 2 (`label`)."),
    Kind("signal", "signals", SignalSpec, "Relevance signals: pure functions of the count table."),
    Kind("dataset", "datasets", DatasetSpec, "Corpora and readers of corpora."),
    Kind("metric", "metrics", MetricSpec, "Metrics of evaluation."),
    Kind("shortlist", "shortlists", ShortlistSpec, "Proposals of the labels worth scoring where there are too many to score them all."),
    Kind("scorer", "scorers", ScorerSpec, "What scores labels besides the network: words, titles, neighbours, linear weights."),
    Kind("analyser", "analysers", AnalyserSpec, "What counts as one word: lemmas, stems or another reduction, by language."),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in TABLE}


def kind_of(spec: type[Spec]) -> Kind:
    """The kind that a class of specs stands for.

    Args:
        spec: the class of a row of `KINDS`, or a class derived from one.

    Raises:
        TypeError: no kind has such specs.
    """
    for kind in TABLE:
        if issubclass(spec, kind.spec):
            return kind
    raise TypeError(f"{spec.__name__} is not the spec of any kind of component: {', '.join(kind.spec.__name__ for kind in TABLE)}")
