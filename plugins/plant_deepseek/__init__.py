"""DeepSeek-V3 and the smaller models distilled from R1 as a backbone."""
