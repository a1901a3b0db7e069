"What the chapter on local models does not show: references, memory, bad models"

import numpy as np
import pytest
from helpers.language_models import FEW, LONG, TOYS, asks_of

from benchnb.bento.local_model import LocalModel, load_model, to_local_model
from benchnb.bento.prompts import FLAN, make_word_tokenizer
from benchnb.bento.transfer import transfer_matrix


def by_hand(pair, context, query, option):
    "The log-probability of an option: one prompt, no padding, no cache"
    import torch

    model, tokenizer = pair
    ids = [tokenizer(text)["input_ids"] for text in (context, query, option)]
    with torch.inference_mode():
        logits = model(torch.tensor([sum(ids, [])]), use_cache=False).logits[0]
    start = len(ids[0]) + len(ids[1])
    steps = [logits[start + n - 1].log_softmax(-1)[t] for n, t in enumerate(ids[2])]
    return float(sum(steps))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_padded_and_cached_is_the_plain_sum_of_log_probabilities(pair, cache, batch):
    model = LocalModel(*pair, batch=batch, cache=cache)
    context = FLAN.context(TOYS[2], TOYS[2].examples[:3])
    found = model.logprobs(model.start(context), asks_of(LONG))
    for (query, options), values in zip(asks_of(LONG), found, strict=True):
        truth = [by_hand(pair, context, query, option) for option in options]
        np.testing.assert_allclose(values[:, 0], truth, atol=1e-4)
        assert values[:, 1].tolist() == [len(option.split()) for option in options]


def test_what_is_written_is_what_transformers_writes(pair):
    import torch

    model, tokenizer = pair
    context, queries = FLAN.context(LONG, LONG.examples[:2]), asks_of(LONG)[2:8]
    local = LocalModel(model, tokenizer, batch=4)
    found = local.generate(local.start(context), [q for q, _ in queries], 6)
    for (query, _), text in zip(queries, found, strict=True):
        ids = tokenizer(context)["input_ids"] + tokenizer(query)["input_ids"]
        more = dict(max_new_tokens=6, do_sample=False, pad_token_id=1)
        out = model.generate(torch.tensor([ids]), **more)[0, len(ids) :].tolist()
        out = out[: out.index(1)] if 1 in out else out
        assert tokenizer.decode(out).split("\n")[0].strip() == text


def test_models_that_are_none(llama, tmp_path):
    llama[0].save_pretrained(tmp_path)  # without its tokenizer
    for name in ("/nope/model", "no/such", "../nope", tmp_path):
        with pytest.raises(ValueError, match=f"'{name}' is no model with a tokenizer"):
            to_local_model(name)
    with pytest.raises(TypeError, match="int is no model: give a folder"):
        to_local_model(3)
    with pytest.raises(TypeError, match="in this order"):
        to_local_model(llama[::-1])
    with pytest.raises(ValueError, match="batch must be a whole number of at least 1"):
        LocalModel(*llama, batch=0)


@pytest.mark.parametrize("damage", ["cut", "noise", "config"])
def test_a_folder_with_damaged_files(llama, tmp_path, damage):
    for part in llama:
        part.save_pretrained(tmp_path)
    name = "config.json" if damage == "config" else "model.safetensors"
    kept = (tmp_path / name).read_bytes()
    damaged = {"cut": kept[:-1000], "noise": b"\xff" * 1000, "config": b"[]"}
    (tmp_path / name).write_bytes(damaged[damage])
    with pytest.raises(ValueError, match="is no model with a token") as e:
        load_model(tmp_path)
    assert "\n" not in str(e.value) and str(tmp_path) in str(e.value)


def test_a_model_that_looks_ahead_is_refused(llama, tmp_path):
    from transformers import AutoModel, BertConfig, BertForMaskedLM

    size = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
    size |= dict(initializer_range=0.5)  # large enough that the context matters
    bert = BertForMaskedLM(BertConfig(vocab_size=80, intermediate_size=32, **size))
    for part in (bert, llama[1]):
        part.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="BertLMHead.* is no causal language model"):
        to_local_model(tmp_path)
    with pytest.raises(ValueError, match="MaskedLM is no causal language model"):
        to_local_model((bert, llama[1]))
    bare = AutoModel.from_config(llama[0].config)
    with pytest.raises(ValueError, match="is no causal language model .*has no head"):
        to_local_model((bare, llama[1]))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["all", "one token", "later"])
