"""Scores of (document, label) pairs: how they are made, joined, calibrated, ranked, written and
explained.

**The formula.** There is one, in `frequency_linear`:

    logit = b(n) + Σ_s w_s(n) z_s

z_s is the score of source s for the pair, n the number of training documents of the label. Each
weight w_s and the offset b is a linear spline in ln n. `FrequencyLinear` fits it (`fit`), evaluates
it (`apply` for pairs, `apply_floors` for labels that no source lists) and takes it apart
(`explain`). It is used twice:

* *fusion* (`fusion`): the sources are the views of all scorers, standardised for each document. It
  is learned on left-out scores of train. Where left-out documents want it, single labels have
  residuals on top of the weights of their frequency (`label_residuals`).
* *calibration* (`calibration`): the sources are the network and the fused scorers, or one of them.
  It is learned on validation. Isotonic maps of the result follow where they fit left-out documents
  better.

With a network the calibration is evaluated on its device for all labels of a batch
(`network_scores.LogitCombiner`).

**The forms of a score**, in the order in which a document meets them:

1. `SparseScores` (`sparse_scores`): what one view of a scorer gives. Few labels of a document are
  listed, csr [B, L], and all others have a floor [B, 1]. `top_k` chooses what is listed; a smaller
  label index wins every tie.
2. `ScoredPairs` (`fusion`): the pairs that any source lists, with the score of each source [P, S]
  and the floors of each document [B, S]. `gather_pairs` makes them of several sparse scores;
  `PairCollector` makes them of the logits of a network.
3. `SparseScores` again: fused logits, and calibrated ones. Now there is a floor for each training
  frequency [B, G], since labels that no scorer lists differ by that alone. So a million labels need
  no array [B, L].
4. `TopLabels` (`top_labels`): the k best labels of each document with their probabilities [N, K],
  of the whole model and of each part.
5. `predictions.parquet` (`predictions`): the same on disk, by name for people and by index for
  `plant`.

**Who does what.** `lexical`, `nearest` and `ridge` are the numerics of scorers: functions of arrays
and sparse matrices. `scorer_fitting` fits scorers on train, `kept_scorers` keeps those that are
fitted until all are, `fused_scorers` scores and explains with fitted ones, `scorer_files` stores
them. `models` is the one way to load a trained model, and scores texts. `network_scores` does so
with a network; it and `averaging` are the only modules that import torch. `opened_models` is for
Python callers, `explanations` finds the words of a text that indicate a label, `decisions` holds
thresholds, and `new_texts` reads texts that are to be labelled.
"""
