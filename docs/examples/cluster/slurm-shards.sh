#!/bin/bash
# Count a very large corpus on a cluster under Slurm: each task of an array counts one share of the documents.
#
#     job=$(sbatch --parsable --array=1-8 slurm-shards.sh /data/corpus.parquet /scratch/shards)
#     sbatch --dependency=afterok:$job --wrap "plant mig /data/corpus.parquet --merge '/scratch/shards/*/mig' --run /scratch/run"
#
# All tasks must see the corpus and the folder of shards. A task that failed is started again alone: sbatch --array=3 … --export=ALL,SHARDS=8
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --time=04:00:00
set -euo pipefail
corpus=$1 shards=$2
of=${SHARDS:-$SLURM_ARRAY_TASK_MAX}
plant mig "$corpus" --shard "$SLURM_ARRAY_TASK_ID/$of" --run "$shards/$SLURM_ARRAY_TASK_ID" --jobs "${SLURM_CPUS_PER_TASK:-1}" --force
