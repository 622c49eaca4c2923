#!/bin/bash
# A very large corpus on a cluster under Slurm: each task of an array takes one share of the documents.
#
# Count words (mig):
#
#     job=$(sbatch --parsable --array=1-8 slurm-shards.sh /data/corpus.parquet /scratch/shards)
#     sbatch --dependency=afterok:$job --wrap "plant mig /data/corpus.parquet --merge '/scratch/shards/*/mig' --run /scratch/run"
#
# Write as tables (convert) into a folder that is read as one corpus when all shares are there:
#
#     sbatch --array=1-8 slurm-shards.sh /data/corpus.jsonl.gz /scratch/corpus convert
#
# Label texts (suggest) with a model into files that are read as one table, /scratch/labelled/*.parquet:
#
#     sbatch --array=1-8 slurm-shards.sh /data/texts.parquet /scratch/labelled suggest /data/model
#
# All tasks must see the corpus and the folder of shards. A task that failed is started again alone: sbatch --array=3 … --export=ALL,SHARDS=8
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --time=04:00:00
set -euo pipefail
corpus=$1 shards=$2 what=${3:-mig} model=${4:-plant-run}
of=${SHARDS:-$SLURM_ARRAY_TASK_MAX}
share=$SLURM_ARRAY_TASK_ID/$of
case $what in
  mig) plant mig "$corpus" --shard "$share" --run "$shards/$SLURM_ARRAY_TASK_ID" --jobs "${SLURM_CPUS_PER_TASK:-1}" --force ;;
  convert) plant data convert "$corpus" "$shards" --shard "$share" --force ;;
  suggest) # files are read in the order of their names
    mkdir -p "$shards"
    file=$(printf '%s/%06d.parquet' "$shards" "$SLURM_ARRAY_TASK_ID")
    plant suggest "$corpus" --run "$model" --shard "$share" -O "$file" ;;
  *) echo "there is no '$what': mig, convert or suggest" >&2; exit 2 ;;
esac
