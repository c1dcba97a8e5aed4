"""`xsa generate` beside transformers' `generate`."""
