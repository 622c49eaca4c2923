"""Numerics of order: losses over ragged lists of words, how well an order agrees with relevance, and the area under the ROC curve."""

from plant_cli.ranking.auc import average_auc, pooled_auc
from plant_cli.ranking.kendall import kendall_tau
from plant_cli.ranking.lambdas import lambda_loss
from plant_cli.ranking.listwise import approx_ndcg_loss, listnet_loss, standardised_mse
from plant_cli.ranking.ndcg import ndcg, random_ndcg

__all__ = [
    "approx_ndcg_loss",
    "average_auc",
    "kendall_tau",
    "lambda_loss",
    "listnet_loss",
    "ndcg",
    "pooled_auc",
    "random_ndcg",
    "standardised_mse",
]
