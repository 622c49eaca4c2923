"""A corpus of invented clinical notes: vocabulary, codes, the wording of mentions, notes, and the dataset made of them."""
