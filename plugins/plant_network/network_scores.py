"""Documents scored by a network, alone or with scorers; imports torch, which a model of scorers
alone does without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import (
    Decoder,
    Documents,
    LeaveOutDecoder,
    Reading,
    Reporter,
    SilentReporter,
    TrainingError,
)
from plant_cli.data.blocks import top_k
from plant_cli.relevance.relevance_table import read_counted_words
from plant_cli.runs.session import stopped
from plant_cli.scoring.calibration import LIMIT, apply_maps
from plant_cli.scoring.cuts import measure_cut
from plant_cli.scoring.fused_scorers import ScoredDocuments, score_parts
from plant_cli.scoring.fusion import ScoredPairs
from plant_cli.scoring.models import Combination, Floats, ModelSource, TokenEvidence, TrainedModel
from plant_cli.scoring.predictions import NETWORK
from plant_cli.scoring.score_sums import average_logit, explain_labels
from plant_cli.scoring.sparse_scores import LABELS_LISTED
from plant_cli.scoring.top_labels import (
    Keep,
    Logits,
    Rows,
    Scoring,
    TopLabels,
    distinct_probabilities,
)
from plant_network.answers import leave_out_tokens, read_attention, score_labels
from plant_network.assembly import Network, load_network, require_words
from plant_network.candidates import (
    UNSCORED,
    measure_recall,
    proposed_pairs,
    score_all,
    score_pairs,
)
from plant_network.hardware import Hardware, choose_hardware
from plant_network.reading import (
    HiddenReader,
    LiveReader,
    find_token_words,
    lengths,
    make_tokens,
    read_in_turn,
    sorted_batches,
    warn_of_cut,
)
from plant_network.state_cache import StateCache

Ints = npt.NDArray[np.int64]
Rescore = Callable[[Rows, Tensor], Tensor]
"""From rows [b] and the network's logits for them [b, L] to the logits that count [b, L]."""
FINAL_SCORES = "whole"


