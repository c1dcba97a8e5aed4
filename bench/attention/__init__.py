"""The parts of bench/attention_bench.py."""
