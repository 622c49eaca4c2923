"""A scorer: how often the words of a text occur with a label. Words are hashed, so that all it
learns is one matrix.
"""

from functools import partial
from zlib import crc32

from plant_cli import kit
from plant_cli.api import FittedScorer, Reason, ScorerSpec, hookimpl


class Company:
    def __init__(self, options, tensors):
        self.weights = kit.unpack_matrix("weights", tensors)  # csr [65536, labels]

    def score(self, documents):
        return [kit.keep_best(hash_words(documents) @ self.weights).matrix]

    def explain(self, document, labels):
        words = [document.vocabulary[number] for number in sorted(set(document.numbers))]
        share = {word: self.weights[[crc32(word.encode()) % 65536]].toarray()[0] for word in words}
        best = [max(words, key=lambda word: share[word][label], default=None) for label in labels]
        return [
            Reason(text=f"it often occurs with '{word}'", words=(word,))
            if word
            else Reason(text="")
            for word in best
        ]

    def tensors(self):
        return kit.pack_matrix("weights", self.weights)


def hash_words(documents):
    from scipy.sparse import csr_array  # imported here, so that `plant --help` stays quick

    columns = [crc32(documents.vocabulary[number].encode()) % 65536 for number in documents.numbers]
    return csr_array(([1.0] * len(columns), columns, documents.ends), shape=(len(documents), 65536))


def fit(options, given):
    from scipy.sparse import hstack

    words, labels = hash_words(given.documents), given.gold.shape[1]
    share = -(-labels // kit.count_workers())  # of a worker, where a Dask scheduler has some
    size = kit.at_most(share, 8 * words.shape[1])  # fewer where memory is limited
    blocks = (given.gold[:, first : first + size] for first in range(0, labels, size))
    weights = hstack(list(kit.map_blocks(partial(count_shares, words), blocks)), format="csr")
    return FittedScorer(scorer=Company(options, kit.pack_matrix("weights", weights)))


def count_shares(words, gold):  # of some labels; at the top of its module, since it is pickled
    return (words.T @ gold).multiply(1 / words.sum(axis=0)[:, None].clip(1)).tocsr()


@hookimpl
def plant_register_scorers():
    return [
        ScorerSpec(
            name="company", summary="How often words occur with a label.", fit=fit, load=Company
        )
    ]
