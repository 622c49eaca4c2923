"""What a training is set up from: network, splits, readers, batches, losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from plant_cli.api import (
    SPLITS,
    Analyser,
    ArtefactError,
    BackboneSpec,
    ComponentError,
    DecoderSpec,
    Documents,
    LabelIndex,
    LossSpec,
    Options,
    PluginError,
    Reporter,
    ResourceError,
    Spec,
    Split,
    StageContext,
    TracedBackbone,
    promises,
)
from plant_cli.api.functions import Promise
from plant_cli.data.files import hash_strings
from plant_cli.data.training_part import TrainingPart
from plant_cli.data.word_analysis import PLAIN
from plant_cli.data.words import join_documents, number_words
from plant_cli.relevance.relevance_table import WordStatistics
from plant_cli.runs.session import open_session
from plant_cli.scoring.cuts import cut_summary, measure_cut
from plant_cli.scoring.reading_checks import warn_of_languages
from plant_cli.scoring.top_labels import Room
from plant_cli.training.scorers_alone import StageInputs
from plant_cli.training.training_options import TrainingOptions
from plant_network.assembly import (
    EarlierNetwork,
    Network,
    assemble,
    read_model_description,
    require_words,
    restore_network,
)
from plant_network.compute import TOKEN_MULTIPLE, round_up
from plant_network.design import Design, find_design
from plant_network.hardware import (
    Hardware,
    choose_hardware,
    free_memory,
    free_unused,
    peak_allocated,
)
from plant_network.reading import (
    HiddenReader,
    LiveReader,
    Rows,
    count_fitting,
    find_token_words,
    lengths,
    warn_of_cut,
)
from plant_network.state_cache import StateCache


def build_loss(
    spec: LossSpec,
    options: Options,
    stage: Literal["rank", "label"],
    known: Iterable[LossSpec] = (),
) -> Any:
    """A loss of stage 1 (`RankLoss`) or of stage 2 (`LabelLoss`); a message about one of the
    other stage names those that are `known`.
    """
    if spec.stage != stage:
        number = {"rank": 1, "label": 2}
        names = ", ".join(sorted(loss.name for loss in known if loss.stage == stage))
        raise ComponentError(
            f"the loss '{spec.name}' is for stage {number[spec.stage]}, not for stage "
            f"{number[stage]}",
            where=f"loss '{spec.name}'",
            expected=f"one of {names}" if names else f"a loss of stage {number[stage]}",
            todo="`plant plugins` lists the losses of each stage",
        )
    return CheckedLoss(spec.name, spec.build(options))


class CheckedLoss:
    """A loss, `RankLoss` or `LabelLoss`, whose answers are checked: it may come from any plugin."""

    def __init__(self, name: str, loss: Any) -> None:
        self.name, self.loss = name, loss
        self.hard_negatives: int = getattr(loss, "hard_negatives", 0)
        self.random_negatives: int = getattr(loss, "random_negatives", 0)

    def __call__(self, scores: Tensor, truth: Tensor, further: Tensor | None = None) -> Tensor:
        """The loss of scores; `further` are the offsets of a `RankLoss`, and of a `LabelLoss`
        the pairs that count.
        """
        value = self._ask(
            "loss",
            self.loss,
            promises.LOSS_VALUE,
            scores,
            truth,
            *([] if further is None else [further]),
        )
        if value.device.type == "cpu" and scores.isfinite().all():  # on a card a look would wait
            self._require_finite("loss", value)
            if scores.requires_grad and value.requires_grad:
                self._watch_gradient(scores, value)
        return value

    def _watch_gradient(self, scores: Tensor, value: Tensor) -> None:
        """Name the loss if it makes a gradient of scores that is not finite of one that is."""
        finite = []
        value.register_hook(lambda given: finite.append(bool(given.isfinite().all())))  # type: ignore[no-untyped-call]
        scores.register_hook(  # type: ignore[no-untyped-call]
            lambda found: self._require_finite("gradient", found) if all(finite) else None
        )

    def _require_finite(self, what: str, found: Tensor) -> None:
        if not found.isfinite().all():
            raise PluginError(
                f"the {what} that the loss '{self.name}' has for finite scores is not finite",
                where=f"loss '{self.name}'",
                expected=f"{promises.LOSS_VALUE.expected}, all of them finite",
                todo="choose another loss, or tell its authors; `plant plugins` says who they are",
            )

    def select(
        self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """See `LabelLoss.select`."""
        return self._ask(
            "select", self.loss.select, promises.CHOSEN_PAIRS, logits, targets, generator
        )

    def _ask(
        self, what: str, function: Callable[..., Tensor], promise: Promise, *given: Any
    ) -> Tensor:
        """What a function gives; `PluginError` if it is something else than promised, or if the
        function writes into its tensors.
        """
        tensors = [one for one in given if isinstance(one, Tensor)]
        before = [one._version for one in tensors]
        answer = function(*given)
        who = f"loss '{self.name}'"
        promise.require(answer, given[0], who=who, what=what)
        if [one._version for one in tensors] != before:
            raise PluginError(
                f"the {who} changes the tensors that it is given for `{what}`",
                where=who,
                expected="tensors that stay as they are: others read them, too",
                todo="choose another one, or tell its authors to work on copies",
            )
        return answer


BUCKET = 32  # micro-batches that are sorted by length together


def micro_sizes(batch: int, micro_batch: int) -> list[int]:
    """Documents of each micro-batch of a step: as few micro-batches as can be, and these as
    equal as can be, the larger ones first.
    """
    count = -(-batch // micro_batch)
    size, larger = divmod(batch, count)
    return [size + (number < larger) for number in range(count)]


def make_steps(
    lengths: Rows, batch: int, micro_batch: int, *, seed: int, epoch: int
) -> list[list[Rows]]:
    """The micro-batches of each optimiser step of an epoch. Every step has `batch` documents, but
    the last one what is left over.

    Rows are shuffled; within a bucket of `BUCKET` micro-batches they are sorted by length, so that
    little is padding. Where `batch` is a multiple of `micro_batch`, the micro-batch that is not
    full is shuffled like the others: the step that it falls into is smaller, too.
    """
    sizes = micro_sizes(batch, micro_batch)
    count, larger = len(sizes), batch % len(sizes)
    draw = np.random.default_rng([seed, epoch])
    found = _cut(
        draw.permutation(len(lengths)), lengths, np.resize(sizes, count * -(-len(lengths) // batch))
    )
    order = draw.permutation(len(found))
    if batch % micro_batch:
        order = np.append(order[order != len(found) - 1], len(found) - 1)
    large, small = (
        [found[i] for i in order if (i % count < larger) == is_large] for is_large in (True, False)
    )
    return [
        [
            *large[step * larger : (step + 1) * larger],
            *small[step * (count - larger) : (step + 1) * (count - larger)],
        ]
        for step in range(-(-len(found) // count))
    ]


def _cut(order: Rows, lengths: Rows, sizes: npt.NDArray[np.int_]) -> list[Rows]:
    """Shuffled rows in pieces of the given sizes, sorted by length within a bucket of pieces;
    none is empty.
    """
    ends = np.concatenate([[0], np.cumsum(sizes)])
    found: list[Rows] = []
    for first in range(0, len(sizes), BUCKET):
        inside = ends[first : first + BUCKET + 1]
        bucket = order[inside[0] : inside[-1]]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        found.extend(rows for rows in np.split(bucket, inside[1:-1] - inside[0]) if len(rows))
    return found


def cut_step(step: list[Rows], lengths: Rows, room: Room) -> list[tuple[int, Rows]]:
    """The micro-batches of a step, each with a number for what it draws; where memory decides, as
    few and as equal ones as fit.

    Their numbers are then those of their first documents in the step, so that what a document draws
    does not depend on the cut.
    """
    if room.tokens is None:
        return list(enumerate(step))
    rows = np.concatenate(step)
    parts = next(
        parts
        for parts in (np.array_split(rows, count) for count in range(1, len(rows) + 1))
        if all(len(part) <= count_fitting(room, int(lengths[part].max())) for part in parts)
    )
    return list(zip(np.cumsum([0, *map(len, parts[:-1])]).tolist(), parts, strict=True))


SAFE = 0.8
"""Share of free memory that is used: allocators and libraries take some, and lose some between
tensors.
"""
HELD = 3
"""Numbers for each that is trained that come after the first step: two moments of AdamW, and
the best epoch's copy.
"""


def find_room(
    run: Callable[[Rows], object],
    sizes: Rows,
    options: TrainingOptions,
    hardware: Hardware,
    trained: Iterable[Tensor] = (),
) -> Room:
    """What is in memory at once, from what `run` takes for one and two documents of the greatest
    size [N]; see `plan`.

    Raises:
        ResourceError: there is too little memory for one document.
    """
    device = hardware.device
    if not options.fills_memory(device.type, hardware.processes.count):
        return Room(options.documents)
    held = HELD * sum(tensor.numel() * tensor.element_size() for tensor in trained)
    free = free_memory(device) - held
    # taken from the card, so that what is tried finds as much as training will
    reserved = torch.empty(
        held if device.type == "cuda" and free > 0 else 0, dtype=torch.uint8, device=device
    )
    longest = int(sizes.argmax())
    one = _try_documents(run, [longest], device)
    if one is None or one > free:
        shorter = [np.flatnonzero(sizes <= sizes[longest] // share) for share in (2, 4, 8, 16)]
        tried = (int(rows[sizes[rows].argmax()]) for rows in shorter if len(rows))
        fitting = next(
            (
                int(sizes[row])
                for row in tried
                if (_try_documents(run, [row], device) or math.inf) <= free
            ),
            None,
        )
        raise ResourceError(
            "there is too little memory for one document",
            where=f"{device}: {max(0, free) / 1e9:.1f} GB are free beside the network; the "
            f"longest document has {sizes[longest]:,} tokens",
            expected="room for the longest document; "
            + (f"one of {fitting:,} tokens fits" if fitting else "none of the shorter ones fits"),
            todo="close what else uses the device; "
            + (f"--set model.backbone.max_tokens={fitting}" if fitting else "a smaller backbone")
            + ", or --set model.backbone.quantization=nf4; `plant plan` says what each stage takes",
        )
    two = _try_documents(run, [longest] * 2, device) or free
    each = (
        two - one if two > one else free
    )  # less for two: their activations are computed again, which takes longer than a second pass
    more = max(0, int((SAFE * free - one) // max(1, each)))
    del reserved
    free_unused(device)
    return Room(options.batch, (1 + more) * round_up(int(sizes[longest]), TOKEN_MULTIPLE))


def _try_documents(
    run: Callable[[Rows], object], rows: Sequence[int], device: torch.device
) -> int | None:
    """Bytes that some documents take at most; None if memory runs out."""
    try:
        return peak_allocated(partial(run, np.array(rows)), device)
    except torch.OutOfMemoryError:
        pass
    free_unused(device)  # not before what the failure held is gone
    return None


def padding_share(lengths: Rows, steps: list[list[Rows]]) -> float:
    """Share of positions that are padding, up to whole multiples of `TOKEN_MULTIPLE`."""
    padded = sum(
        len(rows) * round_up(int(lengths[rows].max(initial=1)), TOKEN_MULTIPLE)
        for step in steps
        for rows in step
    )
    return 1.0 - float(lengths.sum()) / padded if padded else 0.0


READ_AT_ONCE = 256
"""Documents that a frozen backbone reads at once, at most, where memory decides."""
FORWARD_ALONE = 2
"""Documents that fit in memory where nothing is kept for gradients, for each that fits in
training.
"""


@dataclass(frozen=True, kw_only=True)
class Inputs(StageInputs):
    """What stage 1 and stage 2 work from: what scorers are fitted from, and a network."""

    design: Design  # the network's components
    statistics: WordStatistics | None = (
        None  # relevance of words for labels, with counts; None if the run has none
    )
    planted: Path | None = (
        None  # folder of the stage 1 that stage 2 starts from; None for a random start
    )
    earlier: EarlierNetwork | None = (
        None  # of the corpus before it grew, from whose weights stage 2 goes on
    )
    losses: Sequence[LossSpec] = ()  # all that are installed, which a message names

    @classmethod
    def of(cls, context: StageContext, **given: Any) -> Inputs:
        """Those of a stage, `given` the others; a warning if the backbone was not trained on
        the languages of train.
        """
        corpus, design = (
            context.corpus(),
            find_design(context.model, context.component).start_from(context.input),
        )
        warn_of_languages(
            design.backbone,
            context.components(BackboneSpec),
            corpus.split("train").texts,
            context.reporter,
        )
        return cls(
            corpus=corpus,
            design=design,
            machine=context.machine,
            session=open_session(context),
            component=context.component,
            losses=context.components(LossSpec),
            **given,
        )


@dataclass(frozen=True, kw_only=True)
class Material:
    """A split and how to read it."""

    split: Split
    reader: HiddenReader
    words: Documents | None = None  # of its documents; None: nothing asks for them
    analyser: Analyser = PLAIN  # found these words


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The network on its device, and what it is trained and validated on."""

    network: Network
    hardware: Hardware
    train: Material
    validation: Material

    @property
    def lengths(self) -> Rows:
        """Tokens of each training document [N]."""
        return lengths(self.train.reader.tokens)

    def count_usual(self, room: Room, options: TrainingOptions) -> int:
        """Documents of median length in a micro-batch."""
        return min(
            micro_sizes(options.batch, room.documents)[0],
            count_fitting(room, int(np.median(self.lengths))),
        )

    def find_room(
        self, step: Callable[..., tuple[Tensor, float]], options: TrainingOptions
    ) -> Room:
        """What is in memory at once while a step of training computes; see `find_room`."""

        def run(rows: Rows) -> None:
            try:
                for _ in range(2):  # the second adds to gradients
                    loss, _weight = step(rows, epoch=0, seed=0)
                    if loss.requires_grad:
                        torch.autograd.backward(loss)
                    del loss
            finally:
                self.network.zero_grad(set_to_none=True)

        self.network.train()
        return find_room(
            run,
            self.lengths,
            options,
            self.hardware,
            (p for p in self.network.parameters() if p.requires_grad),
        )

    def summarise_cuts(self) -> dict[str, dict[str, Any]]:
        """What of each split was not read, for the stage's record."""
        materials = {"train": self.train, "validation": self.validation}
        return cut_summary(
            {
                name: measure_cut(found.reader.tokens, found.split.evidence)
                for name, found in materials.items()
            }
        )


