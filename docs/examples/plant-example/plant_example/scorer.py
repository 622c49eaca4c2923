"""A scorer: how often the words of a text occur with a label. Words are hashed, so that all it
learns is one matrix.
"""

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
    words = hash_words(given.documents)
    shares = (words.T @ given.gold).multiply(1 / words.sum(axis=0)[:, None].clip(1))
    return FittedScorer(scorer=Company(options, kit.pack_matrix("weights", shares.tocsr())))


@hookimpl
def plant_register_scorers():
    return [
        ScorerSpec(
            name="company", summary="How often words occur with a label.", fit=fit, load=Company
        )
    ]
