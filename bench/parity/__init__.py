"""Holds `xsa eval` to lm-evaluation-harness: the same model, the same records, figure by figure."""