def set_up(
    given: Inputs,
    options: TrainingOptions,
    *,
    freeze_backbone: bool,
    titles: bool = False,
    plants: bool = True,
) -> Setup:
    """Build the network, with what was planted, and tokenise train and validation; states of a
    frozen backbone are cached.

    Args:
        titles: read the title of each label as a further training document.
        plants: start attention from what is planted; else from nothing.
    """
    corpus = given.corpus
    hardware = choose_hardware(given.machine)
    if (
        hardware.device.type == "cuda"
        and hardware.dtype == torch.float32
        and given.machine.precision != "fp32"
    ):
        given.session.reporter.warn(
            "this graphics card has no bf16: all is computed in fp32, which takes longer and "
            "more memory"
        )
    relevance = given.statistics.table.matrix if given.statistics else None
    network = assemble(
        given.design,
        given.machine,
        corpus.labels,
        corpus.sizes["train"],
        relevance=relevance,
        planted=plants,
    ).to(hardware.device)
    if network.needs_words and given.statistics is not None:
        network.word_hash = hash_strings(given.statistics.table.words)
    elif network.needs_words:
        given.session.reporter.warn(
            f"the decoder {network.section.decoder.name} looks at the words of relevance, but the "
            "run has none: run plant mig first"
        )
    if isinstance(network.backbone, TracedBackbone):
        how = getattr(network.backbone, "number_format", "")
        given.session.reporter.note(
            f"backbone {network.section.backbone.name}: reads with {network.backbone.origin}{how}"
        )
    if given.planted is not None:
        restore_network(network, given.planted)
    if given.earlier is not None:
        given.earlier.carry_over(network)
    if freeze_backbone:
        network.freeze_backbone()
    cache = StateCache(
        session=given.session,
        data_hash=corpus.data_hash,
        limit=options.cache_limit,
        batch=FORWARD_ALONE * options.documents,
    )
    (train, words), (validation, validation_words) = (
        (
            corpus.split(name),
            given.words(name) if given.statistics is not None or network.needs_words else None,
        )
        for name in SPLITS[:2]
    )
    stays = given.earlier is not None and given.earlier.stays  # no title is trained on
    bare = (
        0 in corpus.labels.train_counts and not isinstance(corpus, TrainingPart) and not stays
    )  # a part has no documents of some label
    if titles or bare:
        documents = len(train)
        train = add_titles(train, corpus.labels, given.session.reporter, every=titles)
        if words is not None:
            words = join_documents(
                [words, number_words(map(corpus.analyser.spell, train.texts[documents:]))]
            )
    name = "train with titles" if titles else "train with new titles" if bare else "train"
    return Setup(
        network=network,
        hardware=hardware,
        train=_open(name, train, words, given, network, hardware, cache, options),
        validation=_open(
            "validation", validation, validation_words, given, network, hardware, cache, options
        ),
    )


