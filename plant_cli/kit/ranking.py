"""Losses over ragged lists and measures of order, for authors of stage 1 losses."""

from plant_cli.ranking import approx_ndcg_loss, kendall_tau, lambda_loss, listnet_loss, ndcg, random_ndcg, standardised_mse

__all__ = ["approx_ndcg_loss", "kendall_tau", "lambda_loss", "listnet_loss", "ndcg", "random_ndcg", "standardised_mse"]
