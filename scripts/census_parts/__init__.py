"""What `scripts/census.py` goes through: lists of models, layers and functions, and how each is judged."""