def add_titles(
    split: Split, labels: LabelIndex, reporter: Reporter, *, every: bool = True
) -> Split:
    """A split with the title of each label, or of each without a training document, as a
    further document, which has that label alone.
    """
    titled = [
        label
        for label, title in enumerate(labels.titles)
        if title and (every or not labels.train_counts[label])
    ]
    if not titled:
        reporter.warn(
            "no label has a title: --title-documents changes nothing (give titles with --titles "
            "FILE)"
        )
        return split
    ones = np.ones(len(titled), dtype=split.gold.dtype)
    gold = csr_array(
        (ones, (np.arange(len(titled)), titled)), shape=(len(titled), split.gold.shape[1])
    )
    none = csr_array((len(titled), split.unseen.shape[1]), dtype=split.unseen.dtype)
    return replace(
        split,
        doc_ids=[*split.doc_ids, *(f"title of {labels.ids[label]}" for label in titled)],
        texts=[*split.texts, *(labels.titles[label] or "" for label in titled)],
        gold=csr_array(vstack([split.gold, gold])),
        unseen=csr_array(vstack([split.unseen, none])),
    )


def require_same_network(folder: Path, given: Inputs) -> None:
    """Refuse a planted network with another backbone, decoder or words than those of stage 2;
    weights are not read.
    """
    planted, wanted = (
        find_design(read_model_description(folder).section, given.component),
        given.design,
    )
    free = wanted.decoder[0].stage2_options
    settled = {
        kind: [_settle(getattr(design, kind), free) for design in (planted, wanted)]
        for kind in ("backbone", "decoder")
    }
    different = [
        f"{kind}: {_tell_difference(folder, *pair)}"
        for kind, pair in settled.items()
        if pair[0] != pair[1]
    ]
    if different:
        raise ArtefactError(
            "the attention was planted in another network than the one to be fine-tuned",
            where="; ".join(different),
            expected="the same backbone, decoder and options in both stages",
            todo="leave the model options to the run, or run plant pretrain-attn again with them "
            "and --force",
        )
    if given.statistics is not None:
        require_words(folder, given.statistics.table.words, given.session.run_path / "mig")