def top_labels(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of logits [B, L] as (indices, logits) [B, k]; equal scores by label index,
    also at rank k. `top_k` on any device.
    """
    k = min(k, logits.shape[1])
    best = logits.topk(k, dim=1, sorted=False).indices.sort(dim=1).values
    lowest = logits.gather(1, best).amin(1, keepdim=True)
    for row in (
        ((logits >= lowest).sum(1) > k).nonzero().squeeze(1)
    ):  # equal scores at rank k: the lower indices are taken
        best[row] = torch.sort(logits[row], descending=True, stable=True).indices[:k].sort().values
    values, order = torch.sort(logits.gather(1, best), dim=1, descending=True, stable=True)
    return best.gather(1, order), values


class TopCollector:
    """The k best labels of N documents, collected batch after batch; `keep` is given the rows
    and all logits of each batch.
    """

    def __init__(self, documents: int, k: int, keep: Keep | None) -> None:
        self.keep = keep
        self.labels = np.zeros((documents, k), dtype=np.int64)
        self.scores = np.zeros((documents, k), dtype=np.float64)
        self.counts = np.zeros(
            2, dtype=np.int64
        )  # pairs with a probability of at least one half, all that were scored

    def add(self, rows: Rows, logits: Tensor, candidates: Tensor | None = None) -> None:
        """Take the best of the logits [b, L] of some documents, on any device; `candidates` [b,
        L] are the scored pairs (default: all).
        """
        best, values = top_labels(logits, self.labels.shape[1])
        self.labels[rows], self.scores[rows] = (
            best.cpu().numpy(),
            distinct_probabilities(values.cpu().numpy().astype(np.float64)),
        )
        self.counts += (
            int((logits >= 0).sum()),
            logits.numel() if candidates is None else int(candidates.sum()),
        )
        if self.keep is not None:
            self.keep(rows, logits.cpu().numpy())

    def done(self) -> TopLabels:
        """What was collected."""
        assigned, pairs = self.counts.tolist()
        return TopLabels(
            labels=self.labels, scores=self.scores, assigned_share=assigned / max(1, pairs)
        )


class PairCollector:
    """A network's logits of its best labels and of those that scorers list, collected batch after
    batch.

    Where a network scores the labels of a shortlist alone, those that scorers list must be among
    them; the others are left out.
    """

    def __init__(self, documents: int, labels: int, scored: ScoredDocuments | None) -> None:
        self.shape = (documents, labels)
        self.scored = scored
        width = min(LABELS_LISTED, labels)
        self.top, self.logits = (
            np.zeros((documents, width), dtype=np.int64),
            np.zeros((documents, width)),
        )
        self.listed = np.zeros(0 if scored is None else len(scored.pairs.rows))

    def keep(self, rows: Rows, logits: Logits) -> None:
        """Take the logits [b, L] of some documents."""
        for row, scores in zip(rows, logits, strict=True):
            best = top_k(scores, self.top.shape[1])
            self.top[row], self.logits[row] = (
                np.where(scores[best] > UNSCORED, best, -1),
                scores[best],
            )
            if self.scored is not None:
                inside = self.scored.pairs.span(row)
                self.listed[inside] = scores[self.scored.pairs.labels[inside]]

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What processes add up: each has zeros where another has the documents."""
        return self.top, self.logits, self.listed

    def pairs(self) -> ScoredPairs:
        """All pairs of all documents: the network's logits, then those of the scorers together."""
        documents, labels = self.shape
        kept = self.top.ravel() >= 0
        rows = np.repeat(np.arange(documents), self.top.shape[1])[kept]
        keys, values = rows * np.int64(labels) + self.top.ravel()[kept], self.logits.ravel()[kept]
        if self.scored is not None:
            listed = self.scored.pairs
            keys = np.concatenate([keys, listed.rows * np.int64(labels) + listed.labels])
            values = np.concatenate([values, self.listed])
        keys, firsts = np.unique(keys, return_index=True)
        rows, columns, values = keys // labels, keys % labels, values[firsts][:, None]
        if self.scored is not None:
            values = np.concatenate([values, self.scored.look_up(rows, columns)[:, None]], axis=1)
        return ScoredPairs(shape=self.shape, rows=rows, labels=columns, values=values)


@torch.no_grad()
def score_documents(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    scoring: Scoring,
    rescore: Mapping[str, Rescore] | None = None,
) -> dict[str, TopLabels]:
    """The best labels of each document by the logits of a network, or by what becomes of them;
    the network is run once.
    """
    network.eval()
    rescore = rescore or {FINAL_SCORES: lambda rows, logits: logits}
    sizes, stopping, wrong = lengths(reader.tokens), False, np.zeros(0, dtype=np.int64)
    width = min(scoring.k, network.labels)
    collected = {
        name: TopCollector(len(sizes), width, None if i else scoring.keep)
        for i, name in enumerate(rescore)
    }
    with scoring.reporter.progress(f"scoring {scoring.name}", len(sizes), "documents") as task:
        for rows, reading in read_in_turn(
            reader, hardware.processes.share(sorted_batches(sizes, scoring.batch))
        ):
            if stopping := scoring.should_stop():
                break
            candidates = (
                None
                if scoring.candidates is None
                else proposed_pairs(scoring.candidates, rows, reading.mask.device)
            )
            with hardware.autocast():
                logits = _score(network, reading, candidates)
            for name, change in rescore.items():  # one of the results is in memory at a time
                collected[name].add(rows, change(rows, logits), candidates)
            wrong = rows[
                np.isnan(next(iter(collected.values())).scores[rows, 0])
            ]  # what is not a number comes first
            if len(wrong):
                break
            task.advance(len(rows) * hardware.processes.count)
    if hardware.processes.any(stopping):
        raise stopped("while scoring", f"scoring {scoring.name}", "all documents scored")
    if hardware.processes.any(len(wrong) > 0):
        raise _not_numbers(network, scoring, wrong)
    for part in collected.values():  # each process has the rows of its share, and zeros elsewhere
        hardware.processes.add_arrays(part.labels, part.scores, part.counts)
    return {name: part.done() for name, part in collected.items()}


def _score(network: Network, reading: Reading, candidates: Tensor | None) -> Tensor:
    """Logits [B, L] of all labels, or of each document's candidates, bool [B, L]."""
    if candidates is None:
        return score_all(network.decoder, reading, network.labels)
    return score_pairs(network.decoder, reading, candidates)


def _not_numbers(network: Network, scoring: Scoring, rows: Rows) -> TrainingError:
    section = network.section
    return TrainingError(
        f"the logits of the network ({section.decoder.name} on {section.backbone.name}) are not "
        "numbers",
        where=f"scoring {scoring.name}"
        + (f", document {rows[0] + 1}" if len(rows) else ", in another process"),
        expected="numbers",
        todo="train it again with lower rates or --precision fp32 (plant finetune --force)",
    )


class LogitCombiner:
    """What becomes of a network's logits where there are scorers, too, or a calibration was
    learned (`Rescore`).
    """

    def __init__(
        self, combination: Combination, scored: ScoredDocuments | None, explained: int = 0
    ) -> None:
        self.combination = combination
        self.scored = scored
        self.weights, self.bias = (
            torch.from_numpy(part) for part in combination.calibration.at(combination.train_counts)
        )
        self.logits = np.zeros(
            (0 if scored is None else len(scored), explained)
        )  # the network's, of the best labels
        self.averages = np.zeros(len(self.logits))  # and of average ones

    def __call__(self, rows: Rows, logits: Tensor) -> Tensor:
        """Calibrated logits [b, L] of some documents from those of the network."""
        weights, bias = self.weights.to(logits.device), self.bias.to(logits.device)
        total = torch.addcmul(bias, logits.clamp(-LIMIT, LIMIT), weights[0])
        if self.scored is not None:
            total.addcmul_(torch.from_numpy(self.scored.logits(rows)).to(logits.device), weights[1])
        maps = self.combination.calibration.maps
        if maps:
            total = torch.from_numpy(
                apply_maps(maps, total.float().cpu().numpy(), self.combination.train_counts)
            ).to(total)
        total.masked_fill_(
            logits < UNSCORED / 2, UNSCORED
        )  # what a shortlist left out is not found by scorers either
        if self.logits.size:
            self._note(
                rows,
                logits.double().cpu().numpy(),
                top_labels(total, self.logits.shape[1])[0].cpu().numpy(),
            )
        return total

    def _note(self, rows: Rows, logits: Logits, best: Rows) -> None:
        assert self.scored is not None  # else nothing is noted
        for row, scores, labels in zip(rows.tolist(), logits, best, strict=True):
            self.logits[row] = scores[labels]
            self.averages[row] = average_logit(
                scores, self.scored.pairs.labels[self.scored.pairs.span(row)]
            )


def load_network_model(source: ModelSource, combination: Combination | None) -> NetworkModel:
    """The network in the folder of a trained model, with the scorers that were read."""
    corpus, hardware = source.corpus, choose_hardware(source.machine)
    network = load_network(
        source.folder, source.component, source.machine, corpus.labels, corpus.sizes["train"]
    )
    words: Sequence[str] = ()
    if network.needs_words:
        mig = source.relevance()
        words = () if mig is None else read_counted_words(mig)["word"].to_list()
        require_words(source.folder, words, mig or "a run without relevance")
    return NetworkModel(
        combination=combination,
        network=network,
        hardware=hardware,
        analyser=corpus.analyser,
        vocabulary=words,
    )


def _open_cache(scoring: Scoring) -> StateCache | None:
    kept = scoring.cache
    if kept is None:
        return None
    return StateCache(
        session=kept.session, data_hash=kept.data_hash, limit=kept.limit, batch=scoring.batch
    )


@dataclass(frozen=True, kw_only=True)
class NetworkModel(TrainedModel):
    """A trained network, with the scorers beside it."""

    network: Network  # its decoder is folded: it cannot be trained further
    hardware: Hardware
    vocabulary: Sequence[
        str
    ] = ()  # words of the run's relevance table, for decoders that look at words
    reads_pieces: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.network.to(self.hardware.device)
        with self.hardware.autocast():
            self.network.fold_decoder()

    def _score(self, texts: Sequence[str], scoring: Scoring) -> TopLabels:
        words = (
            self._words(texts, scoring)
            if self.scorers is not None or self.network.needs_words
            else None
        )
        scored = scoring.scored
        if scored is None and self.scorers is not None and words is not None:
            scored = self.scorers.score(words, scoring.reporter, scoring.name)
        live = self._read(texts, words, scoring)
        cache = _open_cache(scoring)
        reader = live if cache is None else cache.open(live, scoring.name)
        rescore: dict[str, Rescore] = {FINAL_SCORES: lambda rows, logits: logits}
        parts: dict[str, TopLabels] = {}
        combine = None
        if self.combination is not None:
            explained = (
                min(scoring.k, self.network.labels) if scoring.reasons and scored is not None else 0
            )
            rescore[FINAL_SCORES] = combine = LogitCombiner(self.combination, scored, explained)
        if scoring.parts and scored is not None:
            rescore[NETWORK] = lambda rows, logits: logits
            parts = score_parts(scored, scoring.k)
        by_part = score_documents(self.network, reader, self.hardware, scoring, rescore)
        top = by_part.pop(FINAL_SCORES)
        recall = None
        if scoring.candidates is not None:
            recall = measure_recall(
                self.network,
                reader,
                self.hardware,
                scoring.candidates,
                scoring.k,
                batch=scoring.batch,
            )
        reasons: Sequence[Sequence[Any]] = ()
        if scoring.reasons and combine is not None and scored is not None:
            reasons = explain_labels(
                scored, combine.combination, top.labels, (combine.logits, combine.averages)
            )
        cut = measure_cut(live.tokens, scoring.evidence)
        trust = None if scored is None else scored.trust
        return replace(
            top,
            trust=trust,
            shortlist_recall=recall,
            cut=cut,
            parts=by_part | parts,
            reasons=reasons,
        )

    @torch.no_grad()
    def weigh_tokens(
        self,
        text: str,
        words: Documents,
        choose: Callable[[Floats], Sequence[int]],
        reporter: Reporter,
    ) -> TokenEvidence:
        """The logits of a text, and what those of the chosen labels lose without each of its
        tokens, or else their attention on these.
        """
        self.network.eval()
        decoder, reader = (
            self.network.decoder,
            self._read([text], words, Scoring(name="text", k=1, batch=1, reporter=reporter)),
        )
        spans = np.asarray(reader.tokens.spans[0], dtype=np.int64).reshape(-1, 2)
        reading = reader.read(np.array([0]))
        with self.hardware.autocast():
            logits = score_all(decoder, reading, self.network.labels)
            by_label = logits[0].double().cpu().numpy()
            labels = choose(by_label)
            wanted, weights = (
                torch.tensor(labels, device=self.hardware.device),
                torch.zeros(1, len(labels), len(spans)),
            )
            exact = isinstance(decoder, LeaveOutDecoder)
            if exact and len(spans):
                weights = leave_out_tokens(cast("LeaveOutDecoder", decoder), reading, wanted)
            elif isinstance(decoder, Decoder) and len(
                spans
            ):  # what a decoder folds into may show no attention
                weights = read_attention(decoder, reading, wanted)
        by_token = weights[0, :, : len(spans)].double().cpu().numpy()
        return TokenEvidence(
            labels=labels, logits=by_label, spans=spans, weights=by_token, exact=exact
        )

    def compare_tokens(
        self, text: str, words: Documents, labels: Sequence[int]
    ) -> tuple[npt.NDArray[np.int64], Mapping[str, Floats]]:
        """The spans of the tokens of a text [T, 2]; their attention, and the length of each
        logit's gradient at them [k, T].
        """
        self.network.eval()
        decoder, scoring = (
            self.network.decoder,
            Scoring(name="text", k=1, batch=1, reporter=SilentReporter()),
        )
        reader = self._read([text], words, scoring)
        spans = np.asarray(reader.tokens.spans[0], dtype=np.int64).reshape(-1, 2)
        if not len(spans):
            return spans, {}
        reading, wanted = (
            reader.read(np.array([0])),
            torch.tensor(labels, device=self.hardware.device),
        )
        hidden = reading.hidden.detach().clone().requires_grad_()
        with torch.enable_grad(), self.hardware.autocast():
            logits = score_labels(decoder, replace(reading, hidden=hidden), wanted)[0]
            slopes = torch.stack(
                [torch.autograd.grad(logit, hidden, retain_graph=True)[0][0] for logit in logits]
            )
        found = {
            "gradient": slopes.norm(dim=-1)
        }  # times the hidden state it is nothing where a layer norm comes first
        if hasattr(decoder, "attention"):  # what a decoder folds into may show none
            with torch.no_grad(), self.hardware.autocast():
                found["attention"] = read_attention(cast("Decoder", decoder), reading, wanted)[0]
        return spans, {
            name: weights[:, : len(spans)].double().cpu().numpy() for name, weights in found.items()
        }

    def _read(self, texts: Sequence[str], words: Documents | None, scoring: Scoring) -> LiveReader:
        cache = _open_cache(scoring)
        if cache is None:
            tokens = make_tokens(self.network, texts, scoring.reporter, scoring.name)
        else:
            tokens = cache.tokenize(self.network, texts, scoring.name, self.hardware)
        warn_of_cut(self.network, tokens, scoring.reporter, scoring.name, scoring.evidence)
        of_tokens = None
        if self.network.needs_words and words is not None:
            of_tokens = find_token_words(texts, words, tokens, self.vocabulary, self.analyser)
        return LiveReader(self.network, tokens, self.hardware, of_tokens)
