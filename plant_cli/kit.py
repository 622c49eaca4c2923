"""What plugin authors may use besides the contract: readers of tables, files that are written
completely or not at all, numerics. Each name is defined in the room that it is imported from.
"""

from plant_cli.data.blocks import (
    Share,
    at_most,
    count_workers,
    cut_blocks,
    cut_by_size,
    map_blocks,
    stop_if_asked,
    top_k,
    work_ahead,
)
from plant_cli.data.decision_words import read_decision
from plant_cli.data.documents import DOCUMENT_SCHEMA, find_used_labels, parts_of, with_parts
from plant_cli.data.files import (
    hash_file,
    hash_strings,
    read_json,
    replacing,
    write_json,
    write_json_lines,
)
from plant_cli.data.label_cells import MISSING, LabelForm, read_structure
from plant_cli.data.label_forms import find_label_form
from plant_cli.data.languages import name_language
from plant_cli.data.lines import (
    FORMATS,
    LINES_LISTED,
    SUFFIXES,
    BadRows,
    bare_name,
    find_fallback,
    read_bytes,
    read_lines,
    read_utf8_lines,
    refuse_many,
    spool,
    writing_text,
)
from plant_cli.data.tables import (
    base_name,
    collect,
    count_rows,
    join_columns,
    label_field,
    load_sparse,
    peek_columns,
    scan_table,
    table_format,
    text_columns,
    whole_numbers,
)
from plant_cli.data.tensors import (
    pack_matrix,
    pack_strings,
    read_tensors,
    unpack_matrix,
    unpack_strings,
    write_tensors,
)
from plant_cli.data.text_tables import peek_text, read_rows, shorten, show_names, unwrap_rows
from plant_cli.data.vocabularies import read_vocabulary, resolve_titles
from plant_cli.data.vocabulary_frames import (
    LISTED_FIELDS,
    VOCABULARY_SCHEMA,
    bare_key,
    last_part,
    tidy_labels,
)
from plant_cli.data.words import (
    LONGEST_REMEMBERED,
    choose_columns,
    count_in_blocks,
    count_known,
    document_frequencies,
    find_words,
    word_frequencies,
)
from plant_cli.evaluation.counters import (
    Booleans,
    Floats,
    Integers,
    average_present_f1,
    count_assignments,
    count_gold,
    divide,
    find_assigned,
    find_hits,
    find_predicted,
    labels_counted,
    mean_of_documents,
    ratio_of_sums,
    score_f1,
    split_counters,
)
from plant_cli.evaluation.mismatches import find_mismatch
from plant_cli.relevance.mutual_information import (
    divide_by_joint_entropy,
    entropy,
    mutual_information,
)
from plant_cli.runs.processes import default_threads, sharing_mode
from plant_cli.runs.steps import is_at_hand
from plant_cli.scoring.sparse_scores import (
    DOCUMENT_LABEL_PAIRS,
    LABELS_LISTED,
    SparseScores,
    cut_folds,
    cut_rows,
    find_pairs,
    keep_best,
    no_scores,
)
