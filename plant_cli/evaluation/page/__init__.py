"""The page of `plant report`: what the records of runs say, as tables and figures."""
