"""What plugin authors may use besides the contract: readers of tables, files that are written
completely or not at all, numerics. Each name is defined in the room that it is imported from.
"""

from plant_cli.data.blocks import (
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
from plant_cli.data.files import (
    hash_file,
    hash_strings,
    read_json,
    replacing,
    write_json,
)
from plant_cli.data.languages import name_language
from plant_cli.data.lines import (
    BadRows,
    bare_name,
    read_bytes,
    read_lines,
    spool,
    writing_text,
)
from plant_cli.data.listed_values import MISSING, read_structure
from plant_cli.data.tables import (
    base_name,
    collect,
    join_columns,
    peek_columns,
    scan_table,
    string_type,
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
from plant_cli.data.vocabularies import read_vocabulary
from plant_cli.data.vocabulary_frames import (
    bare_key,
    last_part,
    tidy_labels,
)
from plant_cli.data.words import (
    choose_columns,
)
from plant_cli.evaluation.counters import (
    average_present_f1,
    count_assignments,
    divide,
    find_hits,
    mean_of_documents,
    ratio_of_sums,
)
from plant_cli.evaluation.mismatches import find_mismatch
from plant_cli.relevance.mutual_information import (
    divide_by_joint_entropy,
    mutual_information,
)
from plant_cli.runs.processes import default_threads
from plant_cli.scoring.sparse_scores import (
    LABELS_LISTED,
    SparseScores,
    cut_rows,
    find_pairs,
    keep_best,
)