def _settle(component: tuple[Spec, Options], free: Sequence[str]) -> tuple[Spec, dict[str, Any]]:
    """A component with those of its options that must be the same in both stages."""
    spec, options = component
    return spec, options.model_dump(exclude=set(free) if isinstance(spec, DecoderSpec) else None)


def _tell_difference(
    folder: Path, planted: tuple[Spec, dict[str, Any]], wanted: tuple[Spec, dict[str, Any]]
) -> str:
    """The two names, or what differs in the options of one component."""
    if planted[0] != wanted[0]:
        return f"{folder} has {planted[0].name}, this stage {wanted[0].name}"
    names = [name for name, value in wanted[1].items() if planted[1].get(name) != value]
    sides = [
        ", ".join(f"{name}={options.get(name)!r}" for name in names)
        for options in (planted[1], wanted[1])
    ]
    return f"{folder} has {sides[0]}, this stage {sides[1]}"


def _open(
    name: str,
    split: Split,
    words: Documents | None,
    given: Inputs,
    network: Network,
    hardware: Hardware,
    cache: StateCache,
    options: TrainingOptions,
) -> Material:
    tokens = cache.tokenize(network, split.texts, name, hardware)
    warn_of_cut(network, tokens, given.session.reporter, name, split.evidence)
    of_tokens = None
    if network.needs_words and words is not None:
        vocabulary = () if given.statistics is None else given.statistics.table.words
        of_tokens = find_token_words(split.texts, words, tokens, vocabulary, given.corpus.analyser)
    live = LiveReader(network, tokens, hardware, of_tokens)
    if (
        network.backbone_is_frozen
        and len(split)
        and options.fills_memory(hardware.device.type, hardware.processes.count)
    ):
        network.eval()
        with torch.no_grad():
            room = find_room(live.read, lengths(tokens), options, hardware)
            cache = replace(cache, batch=replace(room, documents=READ_AT_ONCE))
    reader = cache.open(live, name.replace(" ", "-"))
    return Material(split=split, reader=reader, words=words, analyser=given.corpus.analyser)
