"""The contract between `plant` and its plugins. Imports no torch; all that a plugin needs
beside `plant_cli.kit`.
"""

from plant_cli.api.components import Components, PluginRecord, Spec
from plant_cli.api.context import (
    Column,
    Passage,
    Reporter,
    Request,
    Result,
    Runner,
    SilentReporter,
    StageContext,
    StepResult,
    Table,
    Task,
)
from plant_cli.api.corpus import (
    SPLITS,
    Analyser,
    Corpus,
    Dataset,
    DatasetCard,
    Evidence,
    Excluded,
    LabelIndex,
    Pieces,
    Split,
    SplitName,
    WordReducer,
    WordRule,
)
from plant_cli.api.errors import (
    ArtefactError,
    ColumnQuestion,
    ComponentError,
    DataError,
    GateFailed,
    Interrupted,
    PlantError,
    PluginError,
    RecipeError,
    ResourceError,
    TrainingError,
    UsageError,
    damaged_file,
    exclusive_options,
    first_line,
    missing_column,
    missing_package,
    near_names,
    refuse_repeated,
)
from plant_cli.api.formats import ForeignPredictions, PredictionFile, misread
from plant_cli.api.hooks import hookimpl
from plant_cli.api.metrics import (
    AllScores,
    Hierarchy,
    Metric,
    MetricInput,
    MetricValue,
    WeightedMetric,
)
from plant_cli.api.model import (
    Backbone,
    ClosedFormDecoder,
    Decoder,
    DecoderShape,
    ExportableBackbone,
    FoldableDecoder,
    Gathered,
    GradedDecoder,
    GroupedDecoder,
    GroupedReading,
    LabelLoss,
    LeaveOutDecoder,
    PairDecoder,
    PlantableDecoder,
    QueryDecoder,
    RankLoss,
    Reading,
    SparseDecoder,
    TokenBatch,
    TracedBackbone,
    WordDecoder,
)
from plant_cli.api.options import (
    Choice,
    DataSection,
    MachineSection,
    ModelSection,
    NoOptions,
    Options,
    choice,
    option,
)
from plant_cli.api.scorers import (
    CreditingScorer,
    Documents,
    FittedScorer,
    Reason,
    Scorer,
    ScorerInput,
    Shortlist,
    ShortlistInput,
)
from plant_cli.api.signals import Counts
from plant_cli.api.specs import (
    AnalyserSpec,
    BackboneSpec,
    BackboneStart,
    DatasetSpec,
    DecoderSpec,
    LossSpec,
    MetricSpec,
    NetworkSpec,
    PredictionsSpec,
    ScorerSpec,
    ShortlistSpec,
    SignalSpec,
    StageSpec,
)
