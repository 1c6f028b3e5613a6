#!/usr/bin/env bash
# What `make demo` does once stretto is built: writes synthetic reviews, fine-tunes an encoder on them with two ranks, and
# measures it on reviews that it has not seen. Everything lands in demo/; nothing is downloaded here.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=demo
stretto=build/release/bin/stretto
encoder=${STRETTO_DEPS:-.deps}/all-MiniLM-L6-v2  # put there by scripts/setup.sh demo

say() { printf '\ndemo: %s\n' "$@"; }
[[ -x $stretto ]] || {
  echo "demo: $stretto is missing; \`make demo\` builds it first" >&2
  exit 1
}

# A BERT of 2 layers x 128 with random weights, whose vocabulary is the training data's words.
write_small_bert() {
  mkdir -p "$folder/small-bert"
  python3 - "$folder/data/train.tsv" "$folder/small-bert" <<'PYTHON'
import json, pathlib, sys
rows = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[1:]
words = sorted({word for row in rows for word in row.split("\t")[0].replace("-", " - ").split()})
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words
config = {"model_type": "bert", "vocab_size": len(vocabulary), "hidden_size": 128, "num_hidden_layers": 2,
          "num_attention_heads": 4, "intermediate_size": 256, "max_position_embeddings": 64}
folder = pathlib.Path(sys.argv[2])
(folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
(folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
PYTHON
}

rm -rf "$folder/run"  # of an earlier demo: logs and metrics would follow each other
python3 scripts/make_reviews.py "$folder/data"
say "the data: short synthetic reviews in $folder/data, written by scripts/make_reviews.py; 1 is positive, 0 negative:"
sed -n '2,4s/^/  /p' "$folder/data/train.tsv"

settings=()
if [[ -e $encoder/model.safetensors ]]; then
  export STRETTO_ENCODER=$encoder
  say "the model: all-MiniLM-L6-v2, a BERT of 6 layers x 384 from the sentence-transformers project (Apache-2.0), in $encoder"
else
  write_small_bert
  settings=(--set model.path=null --set "model.config=$folder/small-bert/config.json"
    --set "tokenizer.path=$folder/small-bert" --set optimizer.lr=1e-3 --set training.epochs=6)
  say "the model: a small BERT with random weights, because the pre-trained encoder is not in $encoder"
fi

say "$stretto train recipes/demo.yaml -N 2${settings[*]:+ ${settings[*]}}"
"$stretto" train recipes/demo.yaml -N 2 "${settings[@]}"
say "$stretto test recipes/demo.yaml -N 2${settings[*]:+ ${settings[*]}}"
"$stretto" test recipes/demo.yaml -N 2 "${settings[@]}"

accuracy=$(sed -n 's/.*"accuracy": *\([0-9.]*\).*/\1/p' "$folder/run/test_results.json")
say "accuracy on the $(($(wc -l <"$folder/data/test.tsv") - 1)) held-out reviews: $(printf '%.3f' "$accuracy")"
cat <<END

The model is an ordinary Hugging Face folder: $folder/run/model. Try it (LABEL_1 is positive):

  $stretto predict --model $folder/run/model --text "not a dull film , and the ending is lovely"

Then train on data of your own: README.md shows how in five minutes.
END
