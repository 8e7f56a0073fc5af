"""Private machine learning for PyTorch by multi-party computation."""
