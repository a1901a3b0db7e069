"""What the chapter on texts does not show: slow references, an encoder made here, odd
texts."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchnb.stats.text import (
    distance_agreement,
    text_embeddings,
    tfidf_weights,
    truncated_svd,
)


def test_word_weights_are_equation_1():
    texts = ["a b b, b", "b c 12", "C c? d a"]
    weights, words = tfidf_weights(texts)
    split = [["a", "b", "b", ",", "b"], ["b", "c", "12"], ["c", "c", "?", "d", "a"]]
    assert words.tolist() == sorted({word for text in split for word in text})
    for row, text in zip(weights.toarray(), split, strict=True):
        slow = []
        for word in words:
            rarity = 1 + np.log(4 / (1 + sum(word in other for other in split)))
            count = text.count(word)
            slow.append((1 + np.log(count)) * rarity if count else 0)
        np.testing.assert_allclose(row, slow / np.linalg.norm(slow))


def test_directions_are_those_of_the_whole_decomposition():
    table = np.random.default_rng(0).random((40, 25)) ** 3
    u, s, vt = np.linalg.svd(table, full_matrices=False)
    points = (u * s)[:, :6]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = truncated_svd(table, 6)
    np.testing.assert_allclose(found @ found.T, points @ points.T, atol=1e-4)
    largest = vt[:6][np.arange(6), np.abs(vt[:6]).argmax(axis=1)]
    np.testing.assert_allclose(found, points * np.sign(largest), atol=1e-3)


def test_what_is_no_text_is_named():
    with pytest.raises(ValueError, match="1 of 2 items have no text .first: 1"):
        text_embeddings(["one", 3.5])
    with pytest.raises(ValueError, match="0 of 0 items have no text"):
        text_embeddings([])
    for dims in (0, -1, 2.5, "5", True):
        with pytest.raises(ValueError, match="dims must be a whole number"):
            text_embeddings(["one", "two"], dims)


def make_encoder(folder):
    "A BERT with random weights that marks beginning and end as the real ones do"
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = "[PAD] [UNK] [CLS] [SEP] Ada Ben has pens roses 3 7 .".split()
    vocabulary = {word: i for i, word in enumerate(words)}
    rules = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rules.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = dict(unk_token="[UNK]", pad_token="[PAD]", model_max_length=24)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=rules, **special)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    size = dict(hidden_size=16, intermediate_size=32, max_position_embeddings=24)
    layers = dict(num_hidden_layers=2, num_attention_heads=2)
    config = transformers.BertConfig(vocab_size=len(words), **layers, **size)
    transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("encoder"))


TEXTS = ["Ada has 3 pens.", "Ben", "7"]


def test_long_texts_are_cut_where_the_model_ends(encoder):
    long = "Ada has 3 pens. " * 50
    points = text_embeddings([long, long + "Ben", "Ben"], how=encoder)
    np.testing.assert_allclose(points[0], points[1], atol=1e-6)
    assert np.linalg.norm(points[0] - points[2]) > 0.1


def test_encoders_that_cannot_be_had(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="no encoder can be loaded from './nowhere'"):
        text_embeddings(TEXTS, how="./nowhere")
    with pytest.raises(ValueError, match="no encoder .* 'TFIDF'.* or 'tfidf'"):
        text_embeddings(TEXTS, how="TFIDF")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ValueError, match="no encoder can be loaded from .*empty.*: give"
    ):
        text_embeddings(TEXTS, how=tmp_path / "empty")
    hostile = make_encoder(tmp_path / "hostile")
    (tmp_path / "hostile" / "model.safetensors").unlink()
    (tmp_path / "hostile" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'x'\ntR.")
    with pytest.raises(ValueError, match="no encoder can be loaded"):
        text_embeddings(TEXTS, how=hostile)


def test_agreement_is_spearmans_of_all_pairs_of_each_sample():
    rng = np.random.default_rng(0)
    first, second = rng.random((21, 3)), rng.random((21, 5))
    found = distance_agreement(first, second, rng=4, samples=2, size=8)
    order = np.random.default_rng(4).permutation(21)
    for value, part in zip(found, [order[:11][:8], order[11:][:8]], strict=True):
        pairs = [(i, j) for i in part for j in part if i < j]
        away = [
            [np.linalg.norm(t[i] - t[j]) for i, j in pairs] for t in (first, second)
        ]
        assert np.isclose(value, spearmanr(*away).statistic)
