"""The AWD-LSTM of PLANT's first version: a language model over the corpus's own words, pretrained by a stage of its own."""
