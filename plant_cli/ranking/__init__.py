"""Numerics of stage 1: losses over ragged lists of words, and how well an order agrees with relevance."""

from plant_cli.ranking.kendall import kendall_tau
from plant_cli.ranking.lambdas import lambda_loss
from plant_cli.ranking.listwise import approx_ndcg_loss, listnet_loss, standardised_mse
from plant_cli.ranking.ndcg import ndcg, random_ndcg

__all__ = ["approx_ndcg_loss", "kendall_tau", "lambda_loss", "listnet_loss", "ndcg", "random_ndcg", "standardised_mse"]
