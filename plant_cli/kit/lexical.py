"""Tf-idf vectors, products and top lists, for authors of scorers and shortlists."""

from plant_cli.lexical.documents import (
    count_known,
    count_pieces,
    cut_documents,
    cut_leads,
    cut_vocabulary,
    pack_matrix,
    pack_strings,
    unpack_matrix,
    unpack_strings,
)
from plant_cli.lexical.grams import choose_columns, cut_word, number_grams
from plant_cli.lexical.neighbours import leave_out_neighbours, score_neighbours
from plant_cli.lexical.ridge import (
    invert_kernel,
    keep_largest,
    leave_out_ridge,
    merge_twins,
    solve_labels,
    solve_ridge,
    weigh_terms,
)
from plant_cli.lexical.scores import KEPT, choose_best, cut_folds, cut_rows, keep_best, multiply_signed, no_scores, score_blocks
from plant_cli.lexical.similarity import Similarity
from plant_cli.lexical.titles import score_passages
from plant_cli.lexical.vectors import document_frequencies, inverse_frequency, join_views, make_vectors, unit_rows, weigh_counts
from plant_cli.lexical.words import leave_out_words, measure_relevance, score_words

__all__ = [
    "KEPT",
    "Similarity",
    "choose_best",
    "choose_columns",
    "count_known",
    "count_pieces",
    "cut_documents",
    "cut_folds",
    "cut_leads",
    "cut_rows",
    "cut_vocabulary",
    "cut_word",
    "document_frequencies",
    "inverse_frequency",
    "invert_kernel",
    "join_views",
    "keep_best",
    "keep_largest",
    "leave_out_neighbours",
    "leave_out_ridge",
    "leave_out_words",
    "make_vectors",
    "measure_relevance",
    "merge_twins",
    "multiply_signed",
    "no_scores",
    "number_grams",
    "pack_matrix",
    "pack_strings",
    "score_blocks",
    "score_neighbours",
    "score_passages",
    "score_words",
    "solve_labels",
    "solve_ridge",
    "unit_rows",
    "unpack_matrix",
    "unpack_strings",
    "weigh_counts",
    "weigh_terms",
]
