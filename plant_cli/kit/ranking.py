"""Losses over ragged lists and measures of order, for authors of stage 1 losses and of metrics."""

from plant_cli.ranking import (
    approx_ndcg_loss,
    average_auc,
    kendall_tau,
    lambda_loss,
    listnet_loss,
    ndcg,
    pooled_auc,
    random_ndcg,
    standardised_mse,
)

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
