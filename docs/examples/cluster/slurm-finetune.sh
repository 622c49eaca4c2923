#!/bin/bash
# A network on several machines under Slurm: a process for each card, or one for each machine that has none.
#
#     sbatch --nodes=2 --gpus-per-node=4 slurm-finetune.sh --run /scratch/run
#     sbatch --nodes=2 --gpus-per-node=4 --export=ALL,SHARED=fsdp.yaml slurm-finetune.sh --run /scratch/run
#
# What follows the name of the script goes to `plant finetune`. SHARED is a file of `accelerate config` that says what processes share
# (FSDP, DeepSpeed); without it each holds the whole network. A job that lost a machine goes on by the same command, or is requeued by Slurm.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 20000))
each=${SLURM_GPUS_ON_NODE:-1}
command=(plant_cli finetune --resume "$@")
if [ -n "${SHARED:-}" ]; then
  export SHARED head port each
  srun bash -c 'exec accelerate launch --config_file "$SHARED" --num_machines "$SLURM_NNODES" --num_processes $((SLURM_NNODES * each)) \
    --machine_rank "$SLURM_NODEID" --main_process_ip "$head" --main_process_port "$port" -m "$@"' bash "${command[@]}"
else
  srun torchrun --nnodes "$SLURM_NNODES" --nproc-per-node "$each" --rdzv-id "$SLURM_JOB_ID" \
    --rdzv-backend c10d --rdzv-endpoint "$head:$port" -m -- "${command[@]}"
fi
