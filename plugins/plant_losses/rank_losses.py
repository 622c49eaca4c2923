"""Stage 1 losses: callables over ragged lists, made from options."""

from __future__ import annotations

from functools import partial

from plant_cli.api import NoOptions, RankLoss
from plant_losses import ApproxNdcgOptions, LambdaOptions, ListnetOptions
from plant_losses.list_ranking import approx_ndcg_loss, lambda_loss, listnet_loss, standardised_mse


def build_lambda(options: LambdaOptions) -> RankLoss:
    """Pairs weighted by what swapping them changes in nDCG@k."""
    return partial(lambda_loss, sigma=options.sigma, k=options.k)


def build_approx_ndcg(options: ApproxNdcgOptions) -> RankLoss:
    """1 − nDCG with smooth ranks."""
    return partial(approx_ndcg_loss, temperature=options.temperature, gain=options.gain)


def build_listnet(options: ListnetOptions) -> RankLoss:
    """Cross-entropy of the attention under a softmax of relevance."""
    return partial(listnet_loss, temperature=options.temperature)


def build_mse(options: NoOptions) -> RankLoss:
    """Squared error of centred scores against standardised relevance."""
    return standardised_mse