@pytest.mark.parametrize("scoring", ["likelihood", "perplexity", "exact"])
def test_logits_that_are_no_numbers_are_no_answers(
    value, where, scoring, llama, tmp_path, monkeypatch
):
    "The forward pass of a model is spoilt after it was checked; nothing is kept"
    import torch

    model, tokenizer = llama
    local, right, calls = LocalModel(model, tokenizer), model.forward, []

    def spoilt(*args, **more):
        out = right(*args, **more)
        calls.append(1)
        if where == "all" or where == "later" and len(calls) > 1:
            out.logits = torch.full_like(out.logits, value)
        elif where == "one token":  # of infinite weight: all others become impossible
            out.logits[..., 0] = abs(value)
        return out

    monkeypatch.setattr(model, "forward", spoilt)
    journal, few = tmp_path / "journal", FEW | dict(scoring=scoring, queries=2, seeds=1)
    with pytest.raises(ValueError, match="finite") as error:
        transfer_matrix(TOYS[:1], local, journal=journal, **few)
    assert "\n" not in str(error.value)
    assert b'"score"' not in b"".join(p.read_bytes() for p in tmp_path.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("scoring", ["likelihood", "perplexity"])
def test_a_model_of_ones_own_that_gives_no_numbers_has_no_answers(value, scoring):
    class Mine:
        tokens = 0
        start = staticmethod(str)
        identity = staticmethod(lambda: "mine")

        def logprobs(self, prefix, asks):
            return [np.full((len(options), 2), [value, 1]) for _, options in asks]

    with pytest.raises(ValueError, match="not finite"):
        transfer_matrix(TOYS[:1], Mine(), **FEW | dict(scoring=scoring))


def test_a_prefix_is_in_memory_once_for_all_batches(llama, monkeypatch):
    "Ten questions in batches of three: nothing of the cache is copied"
    from benchnb.bento import local_model

    def never(layer):
        raise AssertionError("a cache was copied")

    model = LocalModel(*llama, batch=3)
    prefix = model.start(FLAN.context(LONG, LONG.examples[:2]))
    kept = [layer.keys.data_ptr() for layer in prefix.cache.layers]
    size = len(prefix.ids)
    monkeypatch.setattr(local_model.copy, "deepcopy", never)
    model.logprobs(prefix, asks_of(LONG))
    assert [layer.keys.data_ptr() for layer in prefix.cache.layers] == kept
    assert all(layer.keys.shape[2] == size for layer in prefix.cache.layers)


def test_the_weights_can_be_spread_over_devices(llama, tmp_path):
    "The second layer is on disk, the rest in memory: the numbers are the same"
    pytest.importorskip("accelerate")
    for part in llama:
        part.save_pretrained(tmp_path)
    memory = "model.embed_tokens model.layers.0 model.norm model.rotary_emb lm_head"
    places = dict.fromkeys(memory.split(), "cpu") | {"model.layers.1": "disk"}
    spread = load_model(tmp_path, dtype="float32", device_map=places)
    away = [name for name, weight in spread[0].named_parameters() if weight.is_meta]
    assert away and all(name.startswith("model.layers.1.") for name in away)
    one, two = to_local_model(spread), to_local_model(llama)
    context, asks = FLAN.context(LONG, LONG.examples[:2]), asks_of(LONG)
    found, truth = (m.logprobs(m.start(context), asks) for m in (one, two))
    for values, known in zip(found, truth, strict=True):
        np.testing.assert_allclose(values, known, atol=1e-5)


@pytest.mark.parametrize("kind", ["jamba", "mamba"])
def test_models_with_a_state_are_read_without_the_cache(kind):
    "With it Jamba would give other numbers, and says so"
    from transformers import AutoConfig, AutoModelForCausalLM

    texts = [FLAN.context(LONG, LONG.examples)]
    tokenizer = make_word_tokenizer(texts)
    size = dict(hidden_size=32, num_hidden_layers=2, vocab_size=len(tokenizer))
    size |= dict(initializer_range=0.3, pad_token_id=1)
    if kind == "jamba":
        size |= dict(intermediate_size=64, num_attention_heads=4, num_experts=1)
        size |= dict(attn_layer_period=2, attn_layer_offset=1, use_mamba_kernels=False)
        size |= dict(num_key_value_heads=4, mamba_d_state=4, mamba_dt_rank=4)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **size)).eval()
    asks, context = asks_of(LONG), FLAN.context(LONG, LONG.examples[:2])
    naive = to_local_model((model, tokenizer), batch=1, cache=False)
    truth = naive.logprobs(naive.start(context), asks)
    batched = to_local_model((model, tokenizer), cache=False)
    for one, two in zip(
        batched.logprobs(batched.start(context), asks), truth, strict=True
    ):
        np.testing.assert_allclose(one, two, atol=1e-4)
    with pytest.raises(ValueError, match=f"(?i){kind}.*use cache=False"):
        to_local_model((model, tokenizer))
    queries, names = [query for query, _ in asks], (batched, naive)
    if kind == "mamba":
        with pytest.raises(ValueError, match="keeps no cache to write with"):
            batched.generate(batched.start(context), queries, 3)
    else:
        texts = [m.generate(m.start(context), queries, 3) for m in names]
        assert texts[0] == texts[1]
