# What `plant_cli.kit` offers, by the module it comes from; `kit.py` reads this file.
from plant_cli.data.blocks import Share as Share
from plant_cli.data.blocks import cut_by_size as cut_by_size
from plant_cli.data.blocks import map_blocks as map_blocks
from plant_cli.data.blocks import top_k as top_k
from plant_cli.data.classifications import System as System
from plant_cli.data.classifications import add_dot as add_dot
from plant_cli.data.documents import find_used_labels as find_used_labels
from plant_cli.data.documents import parts_of as parts_of
from plant_cli.data.documents import with_parts as with_parts
from plant_cli.data.files import (
    hash_file as hash_file,
)
from plant_cli.data.files import (
    hash_strings as hash_strings,
)
from plant_cli.data.files import (
    read_json as read_json,
)
from plant_cli.data.files import (
    replacing as replacing,
)
from plant_cli.data.files import (
    write_json as write_json,
)
from plant_cli.data.files import (
    write_json_lines as write_json_lines,
)
from plant_cli.data.label_cells import MISSING as MISSING
from plant_cli.data.label_cells import LabelForm as LabelForm
from plant_cli.data.label_forms import find_label_form as find_label_form
from plant_cli.data.lines import (
    FORMATS as FORMATS,
)
from plant_cli.data.lines import (
    LINES_LISTED as LINES_LISTED,
)
from plant_cli.data.lines import (
    SUFFIXES as SUFFIXES,
)
from plant_cli.data.lines import (
    BadRows as BadRows,
)
from plant_cli.data.lines import (
    bare_name as bare_name,
)
from plant_cli.data.lines import (
    find_encoding as find_encoding,
)
from plant_cli.data.lines import (
    find_fallback as find_fallback,
)
from plant_cli.data.lines import (
    open_bytes as open_bytes,
)
from plant_cli.data.lines import (
    read_bytes as read_bytes,
)
from plant_cli.data.lines import (
    read_lines as read_lines,
)
from plant_cli.data.lines import (
    refuse_many as refuse_many,
)
from plant_cli.data.lines import (
    spool as spool,
)
from plant_cli.data.lines import (
    writing_text as writing_text,
)
from plant_cli.data.tables import (
    base_name as base_name,
)
from plant_cli.data.tables import (
    collect as collect,
)
from plant_cli.data.tables import (
    count_rows as count_rows,
)
from plant_cli.data.tables import (
    join_columns as join_columns,
)
from plant_cli.data.tables import (
    label_field as label_field,
)
from plant_cli.data.tables import (
    load_sparse as load_sparse,
)
from plant_cli.data.tables import (
    peek_columns as peek_columns,
)
from plant_cli.data.tables import (
    scan_table as scan_table,
)
from plant_cli.data.tables import (
    table_format as table_format,
)
from plant_cli.data.tables import (
    text_columns as text_columns,
)
from plant_cli.data.tables import (
    whole_numbers as whole_numbers,
)
from plant_cli.data.text_tables import peek_text as peek_text
from plant_cli.data.text_tables import read_rows as read_rows
from plant_cli.data.text_tables import shorten as shorten
from plant_cli.data.text_tables import show_names as show_names
from plant_cli.data.vocabularies import read_vocabulary as read_vocabulary
from plant_cli.data.vocabularies import resolve_titles as resolve_titles
from plant_cli.data.words import choose_columns as choose_columns
from plant_cli.data.words import count_known as count_known
from plant_cli.data.words import find_words as find_words
from plant_cli.evaluation.auc import average_auc as average_auc
from plant_cli.evaluation.auc import pooled_auc as pooled_auc
from plant_cli.evaluation.counters import (
    Booleans as Booleans,
)
from plant_cli.evaluation.counters import (
    Floats as Floats,
)
from plant_cli.evaluation.counters import (
    Integers as Integers,
)
from plant_cli.evaluation.counters import (
    average_present_f1 as average_present_f1,
)
from plant_cli.evaluation.counters import (
    count_assignments as count_assignments,
)
from plant_cli.evaluation.counters import (
    count_gold as count_gold,
)
from plant_cli.evaluation.counters import (
    divide as divide,
)
from plant_cli.evaluation.counters import (
    find_assigned as find_assigned,
)
from plant_cli.evaluation.counters import (
    find_hits as find_hits,
)
from plant_cli.evaluation.counters import (
    find_predicted as find_predicted,
)
from plant_cli.evaluation.counters import (
    labels_counted as labels_counted,
)
from plant_cli.evaluation.counters import (
    mean_of_documents as mean_of_documents,
)
from plant_cli.evaluation.counters import (
    ratio_of_sums as ratio_of_sums,
)
from plant_cli.evaluation.counters import (
    score_f1 as score_f1,
)
from plant_cli.evaluation.counters import (
    split_counters as split_counters,
)
from plant_cli.network.attention import (
    label_attention as label_attention,
)
from plant_cli.network.attention import (
    log_attention as log_attention,
)
from plant_cli.network.attention import (
    pooling_matrix as pooling_matrix,
)
from plant_cli.network.compute import LABEL_MULTIPLE as LABEL_MULTIPLE
from plant_cli.network.compute import TOKEN_MULTIPLE as TOKEN_MULTIPLE
from plant_cli.network.compute import round_up as round_up
from plant_cli.network.gathering import (
    gather_sharpened as gather_sharpened,
)
from plant_cli.network.gathering import (
    gather_states as gather_states,
)
from plant_cli.network.gathering import (
    leave_out_normed as leave_out_normed,
)
from plant_cli.network.gathering import (
    leave_out_positions as leave_out_positions,
)
from plant_cli.network.gathering import (
    normed_attention as normed_attention,
)
from plant_cli.network.gathering import (
    single_head_attention as single_head_attention,
)
from plant_cli.network.gathering import (
    single_head_log_attention as single_head_log_attention,
)
from plant_cli.network.gathering import (
    single_head_sharpened as single_head_sharpened,
)
from plant_cli.network.gathering import (
    single_head_states as single_head_states,
)
from plant_cli.network.gathering import (
    unscale as unscale,
)
from plant_cli.network.hardware import find_device as find_device
from plant_cli.network.huggingface import (
    HuggingFaceBackbone as HuggingFaceBackbone,
)
from plant_cli.network.huggingface import (
    Packed as Packed,
)
from plant_cli.network.huggingface import (
    Profile as Profile,
)
from plant_cli.network.list_ranking import (
    approx_ndcg_loss as approx_ndcg_loss,
)
from plant_cli.network.list_ranking import (
    kendall_tau as kendall_tau,
)
from plant_cli.network.list_ranking import (
    lambda_loss as lambda_loss,
)
from plant_cli.network.list_ranking import (
    listnet_loss as listnet_loss,
)
from plant_cli.network.list_ranking import (
    ndcg as ndcg,
)
from plant_cli.network.list_ranking import (
    random_ndcg as random_ndcg,
)
from plant_cli.network.list_ranking import (
    standardised_mse as standardised_mse,
)
from plant_cli.network.profile import ATTENTION as ATTENTION
from plant_cli.network.profile import BERT_ATTENTION as BERT_ATTENTION
from plant_cli.network.profile import CausalOptions as CausalOptions
from plant_cli.network.profile import Family as Family
from plant_cli.network.profile import FrozenOptions as FrozenOptions
from plant_cli.network.profile import PublishedShape as PublishedShape
from plant_cli.network.tensors import pack_matrix as pack_matrix
from plant_cli.network.tensors import pack_strings as pack_strings
from plant_cli.network.tensors import (
    read_tensors as read_tensors,
)
from plant_cli.network.tensors import unpack_matrix as unpack_matrix
from plant_cli.network.tensors import unpack_strings as unpack_strings
from plant_cli.network.tensors import (
    write_tensors as write_tensors,
)
from plant_cli.network.windows import (
    check_overlap as check_overlap,
)
from plant_cli.network.windows import (
    cut as cut,
)
from plant_cli.network.windows import (
    join_windows as join_windows,
)
from plant_cli.network.windows import (
    restore_trainable as restore_trainable,
)
from plant_cli.network.windows import (
    save_trainable as save_trainable,
)
from plant_cli.network.windows import (
    split_layers as split_layers,
)
from plant_cli.relevance.mutual_information import divide_by_joint_entropy as divide_by_joint_entropy
from plant_cli.relevance.mutual_information import entropy as entropy
from plant_cli.relevance.mutual_information import mutual_information as mutual_information
from plant_cli.scoring.lexical import (
    count_pieces as count_pieces,
)
from plant_cli.scoring.lexical import (
    cut_documents as cut_documents,
)
from plant_cli.scoring.lexical import (
    cut_leads as cut_leads,
)
from plant_cli.scoring.lexical import (
    cut_vocabulary as cut_vocabulary,
)
from plant_cli.scoring.lexical import (
    cut_word as cut_word,
)
from plant_cli.scoring.lexical import (
    document_frequencies as document_frequencies,
)
from plant_cli.scoring.lexical import (
    inverse_frequency as inverse_frequency,
)
from plant_cli.scoring.lexical import (
    join_views as join_views,
)
from plant_cli.scoring.lexical import (
    leave_out_words as leave_out_words,
)
from plant_cli.scoring.lexical import (
    make_vectors as make_vectors,
)
from plant_cli.scoring.lexical import (
    measure_relevance as measure_relevance,
)
from plant_cli.scoring.lexical import (
    number_grams as number_grams,
)
from plant_cli.scoring.lexical import (
    score_passages as score_passages,
)
from plant_cli.scoring.lexical import (
    stack_rows as stack_rows,
)
from plant_cli.scoring.lexical import (
    unit_rows as unit_rows,
)
from plant_cli.scoring.lexical import (
    weigh_counts as weigh_counts,
)
from plant_cli.scoring.lexical import (
    weigh_numbers as weigh_numbers,
)
from plant_cli.scoring.nearest import (
    NearestDocuments as NearestDocuments,
)
from plant_cli.scoring.nearest import (
    share_labels as share_labels,
)
from plant_cli.scoring.ridge import (
    Similarity as Similarity,
)
from plant_cli.scoring.ridge import (
    keep_largest as keep_largest,
)
from plant_cli.scoring.ridge import (
    leave_out_neighbours as leave_out_neighbours,
)
from plant_cli.scoring.ridge import (
    merge_twins as merge_twins,
)
from plant_cli.scoring.ridge import (
    regress_on_own_terms as regress_on_own_terms,
)
from plant_cli.scoring.ridge import (
    score_neighbours as score_neighbours,
)
from plant_cli.scoring.sparse_scores import (
    LABELS_LISTED as LABELS_LISTED,
)
from plant_cli.scoring.sparse_scores import (
    cut_folds as cut_folds,
)
from plant_cli.scoring.sparse_scores import (
    cut_rows as cut_rows,
)
from plant_cli.scoring.sparse_scores import (
    find_pairs as find_pairs,
)
from plant_cli.scoring.sparse_scores import (
    keep_best as keep_best,
)
from plant_cli.scoring.sparse_scores import (
    multiply_best as multiply_best,
)
from plant_cli.scoring.sparse_scores import (
    multiply_signed as multiply_signed,
)
from plant_cli.scoring.sparse_scores import (
    no_scores as no_scores,
)
from plant_cli.scoring.sparse_scores import (
    score_blocks as score_blocks,
)
