"""The core's own stages and actions: how each is called, which options it takes, and the
function that runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plant_cli.api import StageSpec, hookimpl
from plant_cli.commands import command_options as options
from plant_cli.commands import review_options
from plant_cli.training.training_options import FinetuneOptions

tool = partial(StageSpec, writes=False, needs_run=False)
corpus_action = partial(tool, group="Corpus", sections=("data",))
look = partial(StageSpec, group="Look", looks=True)
by_hand = partial(StageSpec, group="Train by hand")
whole_recipe = partial(StageSpec, sections=("data", "model", "machine"), writes=False, locks=True)
of_a_model = partial(StageSpec, sections=("machine",), writes=False)


@hookimpl
def plant_register_stages() -> Sequence[StageSpec]:
    """The stages and actions of the core."""
    return SPECS


SPECS = (
    whole_recipe(
        name="ablate",
        group="Train by hand",
        summary="What each part of a setup adds: train it without one part after the other, and "
        "compare all in one table.",
        options=options.AblateOptions,
        run="plant_cli.commands.ablate:run",
        help="A change is a name and values of the recipe. Stages that it does not concern are "
        "shared; what is done is skipped.",
        parallel=True,
        takes=("force", "resume"),
        order=9,
        examples=(
            "plant ablate paper/ablations --path data.parquet --seeds 3",
            "plant ablate trained --change 'uniform attention: finetune.init=random' --path "
            "data.parquet",
        ),
    ),
    whole_recipe(
        name="sweep",
        group="Train by hand",
        summary="Try values of a recipe and find the best ones on validation.",
        options=options.SweepOptions,
        run="plant_cli.commands.sweep:run",
        help="What trials share is computed once, what is done is skipped, test is never read; "
        "best.yaml in the run has the best values.",
        takes=("force", "resume"),
        order=10,
        examples=(
            "plant sweep trained --over finetune.rate_head=1e-4,3e-4,1e-3 --path data.parquet",
            "plant sweep trained --over finetune.rate_head=1e-5..1e-2 --over "
            "model.decoder.heads=1,4,8 --trials 20 --hours 2",
        ),
    ),
    of_a_model(
        name="audit",
        group="Look",
        summary="Labels of the corpus that may be wrong or missing (by models that have not seen "
        "the document).",
        options=options.AuditOptions,
        run="plant_cli.commands.audit:run",
        check="plant_cli.commands.requirements:require_model",
        help="Each document is judged by a model that has not seen it. Nothing is written to the "
        "run: a person decides in the sheet, and `plant review import` reads it.",
        takes=("tag", "force"),
        examples=(
            "plant audit -O doubts.xlsx",
            "plant audit --split train --limit 20",
        ),
    ),
    StageSpec(
        name="clean",
        summary="Remove from a run what can be made again: caches, checkpoints of finished "
        "stages, failed attempts.",
        options=options.CleanOptions,
        run="plant_cli.commands.clean:clean_run",
        help="Trained models, predictions, figures and what `--resume` needs stay.",
        writes=False,
        locks=True,
        examples=("plant clean --dry-run", "plant clean --run old-run"),
    ),
    corpus_action(
        name="data make",
        sections=(),
        summary="Generate a corpus.",
        options=options.MakeOptions,
        run="plant_cli.commands.data:make",
        help="Labels and gold evidence are written beside the corpus (data.labels.parquet, "
        "data.evidence.parquet): `files` finds them.",
        takes=("force",),
        examples=(
            "plant data make synthetic-clinic --documents 2000 --labels 300 --seed 0 -O "
            "data.parquet",
        ),
    ),
    corpus_action(
        name="data stats",
        summary="Describe a corpus in numbers.",
        run="plant_cli.commands.data:stats",
        help="Documents, labels and their frequencies, lengths, and labels that no training "
        "document has.",
        examples=("plant data stats data.parquet",),
    ),
    corpus_action(
        name="data split",
        summary="Split a corpus again.",
        options=options.SplitOptions,
        run="plant_cli.commands.data:split",
        help="All documents are pooled and split by --sampling; documents with equal texts, or "
        "of one --group-column, stay in one split.",
        takes=("force",),
        examples=("plant data split all.csv --test 0.2 -O data.parquet",),
    ),
    corpus_action(
        name="data convert",
        summary="Write a corpus in another format.",
        options=options.ConvertOptions,
        run="plant_cli.commands.data:convert",
        help="In tables the columns become doc_id, text, labels and split; labels are trimmed, "
        "and lists become JSON in CSV and TSV.",
        takes=("force",),
        examples=(
            "plant data convert corpus/ data.jsonl.gz",
            "plant data convert data.parquet out --to annif-jsonl",
            "plant data convert data.csv parts --shard 2/4",
        ),
    ),
    corpus_action(
        name="data check",
        summary="Look for what may be wrong with a corpus.",
        options=options.CheckOptions,
        run="plant_cli.commands.data_check:check_corpus",
        help="Repeated ids, equal and nearly equal texts, leaks between splits, odd and unknown "
        "labels, encodings, languages, lengths.",
        takes=("force",),
        examples=(
            "plant data check data.parquet --fail-on-warning",
            "plant data check notes.csv --backbone minilm --fix clean.parquet",
        ),
    ),
    corpus_action(
        name="data drift",
        summary="Say how a corpus differs from an earlier one.",
        options=options.DriftOptions,
        run="plant_cli.commands.data_drift:drift",
        help="Lengths, new words, labels whose frequency changed, labels that are new or gone. "
        "All splits of a corpus are pooled.",
        examples=(
            "plant data drift 2024.parquet 2025.parquet",
            "plant data drift old.csv new.csv --vocabulary icd10cm_order_2026.txt",
        ),
    ),
    corpus_action(
        name="data info",
        sections=(),
        summary="Say what is known of a published corpus.",
        options=options.InfoOptions,
        run="plant_cli.commands.data:info",
        help="Licence, citation, where to get it, expected counts; with a path, the counts of "
        "the download.",
        examples=("plant data info", "plant data info eurlex-4k downloads/eurlex-4k"),
    ),
    look(
        name="diff",
        summary="What changed from one system to another: documents and labels, the greatest "
        "harm first.",
        options=options.DiffOptions,
        run="plant_cli.commands.diff:run",
        help="Write documents.parquet, labels.tsv and diff.json, and show where harm and gain "
        "are greatest.",
        sections=("machine",),
        figures=("diff.json",),
        examples=(
            "plant diff finetune-baseline finetune",
            "plant diff old-run finetune --k 5 --limit 20",
        ),
    ),
    tool(
        name="doctor",
        summary="Say what will work on this machine: devices, precision, packages, plugins, disk "
        "and memory.",
        run="plant_cli.commands.doctor:examine_machine",
        examples=("plant doctor", "plant doctor --format json"),
    ),
    look(
        name="eval",
        summary="Every metric with intervals, overall and for rare labels; our predictions or "
        "another tool's.",
        options=options.EvalOptions,
        run="plant_cli.commands.eval:run",
        check="plant_cli.commands.requirements:require_corpus",
        sections=("data", "machine"),
        feeds=("significance", "report"),
        seeded=True,
        system="measures",
        judges=True,
        figures=("metrics.json", "intervals.json"),
        order=5,
        examples=(
            "plant eval --bootstrap 1000",
            "plant eval -m P@5 -m 'R@10[1-5]'",
            "plant eval --tag omikuji --predictions omikuji.parquet data.parquet",
        ),
    ),
    by_hand(
        name="finetune",
        summary="Train the network to assign labels (stage 2), from planted attention or, for "
        "comparison, from uniform attention.",
        options=FinetuneOptions,
        source="PLANT, stage 2",
        run="plant_cli.commands.finetune:run",
        check="plant_cli.commands.requirements:require_planted",
        help="The best epoch on validation is kept, and the decision threshold is tuned there; "
        "--no-network fits scorers alone.",
        sections=("data", "model", "machine"),
        feeds=(
            "thresholds",
            "predict",
            "eval",
            "significance",
            "diff",
            "report",
            "export",
            "suggest",
        ),
        parallel=True,
        reads={"mig": "relevance", "pretrain-attn": "planted"},
        seeded=True,
        system="trains",
        order=3,
        examples=(
            "plant finetune",
            "plant finetune --no-network --scorers words,titles data.parquet",
            "plant finetune --init random --tag baseline",
        ),
    ),
    tool(
        name="labels diff",
        summary="What a new edition of a vocabulary does to the labels of a model: a table of "
        "edits to look at and change.",
        options=options.LabelsDiffOptions,
        run="plant_cli.commands.labels_edited:diff",
        help="Labels that are added, titled, renamed, merged, split or retired, by id; what "
        "replaces a label is read from SKOS "
        "(isReplacedBy, replaces, exactMatch), from a column replaced_by, or from --mapping. "
        "Nothing in the run changes.",
        takes=("force",),
        examples=(
            "plant labels diff plant-run subjects-2026.ttl",
            "plant labels diff plant-run icd10cm_order_2026.txt --old icd10cm_order_2025.txt "
            "--mapping conversions.csv",
        ),
    ),
    of_a_model(
        name="labels apply",
        summary="A new run with edited labels, from the model of another run.",
        options=options.LabelsApplyOptions,
        run="plant_cli.commands.labels_edited:apply",
        help="Edits are made in the order of the rows: add, title, rename, merge, split, retire; "
        "example: a text that has the label. "
        "Scorers are fitted anew, in seconds. A network stays as it is: new labels get rows from "
        "their titles and examples, without "
        "training. A label keeps its id when it is renamed.",
        locks=True,
        examples=(
            "plant labels apply plant-run label-edits.csv --run edited",
            "plant labels apply edited more-edits.csv --run edited-again",
            "plant labels apply plant-run label-edits.csv --run trained --train",
        ),
    ),
    by_hand(
        name="mig",
        summary="Find the words that indicate each label (exact mutual information gain, "
        "training documents only).",
        options=options.MigOptions,
        source="PLANT, equation 1",
        run="plant_cli.commands.mig:run",
        help="Count, score and keep the best words of every label; write `mig.parquet`, "
        "`words.parquet` and `labels.parquet`.",
        sections=("data", "machine"),
        feeds=("pretrain-attn", "finetune"),
        order=1,
        examples=(
            "plant mig --k 1000 data.parquet",
            "plant mig corpus.csv --text-column abstract --labels-column subjects",
            "plant mig data.parquet --shard 2/4 --run shards/2",
        ),
    ),
    by_hand(
        name="mig show",
        summary="Show the words that indicate a label, with values and counts.",
        options=options.MigShowOptions,
        run="plant_cli.commands.mig_words:show_words",
        help="The kept words of a label with value, relevance and the counts they come from, "
        "edits applied.",
        writes=False,
        examples=("plant mig show E11.9 --limit 50",),
    ),
    by_hand(
        name="mig edit",
        summary="Deny or allow words of a label before training.",
        options=options.EditOptions,
        run="plant_cli.commands.mig_words:edit",
        help="The same command twice changes nothing more.",
        writes=False,
        locks=True,
        examples=("plant mig edit E11.9 --deny patient --allow insulin=0.8",),
    ),
    tool(
        name="plugins",
        summary="List the installed plugins and their components; broken ones with their error.",
        run="plant_cli.commands.plugins:list_plugins",
        examples=("plant plugins", "plant plugins --format json"),
    ),
    tool(
        name="plugins new",
        summary="Write a package with one working component.",
        options=options.PluginNewOptions,
        run="plant_cli.commands.plugins_new:new_plugin",
        takes=("force",),
        examples=(
            "plant plugins new scorer my-scorer",
            "plant plugins new signal dice -O plugins/dice",
        ),
    ),
    tool(
        name="plugins show",
        summary="Explain a component: its options, its source and who brings it.",
        options=options.PluginShowOptions,
        run="plant_cli.commands.plugins:show_component",
        examples=("plant plugins show minilm",),
    ),
    by_hand(
        name="predict",
        summary="Score a split with the trained network; label names and scores, best first.",
        options=options.PredictOptions,
        run="plant_cli.commands.predict:run",
        check="plant_cli.commands.requirements:require_trained",
        sections=("data", "machine"),
        feeds=("eval", "significance", "diff", "report"),
        parallel=True,
        seeded=True,
        system="scores",
        order=4,
        examples=(
            "plant predict",
            "plant predict --auc --auc-disk 5GB",
            "plant predict finetune finetune-baseline --average --tag ensemble",
        ),
    ),
    of_a_model(
        name="quickstart",
        group="Begin",
        summary="See everything in minutes: a made-up corpus, a network against scorers alone "
        "and against uniform attention.",
        options=options.QuickstartOptions,
        run="plant_cli.commands.quickstart:run",
        help="Make a corpus, run mig, pretrain-attn, finetune, eval and significance on it, and "
        "show what the network changes.",
        takes=("force", "resume"),
        locks=True,
        order=9,
        examples=("plant quickstart",),
    ),
    tool(
        name="recipe list",
        summary="List the shipped recipes.",
        run="plant_cli.commands.recipe:list_recipes",
        examples=("plant recipe list",),
    ),
    tool(
        name="recipe show",
        summary="Show every value of a recipe and where it comes from.",
        options=options.NameOptions,
        run="plant_cli.commands.recipe:show_recipe",
        examples=("plant recipe show quickstart",),
    ),
    tool(
        name="recipe check",
        summary="Validate a recipe without running it.",
        options=options.NameOptions,
        run="plant_cli.commands.recipe:check_recipe",
        help="It looks at every key, type, component and option of a component.",
        examples=("plant recipe check recipe.yaml",),
    ),
    tool(
        name="recipe copy",
        summary="Copy a shipped recipe to a file to change.",
        options=options.CopyOptions,
        run="plant_cli.commands.recipe:copy",
        examples=("plant recipe copy quickstart recipe.yaml",),
    ),
    of_a_model(
        name="review export",
        summary="Write labels and their evidence to a sheet, for people to accept or reject.",
        options=review_options.ReviewExportOptions,
        run="plant_cli.commands.review:export_sheet",
        check="plant_cli.commands.requirements:require_model",
        help="One row for each label that is assigned, to be reviewed, or among the likeliest "
        "others; the column decision is empty.",
        takes=("tag", "force", "resume"),
        examples=(
            "plant review export -O review.xlsx",
            "plant review export new.csv -O review.csv --others 10",
            "plant review export --split validation -O review.jsonl",
        ),
    ),
    StageSpec(
        name="review import",
        summary="Turn reviewed sheets, and the feedback of plant serve, into training records.",
        options=review_options.ReviewImportOptions,
        run="plant_cli.commands.review:import_sheets",
        help="Nothing in the run changes. Rows that cannot be used go to OUTPUT.aside.jsonl, "
        "with the reason.",
        writes=False,
        takes=("tag", "force"),
        examples=(
            "plant review import anna.csv ben.csv --texts new.csv -O corrected.jsonl",
            "plant review import review.xlsx --into corpus.csv -O corpus-corrected.csv",
            "plant review import feedback.jsonl --undecided keep",
        ),
    ),
    tool(
        name="review agreement",
        summary="How far people agree who reviewed the same documents: Krippendorff's alpha.",
        options=review_options.ReviewAgreementOptions,
        run="plant_cli.commands.review_agreement:measure",
        help="It compares the last decision of each person on each label of each document, and "
        "lists where people disagree.",
        examples=(
            "plant review agreement new.feedback.jsonl",
            "plant review agreement anna.xlsx ben.xlsx --format json",
        ),
    ),
    whole_recipe(
        name="run",
        group="Train by hand",
        summary="Run all stages of a recipe; skip what has not changed.",
        options=options.RunOptions,
        run="plant_cli.commands.run:run",
        help="The steps run in order; a finished one is skipped if its options and inputs have "
        "not changed.",
        parallel=True,
        takes=("force", "resume", "continue"),
        order=8,
        examples=(
            "plant run quickstart",
            "plant run recipe.yaml --run my-run --set finetune.epochs=3",
            "plant run recipe.yaml --seeds 5",
        ),
    ),
    look(
        name="significance",
        summary="Is the difference between systems real? Paired bootstrap, approximate "
        "randomisation, Wilcoxon, Holm.",
        options=options.SignificanceOptions,
        run="plant_cli.commands.significance:run",
        help="Test each metric, correct over metrics and systems, and write significance.json; "
        "then check what was required.",
        sections=("machine",),
        feeds=("report",),
        compares=True,
        figures=("significance.json",),
        order=6,
        examples=(
            "plant significance finetune finetune-baseline",
            "plant significance finetune other-tool.parquet --metric P@5",
            "plant significance finetune finetune-baseline --seeds 5 --tag seeds5",
        ),
    ),
    of_a_model(
        name="suggest",
        group="Begin",
        summary="Labels for new texts, by the trained model.",
        options=options.SuggestOptions,
        run="plant_cli.commands.suggest:run",
        check="plant_cli.commands.requirements:require_model",
        help="Nothing is written to the run: suggestions go to the screen or to a file. A "
        "command that was stopped and is repeated goes on "
        "where it was; --force begins anew.",
        opens_model=True,
        takes=("tag", "force", "resume"),
        examples=(
            "plant suggest new.csv -O suggestions.csv",
            "plant suggest --text 'acute bronchitis with cough' --why",
            "plant suggest - --format jsonl",
        ),
    ),
    look(
        name="thresholds",
        looks=False,  # decisions follow from it
        summary="Which labels to assign, review or reject (so that a target is reached on "
        "validation).",
        options=options.ThresholdOptions,
        run="plant_cli.commands.thresholds:run",
        help="Choose both cuts of each label on validation, write thresholds.json and "
        "decisions.json, and show what they lead to.",
        sections=("data", "machine"),
        feeds=("eval", "suggest"),
        seeded=True,
        judges=True,
        figures=("thresholds.json", "decisions.json"),
        order=7,
        examples=(
            "plant thresholds --target precision=0.9",
            "plant thresholds --target precision=0.9 --target recall=0.95 --measure test",
        ),
    ),
    whole_recipe(
        name="train",
        group="Begin",
        summary="A model of your own data by one command: columns found, scorers in a minute, a "
        "network while time is left.",
        options=options.TrainOptions,
        run="plant_cli.commands.train:run",
        help="The steps are those of `plant run recommended`, in the same run. The same command "
        "goes on after a stop.",
        takes=("force", "continue"),
        order=1,
        examples=(
            "plant train catalogue.csv",
            "plant train catalogue.csv --vocabulary subjects.csv --hours 1",
            "plant train catalogue.csv --continue",
        ),
    ),
    StageSpec(
        name="verify",
        summary="Compare the files of a run with their recorded hashes; compute its figures "
        "again from the predictions.",
        options=options.VerifyOptions,
        run="plant_cli.commands.verify:verify",
        help="Hash every recorded file of a run, and compute its evaluations again; the exit "
        "code is 4 unless all is as it was written.",
        writes=False,
        examples=(
            "plant verify",
            "plant verify copied-run --no-recompute",
            "plant verify --format json",
        ),
    ),
)
