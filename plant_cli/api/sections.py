"""Recipe sections that several stages share: the corpus, the network and the machine."""

from __future__ import annotations

from typing import Literal

from plant_cli.api.options import Choice, Options, choice, option


class DataSection(Options):
    """Which corpus, and how its columns are named (recipe section `data`)."""

    path: str | None = option(
        None, "The corpus: a file with a split column, or a folder of train, validation and test files.", argument=True, path=True
    )
    dataset: Choice = choice("dataset", "files", "The dataset plugin that reads the corpus; files: whichever recognises PATH.")
    text_column: str = option("text", "The column that holds the text; of several, such as title,abstract, each begins a new line.")
    labels_column: str = option("labels", "The column that holds the list of labels.")
    id_column: str | None = option(None, "The column that holds the document id (default: doc_id if there is one, else the row number).")
    split_column: str = option("split", "The column that says train, validation or test, when all splits are in one file.")
    label_separator: str | None = option(
        None, "How labels are separated when a cell is one string; '' for one label per cell (default: ';', '|' or ',' by content)."
    )
    titles: str | None = option(None, "A table of label titles (default: a labels file beside the corpus).", path=True)
    vocabulary: str | None = option(
        None,
        "What labels mean: a table (TSV, CSV, …), SKOS, or a file of ICD titles, with titles, other names and more.",
        path=True,
    )
    vocabulary_language: str | None = option(None, "Language of the vocabulary's titles, such as de (default: en, else the most frequent).")
    zero_shot: bool = option(
        False,
        "Index labels that have a title but no training document, too: the scorer titles can suggest them. Deprecated ones are left out. "
        "Only for models without a network.",
    )
    evidence: str | None = option(
        None, "A table of gold evidence: doc_id, label, start, end in characters (default: an evidence file beside the corpus).", path=True
    )
    keep_labels: str | None = option(None, "Keep labels by their training documents: top:50, rare:50, or a range such as 1-5 or 10-.")
    label_scope: Literal["targets", "documents"] = option(
        "targets", "targets: other labels than those kept are removed; documents: a document that has a kept label keeps all of its labels."
    )
    keep_unlabelled: bool = option(False, "Keep documents that have none of the kept labels.")
    train_share: float = option(1.0, "Share of the training documents that is used.", gt=0, le=1)
    sampling: Literal["uniform", "stratified"] = option(
        "uniform", "How documents are chosen for train_share and resplit; stratified: each label in proportion, the rarest first."
    )
    resplit: bool = option(False, "Pool all documents and split them again, by test_share and validation_share.")
    test_share: float = option(0.15, "Share of all documents for test when they are split again.", ge=0, lt=1)
    group_column: str | None = option(None, "A column whose equal values stay in one split when documents are split, such as subject_id.")
    duplicates: Literal["keep", "drop"] = option("keep", "drop: of equal texts in a split the first stays (case and punctuation aside).")
    leaks: Literal["keep", "drop"] = option("keep", "drop: training documents whose text another split has too are left out of train.")
    subset_seed: int = option(0, "Equal seeds give equal parts of the corpus, and hold out the same documents for validation.", ge=0)
    encoding: str | None = option(None, "Encoding of text files, such as windows-1252 (default: UTF-8; UTF-16 and UTF-32 by mark).")
    strict: bool = option(False, "Stop at the first row that cannot be read (default: such rows are left out, counted and listed).")
    rejects: str | None = option(None, "A TSV file for the rows that cannot be read, with their lines and what is wrong.", path=True)
    analyser: Literal["auto", "none", "lemmas", "stems"] = option(
        "auto",
        "What counts as a word: lemmas (dictionaries of simplemma), stems (Snowball), or none: words as they stand, lower-cased. auto: "
        "lemmas, else stems, in languages where they help; languages are found by content.",
    )
    validation_share: float = option(0.05, "Share of train held out as validation when there is no validation split.", gt=0, lt=1)
    validation_minimum: int = option(200, "At least this many documents are held out (never more than a fifth of train).", ge=1)


class ModelSection(Options):
    """The network: which backbone reads the text and which decoder scores the labels (recipe section `model`)."""

    backbone: Choice = choice("backbone", "minilm", "The backbone that turns text into hidden states.")
    decoder: Choice = choice("decoder", "label-attention", "The decoder that turns hidden states into label scores.")
    label_queries: Literal["random", "titles"] = option(
        "random", "What label queries start from: random vectors, or the labels' titles as the backbone reads them."
    )


class MachineSection(Options):
    """Randomness and hardware (recipe section `machine`)."""

    seed: int = option(0, "Every random choice follows from this number.", ge=0, le=2**32 - 1)
    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps.")
    precision: Literal["auto", "fp32", "bf16"] = option(
        "auto", "Number format of matrix products; softmax and losses are always fp32. auto: bf16 where the device has it."
    )
    threads: int | None = option(None, "CPU threads (default: OMP_NUM_THREADS, or all cores).", ge=1, le=4096)


SHARED_SECTIONS: dict[str, type[Options]] = {"data": DataSection, "model": ModelSection, "machine": MachineSection}
